"""What arms keep from one condition to another, and that over what direct keeps."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from statistics import fmean

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.across import Kept, across_conditions, across_workloads, conditions
from tunnelmark.analyse.model import Analysis
from tunnelmark.plan.compose import TRAVERSAL
from tunnelmark.record.results import SampleRow
from unit.builders import PROFILE, TCP, TOPOLOGY, UDP, Study
from unit.conditions import FIRST, SECOND, STUDY, analysed

TENTH: dict[tuple[str, str, int | None], float] = {
    ("*", SECOND, None): 0.1,
    ("tinc", SECOND, None): 0.2,
    ("nebula", SECOND, None): 0.05,
}


def kept(analysis: Analysis, arm: str, metric: str = "goodput") -> Kept:
    (found,) = (one for one in across_conditions(analysis) if (one.arm, one.metric.name) == (arm, metric))
    return found


def test_what_an_arm_keeps_and_that_over_what_direct_keeps_are_found() -> None:
    analysis = analysed(STUDY, TENTH)
    for arm, share, times, verdict in (
        ("tinc", 0.2, 2.0, "better"),
        ("nebula", 0.05, 0.5, "worse"),
        ("openvpn", 0.1, 1.0, "equal"),
    ):
        found = kept(analysis, arm)
        assert found.kept.estimate == pytest.approx(share, rel=0.03)
        assert found.over_direct is not None and found.over_direct.estimate == pytest.approx(times, rel=0.03)
        assert found.verdict == verdict
    direct = kept(analysis, "direct")
    assert (direct.verdict, direct.over_direct) == ("reference", None)
    assert direct.kept.estimate == pytest.approx(0.1, rel=0.03)


def test_both_are_ratios_inside_the_blocks() -> None:
    analysis = analysed(STUDY, TENTH)
    values = {
        (cell.arm, cell.setting.profile): {value.block: value.value for value in cell.values}
        for cell in analysis.cells
        if cell.metric.name == "goodput"
    }
    shares = {
        arm: [values[arm, SECOND][block] / values[arm, FIRST][block] for block in range(1, 9)]
        for arm in ("tinc", "direct")
    }
    found = kept(analysis, "tinc")
    assert found.kept.effects == pytest.approx(shares["tinc"])
    assert found.over_direct is not None
    ratios = [mine / theirs for mine, theirs in zip(shares["tinc"], shares["direct"], strict=True)]
    assert found.over_direct.effects == pytest.approx(ratios)
    assert found.over_direct.estimate == pytest.approx(exp(fmean(map(log, ratios))))


def test_an_arm_that_is_slow_everywhere_alike_keeps_as_much_as_direct() -> None:
    found = kept(analysed(STUDY, {("*", SECOND, None): 0.1}), "tinc")
    assert found.verdict == "equal"
    assert found.over_direct is not None and found.over_direct.interval is not None
    assert found.over_direct.interval.low < 1 < found.over_direct.interval.high


def test_a_zero_is_kept_as_a_zero() -> None:
    found = kept(analysed(STUDY, TENTH | {("nebula", SECOND, block): 0.0 for block in (2, 3)}), "nebula")
    assert (found.kept.zeros, found.kept.doubt, len(found.kept.blocks)) == ((2, 0), "zeros", 8)
    assert found.kept.effects.count(0.0) == 2
    assert found.over_direct is not None and found.over_direct.zeros == (2, 0)
    assert (found.failed, found.void, found.empty) == (0, 0, 0)


def test_of_zero_nothing_can_be_kept_and_such_blocks_are_counted() -> None:
    found = kept(analysed(STUDY, TENTH | {("nebula", FIRST, 4): 0.0}), "nebula")
    assert (found.empty, len(found.kept.blocks)) == (1, 7)
    everywhere = kept(analysed(STUDY, {("nebula", FIRST, None): 0.0}), "nebula")
    assert (everywhere.empty, everywhere.kept.blocks, everywhere.verdict) == (8, (), "too few blocks")


def test_where_direct_keeps_nothing_nothing_is_infinite_that_is_not_said() -> None:
    found = kept(analysed(STUDY, TENTH | {("direct", SECOND, None): 0.0}), "tinc")
    assert found.over_direct is not None
    assert found.over_direct.zeros == (0, 8)
    assert found.verdict == "better"


def test_failed_blocks_are_counted_in_either_condition() -> None:
    fails = frozenset({("tinc", FIRST, 1), ("tinc", SECOND, 1), ("tinc", SECOND, 6)})
    found = kept(analysed(STUDY, TENTH, fails), "tinc")
    assert (found.failed, found.void, found.empty, len(found.kept.blocks)) == (2, 0, 0, 6)
    assert found.verdict == "better"


def test_an_arm_that_never_works_in_a_condition_is_failed() -> None:
    fails = frozenset(("tinc", SECOND, block) for block in range(1, 9))
    found = kept(analysed(STUDY, TENTH, fails), "tinc")
    assert (found.verdict, found.failed, found.kept.estimate) == ("failed", 8, None)


def test_what_has_not_run_yet_is_not_called_failed() -> None:
    study = replace(STUDY, stop_after=0)
    assert {one.verdict for one in across_conditions(judge(study.results()))} == {"not run"}


def test_a_metric_of_differences_changes_by_a_difference() -> None:
    study = replace(STUDY, workloads=(UDP,), loss={"tinc": 2.0})
    results = study.results()
    trials = tuple(
        replace(
            row,
            samples=tuple(
                SampleRow("loss", "%", sample.value + 5.0)
                if (row.arm, row.profile, sample.metric) == ("tinc", SECOND, "loss")
                else sample
                for sample in row.samples
            ),
        )
        for row in results.trials
    )
    found = kept(judge(replace(results, trials=trials)), "tinc", "loss")
    assert found.kept.estimate == pytest.approx(5.0, abs=0.1)
    assert found.over_direct is not None and found.over_direct.estimate == pytest.approx(5.0, abs=0.1)
    assert found.verdict == "worse"


def test_one_condition_gives_nothing() -> None:
    assert across_conditions(judge(Study(arms=("direct", "tinc"), workloads=(TCP,)).results())) == ()


def test_a_study_without_direct_still_says_what_arms_keep() -> None:
    analysis = judge(replace(STUDY, arms=("tinc", "nebula"), same_as={}).results())
    assert [(one.arm, one.over_direct, one.verdict) for one in across_conditions(analysis)] == [
        ("tinc", None, "too few blocks"),
        ("nebula", None, "too few blocks"),
    ]


def test_paths_between_routers_are_no_conditions() -> None:
    analysis = judge(replace(STUDY, workloads=(replace(TCP, workload=TRAVERSAL),)).results())
    assert conditions(analysis, "tcp") == ()
    assert across_conditions(analysis) == ()


def test_topologies_are_conditions_too() -> None:
    """Three hops carry a third: the same trials again on a longer chain, with a third of the goodput."""
    results = replace(STUDY, profiles=(PROFILE,)).results()
    far = tuple(
        replace(
            row,
            trial=f"{row.trial}.far",
            topology="chain-3",
            samples=tuple(replace(one, value=one.value / 3) if one.metric == "goodput" else one for one in row.samples),
        )
        for row in results.trials
    )
    trials = (*results.trials, *far)
    plan = replace(
        results.plan,
        topologies=(TOPOLOGY, replace(TOPOLOGY, name="chain-3", title="three hops")),
        trials=tuple(row.trial for row in trials),
    )
    found = across_conditions(judge(replace(results, plan=plan, trials=trials)))
    assert {(one.base.topology, one.setting.topology) for one in found} == {("pair", "chain-3")}
    assert all(one.kept.estimate == pytest.approx(1 / 3) for one in found)
    assert {one.verdict for one in found} == {"reference", "equal"}


def test_workloads_of_one_metric_are_held_against_each_other_in_each_condition() -> None:
    ring = replace(TCP, name="ring", title="TCP around a ring")
    found = across_workloads(judge(replace(STUDY, workloads=(TCP, ring, UDP)).results()))
    assert {(one.base.workload, one.setting.workload, one.metric.name) for one in found} == {("tcp", "ring", "goodput")}
    assert {(one.base.profile, one.setting.profile) for one in found} == {(FIRST, FIRST), (SECOND, SECOND)}
    assert all(one.kept.estimate == pytest.approx(1.0, rel=0.05) for one in found)


def test_a_condition_that_hits_all_arms_alike_tells_none_apart_and_intervals_hold_the_truth() -> None:
    """Of 200 studies under the null, any verdict is false in at most 5 %, and 95 % of intervals hold the truth (within chance)."""
    wrong = held = 0
    small = Study(
        arms=("direct", "direct-again", "tinc", "nebula"),
        workloads=(TCP,),
        profiles=(PROFILE, replace(PROFILE, name=SECOND, title=SECOND)),
        noise=0.05,
        blocks=6,
    )
    for seed in range(200):
        found = across_conditions(analysed(replace(small, seed=seed), {("*", SECOND, None): 0.1}))
        judged = [one for one in found if one.arm in ("tinc", "nebula")]
        wrong += any(one.verdict in ("better", "worse") for one in judged)
        held += sum(
            one.over_direct is not None
            and one.over_direct.interval is not None
            and one.over_direct.interval.low <= 1 <= one.over_direct.interval.high
            for one in judged
        )
    assert wrong <= 200 * 0.05 + 2 * (200 * 0.05 * 0.95) ** 0.5
    assert 0.92 < held / 400 < 0.985
