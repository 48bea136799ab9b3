"""Looks at what a machine carries: which rate follows from them, and how it is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tunnelmark.doctor import capacity
from tunnelmark.doctor.capacity import (
    BARE,
    FILLS,
    HELD,
    CapacityLook,
    Chosen,
    Lateness,
    decided,
    holds,
    least_bad,
    margin,
    reason,
)
from tunnelmark.doctor.performance import BUSY, GIGABIT, PAIR
from tunnelmark.plan import auto
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.plan.profiles import Source, parse_profile
from tunnelmark.units import Rate
from tunnelmark.workloads.tcp import WORKLOAD

FILES = Files.standard()
FAST, SLOW = Rate.parse("1 Gbit/s"), Rate.parse("200 Mbit/s")


def filled(share: float, rate: Rate = FAST) -> CapacityLook:
    """A look at a share of what an Ethernet of that rate carries in full frames."""
    return CapacityLook(share * round(rate * 1514 / 1538), 0.0)


def late(milliseconds: float, trouble: str | None = None) -> CapacityLook:
    seconds = milliseconds / 1e3
    return CapacityLook(1e8, 0.0, Lateness(1000, seconds / 10, seconds, 2 * seconds), trouble)


def test_a_link_is_filled_by_what_the_gate_of_a_study_asks():
    assert next(metric.fills for metric in WORKLOAD.metrics if metric.primary) == FILLS
    assert holds(GIGABIT, filled(FILLS))
    assert not holds(GIGABIT, filled(FILLS - 0.001))


def test_an_emulated_link_holds_without_trouble_and_by_what_is_left_of_its_bound():
    assert margin(BUSY, late(0.25)) == pytest.approx(0.75)
    assert not holds(BUSY, late(3.0, "late"))
    assert not holds(BUSY, late(0.1, "the emulator dropped 3 packets unasked"))


def test_a_link_that_states_nothing_always_holds():
    assert holds(BARE, CapacityLook(0.0, 0.0))


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([], ""),
        ([True], ""),
        ([True, False], ""),
        ([True, True], "holds"),
        ([False, False], "fails"),
        ([True, False, True], "holds"),
    ],
)
def test_most_of_the_looks_decide(held, said):
    assert decided(held) == said


def test_where_no_rate_holds_the_highest_of_the_best_is_taken():
    tried = {FAST: [filled(0.83)], SLOW: [filled(0.941, SLOW)], Rate(10**8): [filled(0.944, Rate(10**8))]}
    assert least_bad(GIGABIT, tried) == SLOW


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ('rate = "auto, at most 10 Mbit/s"', "10 Mbit/s"),
        ('rate = "auto, at most 30 Mbit/s"', "20 Mbit/s"),
        ('forward = { rate = "1 Gbit/s" }\nback = { rate = "auto, at most 100 Mbit/s" }', "100 Mbit/s"),
        ('rate = "auto, at most 500 Mbit/s"', "500 Mbit/s"),
    ],
)
def test_no_rate_that_is_chosen_is_above_the_profile_s_bound(text, rate, monkeypatch):
    async def full(_labs, _topology, profile):
        return CapacityLook(float(profile.carried or 10**10), 0.0)

    monkeypatch.setattr(capacity, "bulk", full)
    head = '[profile]\ntitle = "mine"\nsource = "mine"\nqueue = "512 KiB"\n'
    bounded = parse_profile([Source("mine", "mine.toml", head + text)])
    labs: Any = None
    chosen = asyncio.run(capacity.choose(labs, PAIR, bounded))
    assert (chosen.rate, chosen.holds) == (Rate.parse(rate), True)
    assert bounded.auto is not None and max(chosen.tried) <= bounded.auto


def test_the_reason_tells_what_was_tried():
    said = reason(Chosen(SLOW, 6.28e9, True, {FAST: [filled(0.83)], SLOW: [filled(0.955, SLOW)]}), GIGABIT)
    assert "carried 6.28 Gbit/s" in said
    assert "filled: 95.5 %, unlike 1 Gbit/s (83.0 %)" in said
    said = reason(Chosen(SLOW, 6.28e9, False, {SLOW: [filled(0.9, SLOW)]}), GIGABIT)
    assert "none was filled (200 Mbit/s (90.0 %))" in said


def test_the_links_that_are_measured_are_those_that_studies_have():
    gigabit, fast = load_profile("gigabit", FILES), load_profile("fast-ethernet", FILES)
    assert (GIGABIT.forward, GIGABIT.back) == (gigabit.forward, gigabit.back)
    assert (BUSY.rate, BUSY.queue) == (fast.rate, fast.queue)
    assert not HELD.only_shaped
    assert load_topology("pair", FILES).nodes == PAIR.nodes


@pytest.mark.root
def test_a_rate_that_is_chosen_is_a_step_below_the_ceiling_and_was_tried():
    from tunnelmark.lab.client import LabClient

    async def choose() -> Chosen:
        async with LabClient() as labs:
            return await capacity.choose(labs, PAIR, load_profile("auto", FILES))

    chosen = asyncio.run(choose())
    assert chosen.rate in auto.steps(10**9, capacity.LOWEST)
    assert chosen.rate in chosen.tried
    assert chosen.rate <= max(auto.SHARE * chosen.ceiling, capacity.LOWEST)
    for rate, looks in chosen.tried.items():
        assert 1 <= len(looks) <= capacity.TIMES
        assert all(look.goodput > 0 and look.whole < rate for look in looks)


@pytest.mark.root
def test_small_packets_and_an_emulated_link_tell_how_many_and_how_late():
    from tunnelmark.lab.client import LabClient

    async def look() -> tuple[CapacityLook, CapacityLook]:
        async with LabClient() as labs:
            return await capacity.datagrams(labs, PAIR, HELD, rate=2_000_000), await capacity.bulk(labs, PAIR, BUSY)

    small, busy = asyncio.run(look())
    assert small.packets > 0
    assert small.goodput == pytest.approx(8 * 64 * small.packets)
    for each in (small, busy):
        assert each.late is not None
        assert each.late.count > 0
        assert 0 <= each.late.p50 <= each.late.p99 <= each.late.longest
    assert busy.goodput > 0
    assert 0 < busy.whole < 1e8
