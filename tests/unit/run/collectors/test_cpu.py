"""Whose account the kernel's work is in: a node's on cores of its own, nobody's on shared ones, the links' on theirs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tunnelmark.host import softirq
from tunnelmark.host.placement import Placement, place
from tunnelmark.linux import cgroups
from tunnelmark.linux.cgroups import Used
from tunnelmark.run.collectors import _counts, cpu
from tunnelmark.run.collectors.base import CollectorContext, ObservedNode


@dataclass
class Machine:
    """What the kernel counts, by core or by node; `pass_` lets two seconds pass in which each grew by so much."""

    time: float = 0.0
    used: dict[str, float] = field(default_factory=dict)
    softirq: dict[int, float] = field(default_factory=dict)
    workers: dict[int, float] = field(default_factory=dict)
    unbilled: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    bytes: int = 0
    overlay: int = 4


def watched(
    monkeypatch: pytest.MonkeyPatch, placement: Placement, after: Machine, lacking: str | None = None
) -> tuple[dict[str, float], dict[str, str]]:
    """What is seen between a machine at rest and this one, over links of 1 GB."""
    now = Machine()
    clock = iter((0.0, 2.0))
    monkeypatch.setattr(cpu, "Stopwatch", lambda: lambda: next(clock))
    monkeypatch.setattr(cgroups, "used", lambda group: Used(now.used.get(str(group), 0.0), 0.0))
    for name, given in (("seconds", "softirq"), ("workers", "workers"), ("unbilled", "unbilled")):
        monkeypatch.setattr(softirq, name, lambda given=given: dict(getattr(now, given)))
    monkeypatch.setattr(softirq, "handling", dict)
    monkeypatch.setattr(softirq, "lacking", lambda: lacking)
    monkeypatch.setattr(
        _counts,
        "traffic",
        lambda context, node: _counts.TrafficCounts(
            now.bytes, now.bytes, 0, 0, 10 * now.bytes, 0, 0, 0, 0, now.overlay
        ),
    )
    first, *_, last = placement.nodes
    nodes = {name: ObservedNode(0, Path(name), cores) for name, cores in placement.nodes.items()}
    middle = ObservedNode(0, Path("middle"), placement.links if placement.links_apart else ())
    sampler = cpu._Cpu(CollectorContext(nodes, first, last, Path(), middle=middle))
    asyncio.run(sampler.begin())
    now = after
    seen = asyncio.run(sampler.end())
    seen = seen.joined(cpu.conclude(seen))
    return {sample.metric: sample.value for sample in seen.samples}, dict(seen.notes)


BUSY = Machine(
    used={"a": 1.0, "b": 0.5, "middle": 0.125},
    softirq={0: 0.1, 1: 0.2, 2: 0.01},
    workers={0: 0.3, 1: 0.4, 2: 0.02, 3: 0.07},
    unbilled={0: 0.05, 1: 0.06, 2: 0.005},
    bytes=10**9,
)


def test_workers_ksoftirqd_and_softirq_of_a_nodes_core_are_its_own(monkeypatch: pytest.MonkeyPatch):
    values, notes = watched(monkeypatch, place("ab", [(core,) for core in range(4)]), BUSY)
    assert values["cpu_per_gb_source"] == pytest.approx(1.0 + 0.1 + 0.3 + 0.05)
    assert values["cpu_per_gb_target"] == pytest.approx(0.5 + 0.2 + 0.4 + 0.06)
    assert values["cpu_workers_source"] == pytest.approx(150)
    assert notes == {}


def test_the_laboratorys_own_work_is_a_figure_of_its_own(monkeypatch: pytest.MonkeyPatch):
    values, _ = watched(monkeypatch, place("ab", [(core,) for core in range(4)]), BUSY)
    assert values["cpu_per_gb_lab"] == pytest.approx(0.125 + 0.01 + 0.005), "without workers, which links do not need"
    assert values["cpu_links"] == pytest.approx(70)
    assert values["cpu_workers_elsewhere"] == pytest.approx(45), "of cores 2 and 3"
    assert "cpu_per_gb_shared" not in values


def test_without_a_core_for_the_links_only_their_emulator_is_told_apart(monkeypatch: pytest.MonkeyPatch):
    values, notes = watched(monkeypatch, place("ab", [(0,), (1,)]), BUSY)
    assert values["cpu_per_gb_lab"] == pytest.approx(0.125)
    assert values["cpu_per_gb_source"] == pytest.approx(1.45)
    assert notes == {"cpu_per_gb_lab": cpu.BESIDE}


def test_on_a_shared_core_the_kernels_work_is_nobodys_and_said(monkeypatch: pytest.MonkeyPatch):
    values, notes = watched(monkeypatch, place("ab", [(0,)]), BUSY)
    assert values["cpu_per_gb_source"] == pytest.approx(1.0)
    assert values["cpu_per_gb_shared"] == pytest.approx(0.1 + 0.3 + 0.05)
    assert notes["cpu_workers_source"] == notes["cpu_ksoftirqd_target"] == cpu.SHARED


def test_what_this_machine_cannot_count_is_said(monkeypatch: pytest.MonkeyPatch):
    pair = place("ab", [(core,) for core in range(4)])
    values, notes = watched(monkeypatch, pair, BUSY, lacking="the kernel does not count")
    assert notes["cpu_unbilled_source"] == f"{cpu.INCOMPLETE}: the kernel does not count"
    assert "cpu_unbilled_source" not in values


def test_there_is_no_cost_of_a_gigabyte_where_the_vpn_s_interface_was_created_again(monkeypatch: pytest.MonkeyPatch):
    """What passed before is in no counter: a restart in the middle doubled the CPU per gigabyte."""
    values, notes = watched(monkeypatch, place("abc", [(0,), (1,)]), replace(BUSY, overlay=5))
    assert not [name for name in values if name.startswith("cpu_per_gb")]
    assert {notes[f"cpu_per_gb_{what}"] for what in ("source", "target", "lab")} == {_counts.CREATED_AGAIN}
    assert values["cpu_source"] > 0


def test_every_figure_is_declared(monkeypatch: pytest.MonkeyPatch):
    values, notes = watched(monkeypatch, place("abc", [(0,), (1,)]), BUSY)
    assert {*values, *notes} <= {metric.name for metric in cpu.METRICS}
