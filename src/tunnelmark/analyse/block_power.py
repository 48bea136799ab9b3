"""Predicts which differences a study can detect with a number of blocks, before it is run. Pure.

The prediction uses the spread between the blocks of an earlier run, or a stated spread. A difference counts as detected
if three conditions hold (see `detectable`). Four of five studies find the difference. They find it with a test whose
chance of error is 5 % divided by the number of all questions of the study, as Holm's correction asks of the first
decision. And the difference is larger than chance would show between twins with that spread in the same number of
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log, sqrt
from statistics import fmean, stdev

from tunnelmark.analyse import detectable, intervals
from tunnelmark.analyse.analysis import asked
from tunnelmark.analyse.arms import contenders
from tunnelmark.analyse.margins import negligible
from tunnelmark.analyse.model import Analysis, Comparison, Scenario
from tunnelmark.analyse.pairing import additive, effect, is_planned
from tunnelmark.record.results import MetricInfo, PlanInfo, TrialRow

COUNTS = (3, 5, 8, 12, 20, 40)
"""The numbers of blocks that are shown: from the fewest that give an interval to the largest number by default."""


@dataclass(frozen=True, slots=True)
class BlockSpread:
    """The standard deviation of an arm's effects against direct over blocks: of log ratios, or in the metric's unit.

    `twins`: the same deviation of the effects between twins, for the pair that scatters most; 0 without twins. A
    difference that chance would show between such twins does not count.
    """

    arm: str
    setting: Scenario
    metric: MetricInfo
    sd: float
    twins: float


@dataclass(frozen=True, slots=True)
class Seen:
    """The smallest effect (a ratio above 1, or a difference) that four of five studies find, by number of blocks."""

    spread: BlockSpread
    by_blocks: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Split:
    """The window of a trial with which a study's time is best spent, for one metric in one setting.

    `own`: the share (0 to 1) of the variance between blocks that is the trials' own noise, which longer trials reduce.
    `window`: the measured seconds of a trial. `overhead`: the further seconds that a trial costs. `best`: the best
    window in seconds; None if longer is always better. `time`: how much time a study with the best window takes for an
    interval of the same width, as a share of the time that a study with the present `window` takes.
    """

    setting: Scenario
    metric: MetricInfo
    own: float
    window: float
    overhead: float
    best: float | None
    time: float


def questions(plan: PlanInfo, reference: str | None) -> int:
    """Return how many questions (two arms, a primary metric, a setting) share one chance of error; at least 1."""
    return max(
        sum(
            is_planned(plan, setting, arm, against)
            for setting, metric in _primary(plan)
            for arm, against in asked(plan, reference, primary=True)
        ),
        1,
    )


def _primary(plan: PlanInfo) -> Iterator[tuple[Scenario, MetricInfo]]:
    """Yield every setting with each of its primary metrics."""
    for profile, topology, use in product(plan.profiles, plan.topologies, plan.workloads):
        for metric in use.metrics:
            if metric.primary:
                yield Scenario(profile.name, topology.name, use.name), metric


def stated(plan: PlanInfo, reference: str | None, sd: float) -> tuple[BlockSpread, ...]:
    """Return a spread of `sd` (0.1: 10 %) for each arm, setting and primary metric that is compared by a ratio."""
    arms = contenders(plan, reference)
    # A VPN's two twins scatter against each other by the square root of two times its scatter against a quiet direct.
    twins = sqrt(2) * log(1 + sd) if any(arm.same_as in {one.name for one in arms} for arm in plan.arms) else 0.0
    return tuple(
        BlockSpread(arm.name, setting, metric, log(1 + sd), twins)
        for setting, metric in _primary(plan)
        if metric.compare == "ratio"
        for arm in arms
        if is_planned(plan, setting, arm.name)
    )


def measured(analysis: Analysis) -> tuple[BlockSpread, ...]:
    """Return the spread of each arm, setting and primary metric in an earlier run.

    Comparisons with a zero in a ratio, or with fewer than `intervals.MIN_BLOCKS` blocks, are left out.
    """
    arms = {arm.name for arm in contenders(analysis.results.plan, analysis.reference)}
    found = []
    for cell in analysis.cells:
        if cell.arm not in arms or not cell.metric.primary or cell.against_direct is None:
            continue
        if (sd := _sd(cell.metric, cell.against_direct)) is not None:
            twins = [
                _sd(cell.metric, pair.comparison) or 0.0
                for pair in analysis.same.twins
                if (pair.comparison.setting, pair.comparison.metric) == (cell.setting, cell.metric.name)
            ]
            found.append(BlockSpread(cell.arm, cell.setting, cell.metric, sd, max(twins, default=0.0)))
    return tuple(found)


def seen(spread: BlockSpread, together: int, counts: Sequence[int] = COUNTS) -> Seen:
    """Return the smallest effect that each number of blocks detects; `together` questions share one chance of error."""
    level = intervals.LEVEL / together
    found = {}
    for count in counts:
        by_chance = intervals.t_quantile(count - 1) * spread.twins / sqrt(count)
        threshold = max(additive(spread.metric, negligible(spread.metric)), by_chance)
        found[count] = effect(spread.metric, detectable.smallest(spread.sd, count, level, threshold))
    return Seen(spread, found)


def splits(analysis: Analysis, block_seconds: float) -> tuple[Split, ...]:
    """Return the best length of trials for each metric that has values over time, in the plan's order.

    `block_seconds`: how many seconds one block takes. A study may divide its time between more blocks and longer
    trials. Longer trials reduce only the noise of a trial itself, and no other part of the variance between blocks. The
    best length balances both parts against the overhead of a trial (W. G. Cochran, "Sampling Techniques", 3rd edition,
    1977, 10.6: the optimum of a sample in two stages).

    The noise of a trial is estimated from its two halves: its variance is a quarter of the variance of the difference
    between the two halves, however values are correlated within a half. `Split.own` is the median over arms.
    """
    plan = analysis.results.plan
    trials = max(len(plan.trials) // max(plan.blocks, 1), 1)
    planned = _planned(analysis)
    found = []
    for spread_setting, metric, sds in _by_metric(measured(analysis)):
        use = next(use for use in plan.workloads if use.name == spread_setting.workload)
        window = use.window_over(spread_setting.profile, spread_setting.topology)
        own = _own(analysis.trials, spread_setting, metric)
        direct = own.get(analysis.reference or "")
        shares = [
            (own[arm] + direct) / sd**2 for arm, sd in sds.items() if direct is not None and arm in own and sd > 0
        ]
        warmup = use.warmup_over(spread_setting.profile, spread_setting.topology)
        overhead = max(block_seconds / trials - planned, 0.0) + warmup
        if shares and window > 0:
            share = min(sorted(shares)[len(shares) // 2], 1.0)
            found.append(_split(spread_setting, metric, share, window, overhead))
    return tuple(found)


def _planned(analysis: Analysis) -> float:
    """Return the mean planned seconds of traffic of a trial, warm-up included; 0 if nothing has run."""
    uses = {use.name: use for use in analysis.results.plan.workloads}
    seconds = [
        uses[row.workload].window_over(row.profile, row.topology)
        + uses[row.workload].warmup_over(row.profile, row.topology)
        for row in analysis.trials
    ]
    return sum(seconds) / len(seconds) if seconds else 0.0


def _split(setting: Scenario, metric: MetricInfo, own: float, window: float, overhead: float) -> Split:
    rest = 1 - own
    if rest <= 0:
        return Split(setting, metric, own, window, overhead, None, window / (window + overhead))
    best = sqrt(own * window * overhead / rest)
    if best <= 0:
        return Split(setting, metric, own, window, overhead, 0.0, overhead / (window + overhead))
    time = (rest + own * window / best) * (overhead + best) / (overhead + window)
    return Split(setting, metric, own, window, overhead, best, time)


def _own(trials: Sequence[TrialRow], setting: Scenario, metric: MetricInfo) -> dict[str, float]:
    """Return the mean variance of a trial's own noise by arm; arms without enough values over time are left out."""
    found: dict[str, list[float]] = {}
    for row in trials:
        if row.outcome != "ok" or (row.profile, row.topology, row.workload) != (
            setting.profile,
            setting.topology,
            setting.workload,
        ):
            continue
        series = sorted((s.time, s.value) for s in row.samples if s.metric == metric.name and s.time is not None)
        half = len(series) // 2
        sides = (
            [fmean(value for _, value in part) for part in (series[:half], series[len(series) - half :])]
            if half
            else []
        )
        if metric.compare == "ratio":
            sides = [log(side) for side in sides if side > 0]
        if len(sides) == 2:
            found.setdefault(row.arm, []).append((sides[0] - sides[1]) ** 2 / 4)
    return {arm: fmean(values) for arm, values in found.items() if len(values) >= intervals.MIN_BLOCKS}


def _by_metric(found: Sequence[BlockSpread]) -> list[tuple[Scenario, MetricInfo, dict[str, float]]]:
    by: dict[tuple[Scenario, str], tuple[Scenario, MetricInfo, dict[str, float]]] = {}
    for each in found:
        by.setdefault((each.setting, each.metric.name), (each.setting, each.metric, {}))[2][each.arm] = each.sd
    return list(by.values())


def _sd(metric: MetricInfo, pair: Comparison) -> float | None:
    if pair.doubt == "zeros" or len(pair.effects) < intervals.MIN_BLOCKS:
        return None
    return stdev(additive(metric, value) for value in pair.effects)


def as_percent(sd: float) -> float:
    """Return a standard deviation of log ratios in per cent."""
    return 100 * (exp(sd) - 1)
