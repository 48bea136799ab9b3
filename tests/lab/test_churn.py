"""Churn on real daemons: what is done leaves the mesh as it was, gaps are the events', and what leaks is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.labs import in_lab
from support.trials import carried
from tunnelmark.lab.labs import Lab
from tunnelmark.linux.packet_sampler import PacketSampler
from tunnelmark.workloads.base import Reading

pytestmark = pytest.mark.root

HOLDS = pytest.mark.proof(
    "what a churn's events do is accounted for, and what the VPN holds after it is what it held before"
)

SHORT: dict[str, Any] = {
    "events": ["restart", "restart-fresh", "link-flap", "change-address"],
    "duration": "16 s",
    "every": "4 s",
    "outage": "500 ms",
    "recover": "3500 ms",
    "seed": 3,
}
LEAK = """
import os, sys, time
kept, memory = [], []
while True:
    kept.append(os.open("/dev/null", os.O_RDONLY))
    memory.append(bytearray(os.urandom(1 << 16)))
    if len(kept) % 40 == 0 and os.fork() == 0:
        time.sleep(3600)
    time.sleep(0.05)
"""
"""A program that keeps a file and 64 KiB open every 50 ms, and a process every 2 s."""


def whole(reading: Reading) -> dict[str, float]:
    return {sample.metric: sample.value for sample in reading.samples if sample.time is None}


def done(outputs: Mapping[str, str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outputs["events"].splitlines()[1:]]


def all_was_done(reading: Reading, outputs: Mapping[str, str]) -> None:
    values, kinds = whole(reading), [line["kind"] for line in done(outputs)]
    assert sorted(kind for kind in kinds if kind != "count-holdings") == [
        "change-address",
        "link-down",
        "link-up",
        "restart",
        "restart-fresh",
        "restore-address",
    ]
    assert values["events"] == 4
    assert values["gap_link_flap"] >= 0.4
    assert values["lost_events"] > 0


@HOLDS
def test_every_event_is_done_on_the_bare_link(tmp_path: Path) -> None:
    reading, outputs = carried("churn", "direct", tmp_path, **SHORT)
    all_was_done(reading, outputs)
    assert whole(reading)["processes"] == 0


@HOLDS
def test_nebula_holds_as_much_after_it_as_before(tmp_path: Path) -> None:
    reading, outputs = carried("churn", "nebula", tmp_path, **SHORT)
    values = whole(reading)
    looks = [line["held"] for line in done(outputs) if line["kind"] == "count-holdings"]
    assert len(looks) == 5
    assert {node: held["processes"] for node, held in looks[0].items()} == {"a": 1, "b": 1}
    assert values["processes_more"] == 0
    assert abs(values["files_more"]) <= 4, looks  # sockets that Go's runtime opens for a moment
    assert values["memory"] > 1


def test_every_event_is_done_its_gap_is_its_own_and_a_program_that_leaks_is_found(tmp_path: Path) -> None:
    async def leak(lab: Lab) -> None:
        await lab.nodes["b"].spawn(["/usr/bin/python3", "-c", LEAK])

    reading, outputs = carried("churn", "nebula", tmp_path, leak, **SHORT)
    all_was_done(reading, outputs)
    values = whole(reading)
    looks = [line["held"] for line in done(outputs) if line["kind"] == "count-holdings"]
    assert values["files_more"] >= 50
    assert values["files_second_half"] >= 25
    assert values["memory_more"] >= 3
    assert values["processes_more"] >= 2
    files = [look["b"]["files"] for look in looks]
    assert files == sorted(files), "it grows from event to event"
    assert looks[-1]["a"]["processes"] == looks[0]["a"]["processes"] > 0, "and on that node only"


@HOLDS
def test_what_takes_the_whole_node_away_is_undone_as_well(tmp_path: Path) -> None:
    events = ["reboot", "partition", "udp-cut", "restart"]
    reading, outputs = carried("churn", "tinc", tmp_path, **(SHORT | {"events": events}))
    values = whole(reading)
    assert {name for name in values if name.startswith("gap_")} >= {"gap_reboot", "gap_partition", "gap_udp_cut"}
    assert min(values["gap_reboot"], values["gap_partition"], values["gap_udp_cut"]) >= 0.4
    assert values["events"] == 4
    assert values["processes_more"] == 0
    looks = [line["held"] for line in done(outputs) if line["kind"] == "count-holdings"]
    assert len(looks) == 5


def test_the_path_is_watched_on_where_a_link_was_down(tmp_path: Path) -> None:
    async def body(lab: Lab) -> int:
        node = lab.nodes["b"]
        sampler = PacketSampler(node.pid, "eth0")
        try:
            sampler.listen(1.0)
            for state in ("down", "up"):
                await node.run(["ip", "link", "set", "dev", "eth0", state])
                list(sampler.heads())
            await lab.nodes["a"].run(["ping", "-n", "-q", "-c3", "-i0.05", "-w20", str(lab.address("b"))], timeout=60)
            return len(list(sampler.heads()))
        finally:
            sampler.close()

    assert in_lab(body) >= 1
