"""Runs of one machine that asked the same are one series in the order of time; nothing else is joined in silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tunnelmark.analyse import Analysis, judge
from tunnelmark.analyse.history import RunSeries, history
from tunnelmark.errors import UnknownName, UsageError
from unit.builders import TCP, Study

DAY = 86_400


def run(day: int, speed: float = 0.5, model: str = "1", version: str = "1.0", **study: Any) -> Analysis:
    """A run of that day on a machine with a processor of that model."""
    cpu = {"vendor": "AMD", "family": "25", "model": model, "stepping": "1", "name": "EPYC", "mhz": 2445.0}
    fingerprint = {"cpu": cpu, "cores": 2, "kernel": "6.18", "hypervisor": "KVM", "boot": f"boot-{day}"}
    environment = {"fingerprint": fingerprint, "vpns": {"tinc": {"version": version}}}
    asked: dict[str, Any] = {
        "arms": ("direct", "tinc"),
        "workloads": (TCP,),
        "blocks": 5,
        "seed": day,
        "noise": 0.01,
    } | study
    found = Study(tcp={"tinc": speed}, environment=environment, **asked).results()
    return judge(
        replace(found, sessions=tuple(replace(each, started=each.started + DAY * day) for each in found.sessions))
    )


def runs(*found: Analysis) -> dict[str, Analysis]:
    return {f"run-{number}": each for number, each in enumerate(found)}


def names(series: RunSeries) -> list[str]:
    return [point.run for point in series.points]


def test_runs_are_in_the_order_of_time_with_the_analysis_effects() -> None:
    days = runs(run(3), run(1), run(2))
    (series,) = history(days).series
    assert names(series) == ["run-1", "run-2", "run-0"]
    for point in series.points:
        cell = days[point.run].cell("tinc", series.setting, "goodput")
        assert point.comparison == cell.against_direct
    assert not series.tested and not any(point.change for point in series.points)


def test_a_slower_version_is_marked_at_its_first_run() -> None:
    before = [run(day, 0.5) for day in range(6)]
    after = [run(day, 0.4, version="1.1") for day in range(6, 12)]
    (series,) = history(runs(*before, *after)).series
    (marked,) = [point for point in series.points if point.change]
    assert (marked.run, marked.version, series.tested) == ("run-6", "1.1", True)
    assert marked.change is not None and marked.change.after < marked.change.before


def test_the_version_of_a_further_build_is_its_own() -> None:
    record = {"vpns": {"nebula": {"version": "1.6.1"}, "nebula 1.10": {"version": "1.10.3"}}}
    found = run(1, arms=("direct", "newer"), vpns={"newer": "nebula"}).results
    arms = tuple(replace(arm, options={"build": "1.10"} if arm.name == "newer" else {}) for arm in found.plan.arms)
    newer = judge(replace(found, plan=replace(found.plan, arms=arms), environment={**found.environment, **record}))
    (series,) = history(runs(newer)).series
    assert [point.version for point in series.points] == ["1.10.3"]


def test_machines_have_series_of_their_own_and_it_is_said_how_they_differ() -> None:
    days = runs(run(1), run(2, model="17"), run(3), run(4, model="17"))
    found = history(days)
    assert [(series.machine, names(series)) for series in found.series] == [
        ("A", ["run-0", "run-2"]),
        ("B", ["run-1", "run-3"]),
    ]
    assert set(found.machines) == {"A", "B"}
    assert any("CPU model: 1, now 17" in caution and "of its own" in caution for caution in found.cautions)


def test_machines_are_joined_when_asked_and_it_is_said() -> None:
    found = history(runs(run(1), run(2, model="17")), join_machines=True)
    (series,) = found.series
    assert [point.machine for point in series.points] == ["A", "B"]
    assert any("joined all the same" in caution for caution in found.cautions)


def test_runs_that_asked_another_thing_are_apart() -> None:
    longer = replace(TCP, window=30.0)
    found = history(runs(run(1), run(2, workloads=(longer,)), run(3)))
    assert [names(series) for series in found.series] == [["run-0", "run-2"], ["run-1"]]
    assert any("run-1 asked another thing" in caution and "window" in caution for caution in found.cautions)


def test_a_run_in_which_the_arm_failed_is_shown_and_not_tested() -> None:
    dead = tuple(("tinc", "tcp", block) for block in range(1, 6))
    days = [run(day, 0.5 if day < 6 else 0.4, fails=dead if day == 2 else ()) for day in range(12)]
    (series,) = history(runs(*days)).series
    assert series.points[2].comparison.estimate is None
    assert [point.run for point in series.points if point.change] == ["run-6"]


def test_what_makes_a_run_doubtful_is_said() -> None:
    arms = ("direct", "direct-again", "tinc")
    odd = Study(arms=arms, workloads=(TCP,), tcp={"direct-again": 0.7}, noise=0.01).results()
    found = history({"odd": judge(odd), "half": judge(replace(odd, trials=odd.trials[:6]))})
    assert any("odd the A/A pair differs" in caution for caution in found.cautions)
    assert "half is unfinished." in found.cautions


def test_metrics_and_arms_are_chosen_by_name() -> None:
    days = runs(run(1, arms=("direct", "tinc", "nebula")))
    assert {(s.arm, s.metric.name) for s in history(days).series} == {("tinc", "goodput"), ("nebula", "goodput")}
    (series,) = history(days, metrics=["retransmits"], arms=["nebula"]).series
    assert (series.arm, series.metric.name) == ("nebula", "retransmits")
    with pytest.raises(UnknownName, match="goodputt"):
        history(days, metrics=["goodputt"])
    with pytest.raises(UnknownName, match="tinca"):
        history(days, arms=["tinca"])
    with pytest.raises(UsageError, match="no run compares"):
        history(days, arms=["direct"])
