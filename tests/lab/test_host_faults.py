"""Connections to hosts that are slow or stand still for a while, and hosts without room: what then becomes of a study."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.command import command as tunnelmark
from support.command import environment as with_code
from support.command import finished, small_study
from support.host_network import COMMAND, HostNetwork, host_network, is_root_with_server, rests
from support.sshd import SshHost

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not is_root_with_server(), reason="needs sshd, and root to start it"),
]
ROLES = [["node"], ["node"], ["middle"]]
LATENCY = """\
[[workload]]
workload = "latency"
options = { sizes = [100], load = ["0 %"], duration = "1 s" }
"""
FAR = 0.05  # seconds each way, as to another continent


def began(network: HostNetwork, study: Path, results: Path) -> list[str]:
    return tunnelmark(
        "run", study, "--backend", "ssh", "--inventory", network.file, "--out", results, path=study.parent
    )


def journal(results: Path, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    return [each[kind] for each in lines if kind in each]


@pytest.mark.proof("hosts that are far from the command measure as others do")
def test_hosts_that_are_far_away_measure_as_others_and_say_how_little_is_known_of_their_clocks(tmp_path: Path):
    study, results = small_study(tmp_path), tmp_path / "results"
    study.write_text(study.read_text() + LATENCY)
    with host_network(tmp_path, ROLES, far=FAR) as network:
        done = finished(began(network, study, results), with_code(), within=280)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        assert rests(network) == []
    trials = journal(results, "trial")
    usable = [each for each in trials if each["outcome"] == "ok"]
    assert {each["workload"] for each in usable} == {"ping", "latency"}, [each.get("message") for each in trials]
    medians = [
        sample["value"]
        for each in usable
        for sample in each["samples"]
        if sample["metric"] == "rtt_median" and not sample["time"]
    ]
    assert medians and all(0 < each < 200 for each in medians), "there and back, whatever the clocks show"
    clocks = [float(each["notes"]["clocks"].split("at most ")[1].split(" ms")[0]) for each in usable]
    assert all(2e3 * FAR <= each < 20_000 for each in clocks), "each of two clocks is known to half of a round trip"


def servers(host: SshHost) -> list[int]:
    """The processes of a host's OpenSSH server."""
    found = []
    for process in host.processes():
        with suppress(OSError):  # it has ended
            if (process / "comm").read_text().startswith("sshd"):
                found.append(int(process.name))
    return found


def test_a_connection_that_stands_still_for_a_while_loses_nothing(tmp_path: Path):
    study, results = small_study(tmp_path), tmp_path / "results"
    study.write_text(study.read_text().replace('duration = "1 s"', 'duration = "4 s"'))
    with host_network(tmp_path, ROLES) as network:
        with subprocess.Popen(
            began(network, study, results), env=with_code(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            raw, until = results / "raw", time.monotonic() + 120
            while not list(raw.glob("*/*client*")) and time.monotonic() < until and process.poll() is None:
                time.sleep(0.1)
            stopped = servers(network.hosts[0])
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(3.0)
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            said, _ = process.communicate(timeout=240)
        assert stopped and process.returncode in (0, 1), said
        assert rests(network) == []
    trials = journal(results, "trial")
    assert {each["arm"] for each in trials if each["outcome"] == "ok"} == {"direct", "direct-again"}, said


def test_a_host_without_room_for_what_a_workload_needs_says_so(tmp_path: Path):
    study, results = small_study(tmp_path), tmp_path / "results"
    study.write_text(study.read_text().replace('workload = "ping"\noptions = { duration = "1 s" }', 'workload = "nix"'))
    command = COMMAND.replace("env ", "env XDG_CACHE_HOME=/run/cache ", 1)
    with host_network(tmp_path, ROLES, command=command) as network:
        network.hosts[1].run("mkdir", "/run/cache")
        network.hosts[1].run("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", "/run/cache")
        done = finished(began(network, study, results), with_code(), within=240)
        assert done.returncode == 2 and "host h2: nix" in done.stderr, done.stdout + done.stderr
        assert "No space left on device" in done.stderr and "it needs room" in done.stderr
        assert not (results / "journal.jsonl").exists() and rests(network) == []
