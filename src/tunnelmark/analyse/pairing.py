"""Compares two arms block by block, by the values of one metric.

A ratio is averaged as its logarithm, so that twice and half cancel and A/B is one over B/A; its mean is the geometric
mean of the blocks' ratios. Whatever both arms of a block share (other work on the machine, the lab's own state)
cancels inside the block, which is why blocks are compared and not means over the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, isfinite, log
from statistics import fmean, median

from tunnelmark.analyse import detectable, intervals, robust
from tunnelmark.analyse.margins import equal_within
from tunnelmark.analyse.model import BlockValue, Comparison, Doubt, Interval, Scenario, Verdict
from tunnelmark.record.results import MetricInfo, PlanInfo, TrialRow

BlockValues = Mapping[tuple[str, Scenario, str], tuple[BlockValue, ...]]
"""Values by block, of each (arm, setting, metric) that has any."""


def values_by_block(trials: Iterable[TrialRow], may: Callable[[TrialRow, str], bool] = lambda *_: True) -> BlockValues:
    """Return the value of each metric over the whole window, by block, from the trials that succeeded.

    The key of the result is (arm, setting, metric's name). Several values of one block are averaged. `may`: a function
    of an attempt and a metric's name (without the workload) that returns whether the value is to be used.
    """
    found: dict[tuple[str, Scenario, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        if trial.outcome == "ok":
            for sample in trial.samples:
                if sample.time is None and may(trial, sample.metric):
                    found[trial.arm, setting_of(trial), sample.metric][trial.block].append(sample.value)
    return {
        key: tuple(BlockValue(block, fmean(values)) for block, values in sorted(blocks.items()))
        for key, blocks in found.items()
    }


def setting_of(trial: TrialRow) -> Scenario:
    return Scenario(trial.profile, trial.topology, trial.workload)


def is_planned(plan: PlanInfo, setting: Scenario, *arms: str) -> bool:
    """Return whether the study's design has all of these arms in a setting."""
    return all(plan.design.has((arm, setting.profile, setting.topology, setting.workload)) for arm in arms)


def compare(
    arm: str,
    against: str,
    setting: Scenario,
    metric: MetricInfo,
    values: BlockValues,
    threshold: float,
    level: float = intervals.LEVEL,
) -> Comparison:
    """Compare `arm` with `against` over the blocks in which both have a value.

    `q` and `differs` are not set yet: `decide` sets them for a family of comparisons. `threshold`: the smallest effect
    that counts, as a ratio above 1 or a difference above 0. `level`: the nominal chance of error of the intervals
    (`intervals.level_of`). The p value is scaled so that this level becomes 5 %.
    """
    mine, theirs = (by_block(values.get((name, setting, metric.name), ())) for name in (arm, against))
    return compare_values(arm, against, setting, metric, mine, theirs, threshold, level)


def by_block(values: Iterable[BlockValue]) -> dict[int, float]:
    return {value.block: value.value for value in values}


def compare_values(
    arm: str,
    against: str,
    setting: Scenario,
    metric: MetricInfo,
    mine: Mapping[int, float],
    theirs: Mapping[int, float],
    threshold: float,
    level: float = intervals.LEVEL,
) -> Comparison:
    """Compare the given values by block, as `compare` does; `against` may be any name for the other side."""
    blocks = sorted(mine.keys() & theirs.keys())
    x, y = [mine[block] for block in blocks], [theirs[block] for block in blocks]
    ratio = metric.compare == "ratio"
    zeros = (sum(value <= 0 for value in x), sum(value <= 0 for value in y)) if ratio else (0, 0)
    zero_blocks = sum(a <= 0 or b <= 0 for a, b in zip(x, y, strict=True)) if ratio else 0
    if ratio:
        effects = [_log_ratio(a, b) for a, b in zip(x, y, strict=True)]
    else:
        effects = [a - b for a, b in zip(x, y, strict=True)]
    doubt = robust.doubt(effects, zero_blocks, ratio=ratio)
    # Where zeros leave no logarithm, means are tested as they are: a dead arm differs from a living one beyond doubt.
    tested = [a - b for a, b in zip(x, y, strict=True)] if doubt == "zeros" else effects
    order = None if not blocks else _log_ratio(fmean(x), fmean(y)) if doubt == "zeros" else fmean(effects)
    found = intervals.interval(effects, level) if doubt is None else _by_signs(effects, level)
    middle = fmean if doubt is None else median
    return Comparison(
        arm=arm,
        against=against,
        setting=setting,
        metric=metric.name,
        blocks=tuple(blocks),
        effects=tuple(effect(metric, value) for value in effects),
        estimate=effect(metric, middle(effects)) if effects else None,
        interval=found and Interval(effect(metric, found.low), effect(metric, found.high), found.method),
        p=_scaled(intervals.paired_t(tested), level),
        q=None,
        threshold=threshold,
        differs=False,
        equal=_equal(metric, effects, doubt, level),
        order=order,
        doubt=doubt,
        doubtful=robust.doubtful(effects, zero_blocks, doubt),
        zeros=zeros,
        left_out=_left_out(metric, effects, middle),
    )


def _log_ratio(a: float, b: float) -> float:
    """Return the log of a / b: minus infinity if only a is zero, infinity if only b is, and 0 if both are."""
    if a > 0 and b > 0:
        return log(a / b)
    return inf if a > 0 else -inf if b > 0 else 0.0


def _scaled(p: float | None, level: float) -> float | None:
    return None if p is None else min(p * intervals.LEVEL / level, 1.0)


def _by_signs(effects: Sequence[float], level: float) -> Interval | None:
    found = intervals.sign_interval(effects, level)
    return Interval(*found, "sign") if found is not None and isfinite(found[1]) else None


def _equal(metric: MetricInfo, effects: Sequence[float], doubt: Doubt | None, level: float) -> bool:
    """Return whether two one-sided tests show that the mean effect is within the margin (Schuirmann 1987).

    An arm that carried nothing in some block is equal only to one that carried nothing at all in the same blocks.
    """
    if doubt == "zeros":
        return len(effects) >= intervals.MIN_BLOCKS and all(value == 0 for value in effects)
    found = intervals.student(effects, intervals.EQUAL_LEVEL * level / intervals.LEVEL)
    return found is not None and max(-found[0], found[1]) < additive(metric, equal_within(metric))


def _left_out(
    metric: MetricInfo, effects: Sequence[float], middle: Callable[[Sequence[float]], float]
) -> tuple[float, float] | None:
    if len(effects) < intervals.MIN_BLOCKS:
        return None
    estimates = [middle([*effects[:place], *effects[place + 1 :]]) for place in range(len(effects))]
    ends = min(estimates), max(estimates)
    return (effect(metric, ends[0]), effect(metric, ends[1])) if isfinite(ends[1]) else None


def decide(
    family: Sequence[Comparison], metrics: Mapping[str, MetricInfo], level: float = intervals.LEVEL
) -> tuple[Comparison, ...]:
    """Correct the p values of a family of comparisons together, and decide for each whether the two arms differ.

    `metrics`: the metrics by "workload/metric". `level`: the level with which the family was compared.
    """
    tested = [comparison for comparison in family if comparison.p is not None]
    q_values = iter(intervals.corrected([comparison.p for comparison in tested if comparison.p is not None]))
    decided = []
    for comparison in family:
        if comparison.p is not None and comparison.order is not None:
            q = next(q_values)
            threshold = additive(_metric(comparison, metrics), comparison.threshold)
            differs = q < intervals.LEVEL and abs(comparison.order) > threshold
            comparison = replace(comparison, q=q, differs=differs, equal=comparison.equal and not differs)
        decided.append(comparison)
    open_ = sum(comparison.q is not None and comparison.q >= intervals.LEVEL for comparison in decided)
    return tuple(_with_power(comparison, _metric(comparison, metrics), level / max(open_, 1)) for comparison in decided)


def _with_power(comparison: Comparison, metric: MetricInfo, level: float) -> Comparison:
    """Return the comparison with its detectable difference, at the level that Holm's procedure had reached."""
    if comparison.doubt == "zeros":
        return comparison
    effects = [additive(metric, value) for value in comparison.effects]
    found = detectable.detectable(effects, level, additive(metric, comparison.threshold))
    return comparison if found is None else replace(comparison, detectable=effect(metric, found))


def _metric(comparison: Comparison, metrics: Mapping[str, MetricInfo]) -> MetricInfo:
    return metrics[f"{comparison.setting.workload}/{comparison.metric}"]


def effect(metric: MetricInfo, additive: float) -> float:
    """Turn an additive effect (a log ratio or a difference) into that of reports: a ratio or a difference."""
    return exp(additive) if metric.compare == "ratio" else additive


def additive(metric: MetricInfo, effect: float) -> float:
    """Return an effect on the scale on which effects add up: the log of a ratio (of 0: -inf), or a difference."""
    if metric.compare != "ratio":
        return effect
    return log(effect) if effect > 0 else -inf


def favours(metric: MetricInfo, comparison: Comparison) -> bool:
    """Return whether a comparison's effect is good for the arm that was compared."""
    return ((comparison.order or 0.0) > 0) == (metric.better == "higher")


def verdict(metric: MetricInfo, comparison: Comparison | None) -> Verdict:
    """Return the verdict on the arm of a comparison, once `decide` has set `q` and `differs`.

    The verdict is "too few blocks" if `comparison` is None, or if it has no `q`.
    """
    if comparison is None or comparison.q is None:
        return "too few blocks"
    if not comparison.differs:
        return "equal" if comparison.equal else "undecided"
    return "better" if favours(metric, comparison) else "worse"
