"""The A/A judgement: an arm measured twice under two names (twins) must not differ from itself.

Usual methods often find a difference between identical systems (Abedi and Brecht, "Conducting Repeatable Experiments in
Highly Variable Cloud Computing Environments", ICPE 2017: by 38 %). So every study makes this judgement first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.margins import negligible
from tunnelmark.analyse.model import AAPair, AAResult, Comparison, Scenario, Standing
from tunnelmark.analyse.pairing import BlockValues, additive, compare, decide, effect, is_planned
from tunnelmark.record.results import MetricInfo, PlanInfo

WIDE = 1.25
"""From this ratio on, an effect that twins could not have shown is worth a word."""


def judge_twins(
    plan: PlanInfo,
    settings: Sequence[Scenario],
    metrics: Mapping[str, MetricInfo],
    values: BlockValues,
    *,
    finished: bool = True,
) -> AAResult:
    """Return the A/A judgement: compare each arm that has `same_as` with the arm of that name, by every primary metric.

    Twins differ if the corrected test says so and the difference is more than negligible (`margins.negligible`).
    `metrics`: all metrics by "workload/metric". `finished`: whether the run has ended; the explanation depends on it.
    """
    level = level_of(plan.enough)
    family = [
        compare(arm.name, arm.same_as, setting, metric, values, negligible(metric), level)
        for arm in plan.arms
        if arm.same_as is not None
        for setting in settings
        if is_planned(plan, setting, arm.name, arm.same_as)
        for key, metric in metrics.items()
        if metric.primary and key == f"{setting.workload}/{metric.name}"
    ]
    twins = tuple(
        _twins(pair, metrics[f"{pair.setting.workload}/{pair.metric}"]) for pair in decide(family, metrics, level)
    )
    standing = _overall([pair.standing for pair in twins])
    return AAResult(standing, twins, _explained(standing, twins, finished) + _least_sure(standing, twins, metrics))


def noise(same: AAResult, setting: Scenario, metric: MetricInfo) -> float:
    """Return the threshold beyond which an effect by this metric counts in this scenario (`setting`).

    The threshold is a ratio above 1, or a difference in the metric's unit. It is the largest of these effects: the one
    that is negligible, and those that the pairs of twins could have shown by this metric in this scenario (`seen`).
    Pairs of a VPN and pairs of direct both count, because the noise of one pair says nothing about the other: the link
    limits direct, whose values hardly scatter, and the processor limits a VPN.
    """
    seen = [
        pair.noise
        for pair in same.twins
        if pair.noise is not None and (pair.comparison.setting, pair.comparison.metric) == (setting, metric.name)
    ]
    return max([negligible(metric), *seen])


def _twins(pair: Comparison, metric: MetricInfo) -> AAPair:
    if pair.p is None or pair.estimate is None:
        return AAPair(pair, "not judged", None)
    return AAPair(pair, "differs" if pair.differs else "agrees", seen(pair, metric))


def seen(pair: Comparison, metric: MetricInfo) -> float | None:
    """Return the smallest effect that twins could have shown.

    It is the larger of their estimate and half their interval's width, as a ratio above 1 or a difference. None if
    there is no estimate or no interval, or if a side of a ratio is zero in some block.
    """
    if pair.estimate is None or pair.interval is None or pair.doubt == "zeros":
        return None
    half = (additive(metric, pair.interval.high) - additive(metric, pair.interval.low)) / 2
    return effect(metric, max(abs(additive(metric, pair.estimate)), half))


def _overall(standings: Sequence[Standing]) -> Standing:
    if "differs" in standings:
        return "differs"
    return "agrees" if standings and "not judged" not in standings else "not judged"


def _least_sure(standing: Standing, twins: Sequence[AAPair], metrics: Mapping[str, MetricInfo]) -> str:
    """Say which twins agree only because large differences between them could not have shown; "" if none do.

    "Agrees" alone would say the same of an interval from 99 to 101 % and of one from 7 to 997 %.
    """
    noisy = [
        (pair.noise, pair.comparison)
        for pair in twins
        if pair.noise is not None
        and metrics[f"{pair.comparison.setting.workload}/{pair.comparison.metric}"].compare == "ratio"
    ]
    noise, pair = max(noisy, key=lambda each: each[0], default=(1.0, None))
    if standing != "agrees" or pair is None or noise < WIDE:
        return ""
    setting = pair.setting
    return (
        f"; least is known of {setting.workload} {pair.metric} ({setting.profile}, {setting.topology}), where a difference "
        f"below a factor of {noise:.2g} would not have shown"
    )


def _explained(standing: Standing, twins: Sequence[AAPair], finished: bool) -> str:
    match standing:
        case "agrees":
            names = dict.fromkeys(f"{pair.comparison.arm} and {pair.comparison.against}" for pair in twins)
            return f"{', '.join(names)} are the same thing under two names, and no primary metric tells them apart"
        case "differs":
            wrong = [pair.comparison for pair in twins if pair.standing == "differs"]
            return "the same thing under two names came out different: " + ", ".join(
                f"{pair.arm} against {pair.against} by {pair.setting.workload} {pair.metric}"
                f" ({pair.setting.profile}, {pair.setting.topology})"
                for pair in wrong
            )
        case "not judged":
            if not twins:
                return "the study has no A/A pair (an arm with `same_as`), so there is no measure of what it shows by chance alone"
            short = dict.fromkeys(pair.comparison.setting.workload for pair in twins if pair.standing == "not judged")
            yet = "" if finished else " yet"
            return f"an arm and its second name (the A/A pair) have too few blocks in which both have a result{yet}, for {', '.join(short)}"
        case _:
            assert_never(standing)
