"""Two builds: which verdict follows from which blocks, when a run ends, and that an interval holds at every look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import exp, inf, log, sqrt

import numpy as np
import pytest

from tunnelmark.analyse import intervals, judge
from tunnelmark.analyse.build_change import BuildVerdict, builds, decision, more_needed, needed, radius
from tunnelmark.plan.enough import Enough
from tunnelmark.record.results import Results
from unit.builders import TCP, UDP, Study

ENOUGH = Enough(8, 40, change=0.03)
VPNS = {"old": "tinc", "new": "tinc", "old-again": "tinc"}


def results(
    new: float = 1.0,
    *,
    noise: float = 0.01,
    blocks: int = 12,
    again: float = 1.0,
    fails: Mapping[str, int] | None = None,
    enough: Enough = ENOUGH,
) -> Results:
    """A study of two builds by TCP: the new one's true ratio, that of the old one's twin, and how often arms fail."""
    study = Study(
        arms=("direct", "old", "new", "old-again"),
        vpns=VPNS,
        same_as={"old-again": "old"},
        workloads=(TCP,),
        tcp={"old": 0.5, "new": 0.5 * new, "old-again": 0.5 * again},
        noise=noise,
        blocks=blocks,
        fails=tuple((arm, "tcp", block) for arm, count in (fails or {}).items() for block in range(1, count + 1)),
    )
    found = study.results()
    return replace(found, plan=replace(found.plan, enough=enough))


def verdict(*args: float, enough: Enough = ENOUGH, **more: object) -> BuildVerdict:
    return builds(judge(results(*args, enough=enough, **more)), enough)  # type: ignore[arg-type]


def test_a_slower_build_is_found_with_its_size():
    found = verdict(0.9)
    assert (found.outcome, found.final, found.apart) == ("slower", True, False)
    worse = found.lines[0].worse_by()
    assert worse is not None
    middle, low, high = worse
    assert low < 0.1 < high and 0.05 < low < middle < high < 0.15


def test_a_faster_build_is_no_slowdown():
    assert verdict(1.1).outcome == "faster"


def test_equal_builds_are_shown_to_be_equal_within_the_change():
    found = verdict(1.0)
    assert (found.outcome, found.final) == ("no change", True)
    low, high = found.lines[0].interval or (0, inf)
    assert -log(1.03) < log(low) < log(high) < log(1.03)


def test_a_slowdown_that_is_smaller_than_stated_is_no_change():
    found = verdict(0.99, noise=0.002)
    assert found.outcome == "no change"
    assert (found.lines[0].interval or (0, 2))[1] < 1  # it is there, and shown


def test_a_metric_that_is_better_when_lower_is_slower_when_higher():
    cheap = replace(TCP, metrics=(replace(TCP.metrics[0], better="lower"),))
    found = results(1.1)
    found = replace(found, plan=replace(found.plan, workloads=(cheap,)))
    assert builds(judge(found), ENOUGH).outcome == "slower"


def test_noise_leaves_it_undecided_and_says_how_many_blocks_would_do():
    found = verdict(1.0, noise=0.06, blocks=8)
    assert (found.outcome, found.final) == ("undecided", False)
    more = more_needed(found, 8)
    assert more is not None and more % 4 == 0 and more > 20


def test_an_old_build_that_differs_from_itself_decides_nothing():
    found = verdict(0.8, again=0.9)
    assert (found.outcome, found.apart, found.final) == ("undecided", True, True)


def test_an_old_build_that_differs_from_itself_by_less_than_the_change_is_no_matter():
    assert not verdict(0.8, again=0.99, noise=0.002).apart


def test_a_new_build_that_does_not_work_is_slower():
    found = verdict(1.0, fails={"new": 12})
    assert (found.outcome, found.lines[0].state) == ("slower", "fails")
    assert found.lines[0].why == "12 of 12 trials fail with the new build, 0 of 12 trials fail with the old one"


def losing(new: float, old: float = 0.0, blocks: int = 12) -> Results:
    """Two builds by UDP, of which so many per cent are lost."""
    study = Study(
        arms=("direct", "old", "new", "old-again"),
        vpns=VPNS,
        same_as={"old-again": "old"},
        workloads=(UDP,),
        loss={"old": old, "new": new, "old-again": old},
        noise=0.01,
        blocks=blocks,
    )
    found = study.results()
    return replace(found, plan=replace(found.plan, enough=ENOUGH))


def test_a_metric_that_was_set_aside_may_hide_a_change_so_nothing_is_excluded():
    found = builds(judge(losing(2.0)), ENOUGH)
    assert [line.state for line in found.lines] == ["no change", "set aside"]
    assert (found.outcome, found.final) == ("undecided", True)
    assert [line.metric.name for line in found.set_aside] == ["loss"]


@pytest.mark.parametrize("new", [0.0, 0.4])
def test_what_is_zero_and_differs_within_the_margin_in_every_block_has_not_changed(new):
    found = builds(judge(losing(new)), ENOUGH)
    assert [line.state for line in found.lines] == ["no change", "no change"]
    assert found.outcome == "no change"
    assert found.lines[1].why == "it is zero in some block, and within the margin in all"


def test_two_builds_that_carry_nothing_are_not_alike_in_what_they_carry():
    found = results()
    rows = tuple(replace(row, samples=(replace(row.samples[0], value=0.0),)) for row in found.trials)
    assert builds(judge(replace(found, trials=rows)), ENOUGH).lines[0].state == "set aside"


def test_a_metric_that_is_worse_is_slower_whatever_was_set_aside():
    assert builds(judge(losing(20.0)), ENOUGH).outcome == "slower"  # delivered: 80 % of the old one's


def test_one_failure_is_no_proof_and_an_old_build_that_does_not_work_no_measure():
    assert verdict(1.0, fails={"new": 1}).lines[0].state == "no change"
    assert verdict(1.0, fails={"old": 12}).lines[0].state == "set aside"


def test_a_named_metric_decides_in_place_of_the_primary_ones():
    found = verdict(0.9, enough=replace(ENOUGH, metrics=("retransmits",)))
    assert [line.metric.name for line in found.lines] == ["retransmits"]


def decided(found: Results, spent: float = 0.0, enough: Enough = ENOUGH) -> tuple[str, int]:
    made = decision(builds(judge(found), enough), enough, found.plan.blocks, spent=spent, block_seconds=60.0)
    return made.decided, made.to


def test_a_run_goes_on_in_batches_until_it_is_decided_or_at_its_end():
    assert decided(results(0.9)) == ("found", 12)
    assert decided(results(1.0)) == ("found", 12)
    assert decided(results(1.0, noise=0.06, blocks=8)) == ("more", 12)
    assert decided(results(1.0, noise=0.06, blocks=40)) == ("cap", 40)
    timed = replace(ENOUGH, budget=600.0)
    assert decided(results(1.0, noise=0.06, blocks=8, enough=timed), 480.0, timed) == ("more", 10)
    assert decided(results(1.0, noise=0.06, blocks=8, enough=timed), 590.0, timed) == ("budget", 8)
    assert decided(results(0.8, again=0.9)) == ("nothing", 12)


def test_a_run_that_was_not_asked_has_no_verdict():
    with pytest.raises(ValueError, match="not asked"):
        builds(judge(results()), Enough(8, 40, 0.05))


def test_the_interval_is_as_wide_as_its_paper_has_it():
    # Where t is at the bound, the mixture's likelihood ratio is one over the level.
    for blocks, level in ((8, 0.05), (16, 0.05), (40, 0.01)):
        t = radius(blocks, 1.0, level) * sqrt(blocks)
        weight, freedom = 1 + blocks, blocks - 1
        ratio = weight**-0.5 * ((1 + t**2 / freedom) / (1 + t**2 / (freedom * weight))) ** (blocks / 2)
        assert ratio == pytest.approx(1 / level)
    assert radius(3, 1.0, 0.05) == inf
    assert 1.6 < radius(40, 1.0, 0.05) * sqrt(40) / intervals.t_quantile(39) < 1.7


def test_it_holds_at_every_look_in_95_of_100_runs():
    values = np.random.default_rng(1).normal(size=(2000, 60))
    held = np.ones(len(values), dtype=bool)
    for blocks in range(5, 61):
        seen = values[:, :blocks]
        held &= np.abs(seen.mean(axis=1)) <= radius(blocks, 1.0, 0.05) * seen.std(axis=1, ddof=1)
    assert held.mean() >= 0.95


def test_a_stated_change_is_seen_nine_times_in_ten_with_the_blocks_that_are_said_to_do():
    count = needed(8, 0.04, log(1.03), 0.05)
    assert count is not None
    values = log(1.03) + 0.04 * np.random.default_rng(2).normal(size=(2000, count))
    seen = values.mean(axis=1) > radius(count, 1.0, 0.05) * values.std(axis=1, ddof=1)
    assert 0.87 < seen.mean() < 0.94
    assert needed(8, 3.0, log(1.03), 0.05) is None
    assert exp(radius(count, 0.04, 0.05)) < 1.03
