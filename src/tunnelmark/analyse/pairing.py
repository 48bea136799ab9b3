"""Pairing: values of one metric by arm and block, and the comparison of two arms block by block.

A ratio is averaged as its logarithm, so that twice and half cancel and A/B is one over B/A; its mean is the geometric
mean of the blocks' ratios. Whatever both arms of a block share (other work on the machine, the lab's own state)
cancels inside the block, which is why blocks are compared and not means over the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean
from zlib import crc32

from tunnelmark.analyse import intervals
from tunnelmark.analyse.model import BlockValue, Comparison, Interval, Setting
from tunnelmark.record.results import MetricInfo, TrialRow

Values = Mapping[tuple[str, Setting, str], tuple[BlockValue, ...]]
"""Values by block, of each (arm, setting, metric) that has any."""

EQUAL_RATIO = 1.10
"""Two arms are equal, a tie, only if the whole interval of their ratio is within ten per cent of 1."""

EQUAL_MARGINS = 10
"""And of their difference, within ten times what is negligible: 1 percentage point, 0.1 ms; as ten per cent is of one."""

RATIO_MARGIN = 1.01
"""A ratio within one per cent of 1 is negligible, however sure it is."""

DIFFERENCE_MARGINS = {"%": 0.1, "s": 1e-5, "ms": 0.01, "us": 10.0}
"""A difference is negligible up to a tenth of a percentage point, ten microseconds, or `OTHER_MARGIN` of any other unit
(0.1 packets). Differences are used for metrics that are often zero, where a relative margin would be zero as well."""

OTHER_MARGIN = 0.1


def values_by_block(trials: Iterable[TrialRow], may: Callable[[TrialRow, str], bool] = lambda *_: True) -> Values:
    """The value of each metric over the whole window, by block, from the trials that succeeded.

    `may` says by trial and metric whether a value is to be used.
    """
    found: dict[tuple[str, Setting, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        if trial.outcome == "ok":
            for sample in trial.samples:
                if sample.time is None and may(trial, sample.metric):
                    found[trial.arm, setting_of(trial), sample.metric][trial.block].append(sample.value)
    return {
        key: tuple(BlockValue(block, fmean(values)) for block, values in sorted(blocks.items()))
        for key, blocks in found.items()
    }


def setting_of(trial: TrialRow) -> Setting:
    return Setting(trial.profile, trial.topology, trial.workload)


def margin(metric: MetricInfo) -> float:
    """The largest negligible effect: a ratio above 1, or a difference in the metric's unit."""
    return RATIO_MARGIN if metric.compare == "ratio" else DIFFERENCE_MARGINS.get(metric.unit, OTHER_MARGIN)


def compare(
    arm: str, against: str, setting: Setting, metric: MetricInfo, values: Values, threshold: float, seed: int
) -> Comparison:
    """`arm` against `against` over the blocks that hold both; `q` and `differs` are left to `decide`."""
    mine = {value.block: value.value for value in values.get((arm, setting, metric.name), ())}
    theirs = {value.block: value.value for value in values.get((against, setting, metric.name), ())}
    both = sorted(mine.keys() & theirs.keys())
    if metric.compare == "ratio":
        blocks = [block for block in both if mine[block] > 0 and theirs[block] > 0]
        additive = [log(mine[block] / theirs[block]) for block in blocks]
    else:
        blocks = both
        additive = [mine[block] - theirs[block] for block in blocks]
    # Each comparison draws from its own stream, so that adding an arm or a metric changes no other interval.
    stream = crc32(repr((arm, against, setting, metric.name)).encode())
    found = intervals.interval(additive, (seed, stream))
    return Comparison(
        arm=arm,
        against=against,
        setting=setting,
        metric=metric.name,
        blocks=tuple(blocks),
        effects=tuple(effect(metric, value) for value in additive),
        estimate=effect(metric, fmean(additive)) if additive else None,
        interval=found and Interval(effect(metric, found.low), effect(metric, found.high), found.method),
        p=intervals.paired_t(additive),
        q=None,
        threshold=threshold,
        differs=False,
        unpaired=len(both) - len(blocks),
    )


def decide(family: Sequence[Comparison], metrics: Mapping[str, MetricInfo]) -> tuple[Comparison, ...]:
    """The family with its p values corrected together, and the decision whether each pair differs.

    `metrics` finds a comparison's metric as `workload/metric`.
    """
    tested = [comparison for comparison in family if comparison.p is not None]
    q_values = iter(intervals.corrected([comparison.p for comparison in tested if comparison.p is not None]))
    decided = []
    for comparison in family:
        if comparison.p is not None and comparison.estimate is not None:
            q = next(q_values)
            metric = metrics[f"{comparison.setting.workload}/{comparison.metric}"]
            size = abs(additive(metric, comparison.estimate))
            beyond = size > additive(metric, comparison.threshold)
            comparison = replace(comparison, q=q, differs=q < intervals.LEVEL and beyond)
        decided.append(comparison)
    return tuple(decided)


def effect(metric: MetricInfo, additive: float) -> float:
    """An additive effect as it is said: a ratio, or a difference."""
    return exp(additive) if metric.compare == "ratio" else additive


def additive(metric: MetricInfo, effect: float) -> float:
    """An effect on the scale on which effects add up: the log of a ratio, or a difference."""
    return log(effect) if metric.compare == "ratio" else effect


def equal(metric: MetricInfo, interval: Interval | None) -> bool:
    """Whether an interval shows that two arms are equal, and not only that no difference was seen."""
    if interval is None:
        return False
    bound = additive(metric, EQUAL_RATIO) if metric.compare == "ratio" else EQUAL_MARGINS * margin(metric)
    return max(abs(additive(metric, end)) for end in (interval.low, interval.high)) <= bound


def favours(metric: MetricInfo, estimate: float) -> bool:
    """Whether an effect is good for the arm that was compared."""
    return (additive(metric, estimate) > 0) == (metric.better == "higher")
