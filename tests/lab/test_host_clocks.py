"""Hosts whose clocks count from other moments: what their nodes say is on one clock, and delays one way come with their error."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from support.asking import PATIENCE
from support.command import command as tunnelmark
from support.command import environment as with_code
from support.command import finished
from support.host_network import HostNetwork, host_network, is_root_with_server
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.model.observation import Observation
from tunnelmark.model.probe_plan import PROBES, Pace
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.plan.model import Profile
from tunnelmark.run.link_observation import observe
from tunnelmark.units import Duration

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not is_root_with_server(), reason="needs sshd, and root to start it"),
]
FILES = Files.standard()
CLOCK = "import time; print(time.monotonic_ns())"
DELAYED = Direction(delay=Duration(0.02))

STUDY = """\
[study]
name = "clocks"
title = "Workloads that compare the clocks of two nodes"
description = "Delays one way, and a gap whose begin is on the command's clock."
seed = 7
blocks = 1
profiles = ["gigabit"]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[workload]]
workload = "latency"
options = { sizes = [100], load = ["0 %"], duration = "1 s" }

[[workload]]
workload = "connect"
options = { event = "link-flap", outage = "1 s", duration = "4 s" }
"""


@pytest.fixture
def network(tmp_path: Path) -> Iterator[HostNetwork]:
    with host_network(tmp_path, [["node"], ["node"], ["middle"]]) as made:
        yield made


def test_the_nodes_of_all_hosts_have_the_clock_of_the_command(network: HostNetwork):
    shown = sorted(int(host.run("python3", "-c", CLOCK)) for host in network.hosts)
    assert all(later - earlier > 80_000e9 for earlier, later in pairwise(shown)), "the hosts' own are a day apart"

    async def go() -> None:
        pair, gigabit = load_topology("pair", FILES), load_profile("gigabit", FILES)
        async with SshLabs(network.inventory) as labs, labs.lab(pair, gigabit) as lab:
            for name, node in lab.nodes.items():
                before = time.monotonic_ns()
                shown = await node.run(["python3", "-c", CLOCK], timeout=PATIENCE)
                said, after = int(shown.stdout), time.monotonic_ns()
                known = (await lab.clocks())[name]
                assert before - known.error < said - known.monotonic < after + known.error
            clocks = await lab.clocks()
            assert set(clocks) == {"a", "b", "middle"}
            assert all(abs(each.monotonic) <= 100_000_000 and each.error > 0 for each in clocks.values())

    asyncio.run(go())


def test_what_is_measured_between_hosts_is_on_one_clock(network: HostNetwork, tmp_path: Path):
    study, results = tmp_path / "clocks.toml", tmp_path / "results"
    study.write_text(STUDY)
    argv = tunnelmark("run", study, "--backend", "ssh", "--inventory", network.file, "--out", results, path=tmp_path)
    done = finished(argv, with_code(), within=240)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    trials = [each["trial"] for each in lines if "trial" in each]
    usable = [each for each in trials if each["outcome"] == "ok"]
    assert {each["workload"] for each in usable} == {"latency", "connect"}, [each.get("failure") for each in trials]
    assert all(each["notes"]["clocks"].startswith("the nodes' clocks differ by at most") for each in usable)
    found: dict[str, list[float]] = {}
    for each in usable:
        for sample in each["samples"]:
            if sample["time"] is None:
                found.setdefault(sample["metric"], []).append(sample["value"])
    for way in ("forward", "back"):  # within what a busy machine makes of it: the clocks of the hosts are a day apart
        assert min(map(abs, found[f"{way}_p50_idle_100"])) < 200, "ms"
    assert all(0.5 < gap < 60 for gap in found["gap"]), "of the link that was down for a second"


def test_a_look_at_a_link_between_hosts_puts_both_stamps_on_one_clock(network: HostNetwork, tmp_path: Path):
    profile = Profile("delayed", "20 ms each way", "for tests", DELAYED, DELAYED)

    async def go() -> Observation:
        async with SshLabs(network.inventory) as labs:
            return await observe(labs, load_topology("pair", FILES), profile, Pace(1000, 0.001), tmp_path / "raw")

    seen = asyncio.run(go())
    assert 0 < seen.clock_error < 0.2
    for flow in (seen.forward, seen.back):
        probes = flow.phase(PROBES)
        delay = float(np.min(probes["received"] - probes["sent"])) / 1e9
        assert 0.02 - seen.clock_error <= delay < 0.1 + seen.clock_error
    assert seen.begun is not None and abs(seen.begun - seen.zero) < 10e9, (
        "and so is the moment at which the link's time began"
    )


def test_a_link_between_hosts_is_checked_with_limits_that_know_of_their_clocks(network: HostNetwork):
    argv = ("check-link", "home-cable", "--probes", "500", "--backend", "ssh", "--json", "--inventory")
    done = finished(tunnelmark(*argv, network.file), with_code(), within=120)
    assert done.returncode in (0, 1), done.stderr  # 1: a busy machine may be late
    said = {line["name"]: line for line in json.loads(done.stdout)["lines"] if line["way"] == "a>b"}
    assert "the ends' clocks are known to" in said["delay_mean"]["note"] and said["delay_mean"]["achieved"] < 1000
