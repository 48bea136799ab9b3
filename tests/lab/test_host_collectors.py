"""What nodes on hosts cost, and which way their traffic went: each host looks at its own nodes, and what needs both ends is of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.command import command as tunnelmark
from support.command import environment as with_code
from support.command import finished, journal, small_study
from support.host_network import host_network, is_root_with_server, rests
from tunnelmark.model import path_looks

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not is_root_with_server(), reason="needs sshd, and root to start it"),
]
_TUNNEL = 60  # bytes that WireGuard adds to an IPv4 packet: IPv4 20, UDP 8, its own 32


def trials(folder: Path, roles: list[list[str]], study: Path) -> list[dict[str, Any]]:
    """The trials of a study over hosts with these roles, whose raw output is in `results/raw`."""
    results = folder / "results"
    with host_network(folder, roles) as network:
        argv = tunnelmark("run", study, "--backend", "ssh", "--inventory", network.file, "--out", results)
        done = finished(argv, with_code(), within=280)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        assert rests(network) == []
    return [each for each in journal(results) if each["outcome"] == "ok" and each["workload"] == "tcp"]


def values(trial: Mapping[str, Any]) -> dict[str, float]:
    return {each["metric"]: each["value"] for each in trial["samples"] if each["time"] is None}


def test_what_nodes_on_hosts_cost_is_seen_where_they_run(tmp_path: Path) -> None:
    # A rate and nothing else: a busy machine adds to delays, and its trials would be void.
    study = small_study(tmp_path, arms=["wireguard-go"], profile="fast-ethernet", tcp=True)
    usable = {each["arm"]: each for each in trials(tmp_path, [["node"], ["node"], ["middle"]], study)}
    direct, tunnel = values(usable["direct"]), values(usable["wireguard-go"])
    for seen in (direct, tunnel):
        assert all(seen[f"{what}_{end}"] > 0 for what in ("cpu", "cpu_per_packet") for end in ("source", "target"))
        assert seen["cpu_links"] > 0, "of the middle host"
        assert seen[path_looks.DIRECT] > 95 and seen[path_looks.RELAYED] < 5
    machine = usable["direct"]["host"]
    assert machine["lab_cpu"] > 0 and {"other_cpu", "steal", "pause_share", "pause_longest"} <= set(machine)
    assert tunnel["cpu_per_gb_source"] > 0 and tunnel["cpu_per_gb_lab"] > 0
    assert tunnel["memory_load_source"] > 1 and tunnel["memory_load_target"] > 1, "MiB"
    assert direct["wire_bytes_per_byte"] == pytest.approx(1, abs=0.02)
    assert 1 + _TUNNEL / 1420 - 0.02 < tunnel["wire_bytes_per_byte"] < 1 + 2 * _TUNNEL / 1420
    limits = usable["wireguard-go"]["limits"]
    assert all(limits[f"{what}_{end}"] > 0 for what in ("core", "used", "thread") for end in ("source", "target"))
    assert limits["wire_source"] > limits["wire_target"] > 0
    looks = json.loads(next((tmp_path / "results" / "raw").glob("*/watch.path.json")).read_text())
    assert set(looks["bytes that arrived"]) == {"a", "b"}
    times = [look["time"] for look in looks["looks"]]
    assert times == sorted(times)


@pytest.mark.proof("the path of an arm over hosts is seen, also through a third host")
def test_a_path_through_a_third_host_is_seen(tmp_path: Path) -> None:
    study = small_study(tmp_path, arms=["nebula-relay"], profile="wifi-good+fast-ethernet", tcp=True)
    study.write_text(study.read_text().replace('topologies = ["pair"]', 'topologies = ["lan-relay"]'))
    usable = trials(tmp_path, [["node"], ["node"], ["node"], ["middle"]], study)
    assert all(each["limits"]["emulator"] > 0 for each in usable)
    seen = {each["arm"]: values(each) for each in usable}
    assert seen["nebula-relay"][path_looks.RELAYED] > 90
    assert seen["nebula-relay"]["cpu_per_gb_others"] > 0, "of the relay, for what the sender's host sent"
    assert seen["direct"][path_looks.DIRECT] > 95
