"""What a result is worth: by lateness, pauses and other work, as its metrics feel them on its profile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from tunnelmark import registry
from tunnelmark.model.grades import QUIET, Met, bounds, grade_of, graded, met, outside, spoilt
from tunnelmark.model.metrics import Feels, Metric
from tunnelmark.plan.files import Files
from tunnelmark.plan.impairments import Direction, Jitter
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Profile
from tunnelmark.run.collectors import collectors
from tunnelmark.units import Duration, Share

QUIETLY = Met(late_p50=2e-5, late_p99=6e-5, late_max=1e-3)


def profile(delay: float = 0.0, jitter: float = 0.0) -> Profile:
    way = Direction(
        delay=Duration(delay) if delay else None,
        jitter=Jitter(Duration(jitter), "normal", Share(0), keep_order=True) if jitter else None,
    )
    return Profile("p", "T", "S", way, way)


def metric(feels: Feels, *, primary: bool = True, name: str = "m") -> Metric:
    return Metric(name, "ms", "T", "lower", primary=primary, feels=feels)


@pytest.mark.parametrize("feels", get_args(Feels))
@pytest.mark.parametrize("name", ["wifi-bad", "lan", "unshaped", "geo-satellite"])
def test_on_a_quiet_machine_everything_is_good(feels: Feels, name: str):
    assert grade_of(feels, load_profile(name, Files.standard()), QUIETLY) == ("good", ())


def test_a_millisecond_is_nothing_to_a_transfer_and_a_fifth_of_a_high_percentile():
    wifi = load_profile("wifi-good", Files.standard())
    late = replace(QUIETLY, late_p99=0.0011)
    assert grade_of("transfer", wifi, late)[0] == "good"
    assert grade_of("delay", wifi, late)[0] == "good"
    grade, (cause,) = grade_of("tail", wifi, late)
    assert grade == "void"
    assert "1.10 ms late" in cause


def test_bounds_grow_with_delay_and_jitter_and_never_shrink():
    for feels in get_args(Feels):
        for what, bound in bounds(feels, profile(0.001)).items():
            longer, wider = bounds(feels, profile(0.1))[what], bounds(feels, profile(0.001, 0.01))[what]
            assert bound.good <= longer.good
            assert bound.void <= longer.void
            assert bound.good <= wider.good
            assert 0 < bound.good < bound.void


def test_what_counts_feels_nothing():
    worst = Met(1.0, 1.0, 1.0, 1.0, pause_share=0.9, pause_longest=2.0, others=2.0)
    assert grade_of("counts", profile(0.01), worst) == ("good", ())


def test_other_work_disturbs_and_never_voids():
    busy = replace(QUIETLY, others=2 * QUIET)
    for feels in ("transfer", "delay", "tail", "longest", "processor"):
        grade, (cause,) = grade_of(feels, profile(0.01), busy)
        assert grade == "disturbed"
        assert "0.50 cores" in cause


def test_pauses_of_a_tenth_of_a_second_spoil_a_gap_and_not_a_transfer():
    paused = replace(QUIETLY, pause_share=0.004, pause_longest=0.3)
    assert grade_of("longest", profile(0.01), paused)[0] == "void"
    assert grade_of("transfer", profile(0.01), paused)[0] == "good"
    assert grade_of("tail", profile(0.01), replace(paused, pause_share=0.01))[0] == "disturbed"


def test_an_attempt_is_void_only_if_no_judged_metric_can_be_used():
    late = replace(QUIETLY, late_p99=0.003)
    both = graded([metric("delay"), metric("tail", name="n")], profile(0.002), late)
    assert (both.grade, both.wanting, dict(both.grades)) == ("disturbed", True, {"tail": "void"})
    alone = graded([metric("delay", primary=False), metric("tail", name="n")], profile(0.002), late)
    assert (alone.grade, alone.wanting) == ("void", True)
    explains = graded([metric("delay"), metric("tail", primary=False, name="n")], profile(0.002), late)
    assert (explains.grade, explains.wanting, dict(explains.grades)) == ("good", False, {"tail": "void"})


def test_evidence_is_the_worst_of_all_directions_and_what_the_host_says():
    def way(p99: float, **more: object) -> dict:
        return {"lateness_us": {"count": 9, "p50": 1, "p99": p99, "max": p99}, **more}

    own = {"own_lateness_us": {"count": 9, "p50": 1, "p99": 80, "max": 90}}
    idle = {"lateness_us": {"count": 0, "p50": 0, "p99": 9e9, "max": 9e9}}
    reports: list[dict] = [
        {"directions": [way(500, **own), way(900)], "scheduler": "other (refused)"},
        {"directions": [idle]},
    ]
    host = {"other_cpu": 0.1, "steal": 0.02, "pause_share": 0.03, "pause_longest": 0.011}
    seen = met(reports, host)
    assert seen == Met(1e-6, 9e-4, 9e-4, 8e-5, 0.03, 0.011, 0.1 + 0.02, "other (refused)")
    _, causes = grade_of("tail", profile(0.002), seen)
    assert "without the machine's pauses 0.08 ms" in causes[0]
    assert "without real-time priority: other (refused)" in causes[0]
    assert met([], {}) == Met()
    json.dumps(graded([metric("tail")], profile(), seen).causes)


def test_every_judged_metric_of_time_says_what_it_feels():
    """A duration is not felt as a transfer is, unless it is that of one (`nix`)."""
    for workload in registry.workloads().values():
        for each in workload.metrics:
            if each.unit in ("ms", "us") or (each.unit == "s" and each.primary and workload.name != "nix"):
                assert each.feels != "transfer", (workload.name, each.name)
    for collector in collectors().values():
        for each in collector.metrics:
            if each.name.startswith("cpu"):
                assert each.feels == "processor"


def test_what_a_vpn_did_to_its_sender_is_a_result_and_what_the_machine_did_is_not():
    lan, metrics = load_profile("lan", Files.standard()), (metric("transfer"),)
    quiet, busy = (graded(metrics, lan, seen) for seen in (QUIETLY, replace(QUIETLY, others=2 * QUIET)))
    assert outside(quiet, bare=False) == ""
    assert "other work took 0.50 cores" in outside(busy, bare=False)
    assert "the generator or the machine is the limit" in outside(quiet, bare=True)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ({"pause_share": 0.5}, "the machine paused for 50.0 % of the time (good up to 5 %)"),
        ({"pause_share": 0.15}, ""),
        ({"pause_longest": 0.4}, ""),  # of some twenty seconds
        ({"other_cpu": 2.0}, ""),
        ({}, ""),
    ],
)
def test_a_deployment_that_failed_is_spoilt_where_the_machine_stood_still_for_a_fifth_of_its_time(
    host: dict[str, float], said: str
):
    assert spoilt(profile(delay=0.01), host) == said
