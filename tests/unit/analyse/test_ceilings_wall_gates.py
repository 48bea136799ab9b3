"""Ceilings, the wall time, disturbance, and the gates of a whole study."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import gates, judge
from tunnelmark.analyse.model import Scenario
from tunnelmark.analyse.wall_time import wall_time
from tunnelmark.record.results import ProfileInfo, Results, SampleRow, Session
from unit.builders import PROFILE, TCP, UDP, Study

TCP_SETTING = Scenario("gigabit", "pair", "tcp")


def with_direct_at(share: float, study: Study) -> Results:
    """The study's TCP goodput moved so that direct's is this share of the shaped rate."""
    results = replace(study, block_noise=0.0, noise=0.001).results()
    factor = share * 1e9 / 600e6
    return replace(
        results,
        trials=tuple(
            replace(
                row,
                samples=tuple(
                    replace(sample, value=sample.value * factor) if sample.metric == "goodput" else sample
                    for sample in row.samples
                ),
            )
            for row in results.trials
        ),
    )


def test_arms_at_the_links_rate_are_limited_by_the_link():
    study = Study(tcp={"tinc": 0.98, "nebula": 0.93, "openvpn": 0.5})
    analysis = judge(with_direct_at(0.956, study))
    ceilings = {cell.arm: cell.ceiling for cell in analysis.cells if cell.metric.name == "goodput"}
    assert ceilings["direct"] == ceilings["tinc"] == "link"
    assert ceilings["nebula"] == "near the link"
    assert ceilings["openvpn"] is None


def test_where_direct_does_not_fill_the_link_nothing_is_limited_by_it():
    analysis = judge(with_direct_at(0.80, Study()))
    assert not any(cell.ceiling for cell in analysis.cells if cell.metric.name == "goodput")


def test_all_that_was_offered_is_limited_by_the_load_and_less_is_not():
    analysis = judge(Study(loss={"openvpn": 5.0}).results())
    ceilings = {cell.arm: cell.ceiling for cell in analysis.cells if cell.metric.name == "delivered"}
    assert ceilings["direct"] == ceilings["tinc"] == "load"
    assert ceilings["openvpn"] is None


@pytest.mark.parametrize(("told", "ceiling"), [(1.0, "lab"), (0.0, None)])
def test_a_rate_that_the_generator_ended_is_limited_by_the_lab(told, ceiling):
    rate = replace(TCP.metrics[0], name="rate", unit="packets/s", limited_by="retransmits")
    study = replace(Study(workloads=(replace(TCP, metrics=(rate, TCP.metrics[1])),)).results())
    trials = tuple(
        replace(row, samples=(SampleRow("rate", "packets/s", 1e5), SampleRow("retransmits", "1/GB", told)))
        for row in study.trials
    )
    found = judge(replace(study, trials=trials)).cell("tinc", TCP_SETTING, "rate")
    assert found.ceiling == ceiling


@pytest.mark.parametrize(("share", "passed"), [(0.956, True), (0.93, False), (1.05, False)])
def test_direct_must_fill_the_link(share, passed):
    analysis = judge(with_direct_at(share, Study()))
    gate = gates(analysis)[2]
    assert gate.passed is passed
    assert f"{100 * share:.1f} %" in gate.explanation
    assert analysis.link_shares[0].share == pytest.approx(share, abs=0.002)


@pytest.mark.parametrize(("inner", "reached"), [("", 0.947), ("VXLAN, MTU 1280", 0.912)])
def test_direct_fills_the_link_with_what_its_own_packets_hold(inner: str, reached: float):
    """The bare link at an inner MTU of 1280: 1228 bytes of payload in frames that have the headers of full ones, or a VXLAN's too."""
    for mss, passed in ((1228.0, True), (1448.0, False)):
        results = with_direct_at(reached, Study(arms=("direct", "tinc"), same_as={}))
        arms = tuple(replace(arm, inner=inner) for arm in results.plan.arms)
        uses = tuple(
            replace(
                use,
                metrics=(*use.metrics, replace(use.metrics[0], name="mss", unit="B", primary=False, feels="counts")),
            )
            for use in results.plan.workloads
        )
        rows = tuple(
            replace(row, samples=(*row.samples, SampleRow("mss", "B", mss))) if row.workload == "tcp" else row
            for row in results.trials
        )
        plan = replace(results.plan, arms=arms, workloads=uses)
        gate = next(gate for gate in gates(judge(replace(results, plan=plan, trials=rows))) if "fills" in gate.name)
        assert gate.passed == passed, gate.explanation


def test_what_flows_back_has_the_rate_of_that_direction_to_fill():
    results = with_direct_at(0.47, Study())
    profile = replace(results.plan.profiles[0], back=(500_000_000, 492_000_000))
    for flows, passed in (("back", True), ("forward", False)):
        uses = tuple(replace(use, options={**use.options, "flows": flows}) for use in results.plan.workloads)
        analysis = judge(replace(results, plan=replace(results.plan, profiles=(profile,), workloads=uses)))
        gate = next(gate for gate in gates(analysis) if "fills" in gate.name)
        assert gate.passed == passed, gate.explanation


def test_without_a_rate_or_a_greedy_workload_there_is_nothing_to_fill():
    unshaped = ProfileInfo("unshaped", "as fast as the machine", "", None, None)
    assert gates(judge(Study(profiles=(unshaped,)).results()))[2].passed
    assert gates(judge(Study(workloads=(UDP,)).results()))[2].passed


def test_the_ceiling_is_unknown_when_direct_failed():
    fails = tuple(("direct", "tcp", block) for block in range(1, 6))
    assert not gates(judge(Study(fails=fails).results()))[2].passed


def test_failures_and_missing_trials_are_named_by_the_gate():
    failed = gates(judge(Study(fails=(("tinc", "tcp", 2),)).results()))[1]
    assert not failed.passed
    assert "002.tinc.gigabit.pair.tcp" in failed.explanation
    assert "not-ready" in failed.explanation
    unfinished = gates(judge(Study(stop_after=30).results()))[1]
    assert "75 of 105 trials have not run yet" in unfinished.explanation


def test_a_sound_study_passes_all_gates():
    assert [gate.passed for gate in gates(judge(with_direct_at(0.956, Study())))] == [True, True, True]


def test_phases_outside_and_overlap_add_up_to_the_wall_time():
    results = Study(workloads=(TCP,), profiles=(PROFILE,)).results()
    wall = judge(results).wall
    assert sum(wall.phases.values()) + wall.outside - wall.overlap == pytest.approx(wall.wall, abs=1e-3)
    assert wall.measuring == pytest.approx(35 * 3.0 / wall.wall)


def test_trials_that_overlap_are_not_counted_twice():
    first, second, *_ = Study().results().trials
    long, short = (
        replace(row, started=start, phases={"measure": seconds})
        for row, start, seconds in ((first, 100.0, 10.0), (second, 109.0, 4.0))
    )
    wall = wall_time((Session(99.0, 15.0),), (long, short))
    assert (wall.outside, wall.overlap) == (pytest.approx(2.0), pytest.approx(1.0))


def test_a_session_without_an_end_counts_until_its_last_trial():
    first, *_ = Study().results().trials
    row = replace(first, started=103.0, phases={"measure": 4.0})
    wall = wall_time((Session(100.0, None), Session(200.0, 5.0)), (row,))
    assert wall.wall == pytest.approx(12.0)
    assert not wall.complete


def test_trials_disturbed_by_other_work_are_named():
    results = Study().results()
    loud = replace(results.trials[4], host={"other_cpu": 0.2, "steal": 0.1})
    analysis = judge(replace(results, trials=(*results.trials[:4], loud, *results.trials[5:])))
    assert [(found.trial, found.cores) for found in analysis.disturbed] == [(loud.trial, pytest.approx(0.3))]


def test_a_series_alone_is_no_value_of_the_window():
    results = Study(workloads=(TCP,)).results()
    trials = tuple(replace(row, samples=(SampleRow("goodput", "bit/s", 1.0, 0.5),)) for row in results.trials)
    assert judge(replace(results, trials=trials)).cell("direct", TCP_SETTING, "goodput").spread is None
