"""The time for which packets on the wire are counted is that in which others count theirs: opening and closing sockets takes long."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.run.collectors import _counts, collectors, wire_bytes
from tunnelmark.run.collectors.base import CollectorContext, ObservedNode, Stopwatch, Turn


def test_time_counts_from_when_the_sockets_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def tap(*_: Any) -> None:
        done.append("a socket is open")

    def watch() -> Stopwatch:
        done.append("time runs")
        return Stopwatch()

    monkeypatch.setattr(wire_bytes, "Tap", tap)
    monkeypatch.setattr(wire_bytes, "Stopwatch", watch)
    monkeypatch.setattr(_counts, "interface_counts", lambda _: {"eth0": (0, 0, 0, 0)})
    monkeypatch.setattr(_counts, "traffic", lambda *_: _counts.TrafficCounts(*[0] * 9))
    monkeypatch.setattr(CollectorContext, "proc", lambda *_: "")
    nodes = {"a": ObservedNode(1, interface="tun0"), "b": ObservedNode(2, interface="tun0")}
    asyncio.run(wire_bytes.COLLECTOR.watch(CollectorContext(nodes, "a", "b", tmp_path)).begin())
    assert done == ["a socket is open"] * 3 + ["time runs"]


def test_those_that_close_packet_sockets_end_after_all_others() -> None:
    """A packet socket is closed after all cores have rested once, which takes tens of milliseconds."""
    turns = {name: each.turn for name, each in collectors().items()}
    assert turns["wire"] < Turn.QUICK
    assert turns["path"] < turns["wire"], "and of the two, the one that divides by time ends first"
