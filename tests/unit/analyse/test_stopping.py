"""Whether a run has blocks enough: which ratios are waited for, what is decided, and what more would cost."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

from tunnelmark.analyse import intervals, judge, stopping
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.model import Interval
from tunnelmark.plan.enough import Enough
from tunnelmark.record.results import Results, SampleRow, Session
from unit.builders import TCP, Study

ENOUGH = Enough(floor=8, most=40, precision=0.05)
ARMS = ("direct", "direct-again", "tinc", "nebula")


def results(noise: float, *, blocks: int = 8, enough: Enough = ENOUGH, fails: int = 0) -> Results:
    """A study of TCP alone, in which tinc failed so often."""
    failed = tuple(("tinc", "tcp", block) for block in range(1, fails + 1))
    found = Study(arms=ARMS, workloads=(TCP,), blocks=blocks, noise=noise, fails=failed, tcp={"tinc": 0.5}).results()
    return replace(found, plan=replace(found.plan, enough=enough))


def states(found: Results, enough: Enough = ENOUGH) -> dict[str, str]:
    return {each.arm: each.state for each in stopping.widths(judge(found), enough)}


def decided(found: Results, enough: Enough = ENOUGH, spent: float = 0.0) -> tuple[str, int]:
    widths = stopping.widths(judge(found), enough)
    made = stopping.decision(widths, enough, found.plan.blocks, spent=spent, block_seconds=60.0)
    return made.decided, made.to


def test_quiet_arms_are_precise_at_the_floor():
    assert states(results(0.01)) == {"tinc": "precise", "nebula": "precise"}
    assert decided(results(0.01)) == ("precise", 8)


def test_noisy_arms_get_blocks_in_batches_up_to_the_cap():
    assert decided(results(0.07)) == ("more", 12)
    assert decided(results(0.07, blocks=12), replace(ENOUGH, most=14)) == ("more", 14)
    capped = replace(ENOUGH, most=12)
    assert decided(results(0.07, blocks=12, enough=capped), capped)[0] == "cap"


def test_what_could_never_be_so_precise_is_not_waited_for():
    found = stopping.widths(judge(results(0.6)), ENOUGH)
    assert {each.state for each in found} == {"set aside"}
    assert "blocks" in found[0].why
    assert decided(results(0.6))[0] == "nothing"


def test_an_arm_that_mostly_fails_is_not_waited_for_and_one_failure_is_no_proof_of_that():
    assert states(results(0.01, fails=6))["tinc"] == "set aside"
    assert states(results(0.01, fails=6))["nebula"] == "precise"
    assert states(results(0.01, fails=1))["tinc"] == "open"  # a pair lacks


def test_an_arm_that_carried_nothing_in_some_block_is_not_waited_for():
    found = results(0.01)
    rows = [
        replace(row, samples=(SampleRow("goodput", "bit/s", 0.0),)) if row.trial.startswith("003.tinc") else row
        for row in found.trials
    ]
    widths = {each.arm: each for each in stopping.widths(judge(replace(found, trials=tuple(rows))), ENOUGH)}
    assert (widths["tinc"].state, widths["nebula"].state) == ("set aside", "precise")
    assert "zero" in widths["tinc"].why


def test_a_run_ends_before_a_block_that_would_not_end_in_time():
    budget = replace(ENOUGH, budget=600.0)
    noisy = results(0.07, enough=budget)
    assert decided(noisy, budget, spent=480.0) == ("more", 10)  # two blocks of a minute each fit
    assert decided(noisy, budget, spent=550.0) == ("budget", 8)
    assert decided(noisy, budget, spent=700.0) == ("budget", 8)


def test_a_time_without_a_precision_is_filled_up_to_the_cap():
    time = Enough(8, 40, None, 600.0)
    quiet = results(0.01, enough=time)
    assert decided(quiet, time) == ("more", 12)
    assert decided(results(0.01, blocks=40, enough=time), time) == ("cap", 40)


def test_the_forecast_is_where_the_interval_becomes_narrow_enough():
    effects = np.random.default_rng(1).normal(0, 0.1, 8)
    low, high = intervals.student(list(effects), 0.035) or (0.0, 0.0)
    half = (high - low) / 2
    count = stopping.needed(8, half, log(1.05), 0.035)
    spread = effects.std(ddof=1)
    at = [intervals.t_quantile(n - 1, 0.035) * spread / n**0.5 for n in (count - 1, count)]
    assert at[0] > log(1.05) >= at[1]
    assert stopping.least_needed(8, half, log(1.05), 0.035) < count


def test_the_width_is_that_of_the_wider_interval():
    effects = [0.01, -0.01, 0.02, -0.02, 0.0]
    narrow, wide = Interval(exp(-0.001), exp(0.001), "bootstrap"), Interval(exp(-0.2), exp(0.3), "sign")
    found = intervals.student(effects, 0.035)
    assert found is not None
    assert stopping.width(effects, narrow, 0.035) == pytest.approx((found[1] - found[0]) / 2)
    assert stopping.width(effects, wide, 0.035) == pytest.approx(0.25)
    assert stopping.width(effects, None, 0.035) is None


def test_intervals_and_tests_of_a_run_that_stops_when_precise_are_wider():
    fixed = results(0.05)
    plain = judge(replace(fixed, plan=replace(fixed.plan, enough=None)))
    wide = judge(fixed)
    assert sum(one.interval is not None and one.doubt is None for one in plain.pairs) >= 2
    for one, other in zip(plain.pairs, wide.pairs, strict=True):
        if one.interval is not None and one.doubt is None:
            assert other.interval is not None
            assert other.interval.high - other.interval.low > one.interval.high - one.interval.low
            assert one.p is not None
            assert other.p == pytest.approx(min(one.p * 0.05 / 0.035, 1.0))
    timed = judge(replace(fixed, plan=replace(fixed.plan, enough=Enough(8, 40, None, 60.0))))
    assert timed.pairs == plain.pairs  # the clock knows nothing of the results


def test_time_is_counted_over_sessions_and_a_killed_one_ends_with_its_last_attempt():
    found = results(0.01, blocks=8)
    first, half = found.trials[0].started, len(found.trials) // 2
    middle = found.trials[half - 1]
    end = middle.started + sum(middle.phases.values())
    late = first + 10_000.0
    moved = [replace(row, started=row.started - found.trials[half].started + late) for row in found.trials[half:]]
    killed = replace(
        found,
        trials=(*found.trials[:half], *moved),
        sessions=(Session(first, None), Session(late - 1.0, None)),
    )
    assert stopping.spent(killed, late + 60.0) == pytest.approx(end - first + 61.0)
    ended = replace(killed, sessions=(Session(first, 100.0), Session(late - 1.0, None)))
    assert stopping.spent(ended, late) == pytest.approx(101.0)


def test_an_added_block_makes_a_void_trial_good():
    found = results(0.01, blocks=12)
    spoilt = tuple(
        replace(row, outcome="void", samples=(), reason="trial-void", message="late", hint="wait")
        if row.trial.startswith("003.tinc")
        else row
        for row in found.trials
    )
    gate = gates(judge(replace(found, trials=spoilt)))[1]
    assert (gate.name, gate.passed) == ("every trial succeeded", True)
    fixed = replace(found, trials=spoilt, plan=replace(found.plan, enough=None))
    assert gates(judge(fixed))[1].passed is False


def test_a_block_takes_what_most_of_them_took():
    found = results(0.01)
    whole = found.trials[-1].started - found.trials[0].started
    assert stopping.block_seconds(found) == pytest.approx(whole / 8, rel=0.1)


def test_the_price_is_in_whole_batches():
    widths = stopping.widths(judge(results(0.07)), ENOUGH)
    price = stopping.more_needed(widths, 8)
    most = max(each.needed or 0 for each in widths if each.state == "open")
    assert price is not None
    assert price % 4 == 0
    assert price >= most - 8 > price - 4
    assert stopping.more_needed(stopping.widths(judge(results(0.01)), ENOUGH), 8) is None
