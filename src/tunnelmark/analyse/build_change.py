"""Judges after each block if a new build of a VPN is slower than an old one, and says when a run may end. Pure.

The interval of a ratio is a confidence sequence: in 95 % of runs it holds the true ratio after every block at once. So
one may read the interval at any time, stop when the answer is clear, and add blocks later. An effect is in the interval
if the measured values are likely enough with this effect (by the likelihood of Student's t), compared with a mixture of
many effects. In the mixture, the effect in standard deviations is normal with variance `PRIOR`: T. L. Lai, "On
Confidence Sequences", Annals of Statistics 4(2), 1976, pp. 265-280; H. Wang and A. Ramdas, "Anytime-valid t-tests and
confidence sequences for Gaussian means with unknown variance", Sequential Analysis 44(1), 2025, pp. 56-110. With 8 to
40 blocks the interval is 1.8 to 1.6 times as wide as Student's interval, which holds only if it is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, isfinite, log, sqrt
from statistics import fmean, stdev
from typing import Literal

from tunnelmark.analyse import intervals
from tunnelmark.analyse.margins import equal_within
from tunnelmark.analyse.model import RELIABLE, Analysis, MetricCell, Scenario
from tunnelmark.analyse.stopping import more_or_ended
from tunnelmark.plan.enough import BATCH, Enough
from tunnelmark.plan.study_arms import NEW, OLD, OLD_AGAIN
from tunnelmark.record.results import BlockDecision, MetricInfo

MetricState = Literal["slower", "faster", "no change", "open", "fails", "set aside"]
"""The result by one metric. `slower`, `faster`: the new build is worse or better by it.

`no change`: its interval lies within the stated change in both directions, or its differences count as equal where
a ratio cannot be taken. `open`: none of these yet. `fails`: trials with the new build fail more often, beyond chance.
`set aside`: it has no ratio, or no trial of the old build succeeded, so it may hide a change."""

BuildOutcome = Literal["slower", "faster", "no change", "undecided"]

PRIOR = 1.0
"""The mixture's variance of the effect, as a multiple of the variance of one block's log ratio: a unit of information.

The interval is narrowest for effects of this size. Other values from 0.5 to 2 change its width by 2 % after 16
blocks."""

SEEN = 1.2815515655446004
"""The normal distribution's 90 % quantile: blocks are enough for a change if they show it nine times in ten."""

COSTS = ("cpu_per_gb", "cpu_per_packet", "syscalls_per_packet")
"""Metrics of collectors that are reported for both ends, next to the metrics that decide."""

FARTHEST = 2000
"""The largest number of blocks that is suggested."""


@dataclass(frozen=True, slots=True)
class BuildChange:
    """Two builds compared by one metric over `blocks` blocks: the ratio of the second to the first, and its interval.

    `ratio`, `interval`: None if there is no ratio; the interval holds after every block at once. `medians`: the median
    of each build, in the metric's unit; None for a build without values. `needed`: how many blocks would show the
    stated change in nine of ten runs, if blocks go on to scatter as they do; None if the number is unknown, or above
    `FARTHEST`. `why`: the reason for the states "set aside" and "fails", and for "no change" where there is no ratio;
    else "" (the states: `MetricState`). `bound`: what limited both builds, if it was not the VPN's own work; else "".
    """

    setting: Scenario
    metric: MetricInfo
    state: MetricState
    blocks: int
    medians: tuple[float | None, float | None] = (None, None)
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    needed: int | None = None
    why: str = ""
    bound: str = ""

    def worse_by(self) -> tuple[float, float, float] | None:
        """Return by what share the second build is worse, and the two ends of the share's interval.

        A share below zero means that it is better (-0.03: by 3 %). None if there is no ratio.
        """
        if self.ratio is None or self.interval is None:
            return None
        low, high = self.interval
        if self.metric.better == "lower":
            return self.ratio - 1, low - 1, high - 1
        return 1 - self.ratio, 1 - high, 1 - low


@dataclass(frozen=True, slots=True)
class BuildVerdict:
    """The comparison of two builds: each metric (`lines`), the old build against itself (`twins`), and the outcome.

    `change`: the stated change, as a share. `costs`: metrics of CPU time and system calls, which decide nothing.
    `apart`: the old build differs from itself, so nothing is decided. `final`: more blocks cannot change the outcome.
    """

    change: float
    lines: tuple[BuildChange, ...]
    twins: tuple[BuildChange, ...]
    costs: tuple[BuildChange, ...]
    outcome: BuildOutcome
    apart: bool
    final: bool

    @property
    def open_lines(self) -> tuple[BuildChange, ...]:
        """The metrics that more blocks could decide."""
        return tuple(line for line in self.lines if line.state == "open")

    @property
    def set_aside(self) -> tuple[BuildChange, ...]:
        """The metrics that should decide and could not be judged."""
        return tuple(line for line in self.lines if line.state == "set aside")


def radius(blocks: int, spread: float, level: float) -> float:
    """Return half the width of the confidence sequence of a mean of `blocks` values; infinite if `blocks` is too small.

    `spread`: the values' standard deviation. The sequence holds after every block at once with a chance of 1 - `level`.
    """
    if blocks < 2:
        return inf
    weight = 1 + blocks * PRIOR
    grown = (weight / level**2) ** (1 / blocks)
    if grown >= weight:
        return inf
    return spread * sqrt((blocks - 1) * (grown - 1) / (1 - grown / weight) / blocks)


def needed(blocks: int, spread: float, change: float, level: float) -> int | None:
    """Return how many blocks would show a change (a log ratio) nine times in ten; None if more than `FARTHEST`.

    `blocks`: the smallest number that is considered. `spread`, `level`: as in `radius`.
    """
    for count in range(blocks, FARTHEST + 1):
        if radius(count, spread, level) + SEEN * spread / sqrt(count) <= change:
            return count
    return None


def state_of(logs: Sequence[float], metric: MetricInfo, change: float, level: float) -> MetricState:
    """Return the result by one metric: "no change", "slower", "faster" or "open" (see `MetricState`).

    `logs`: the log ratio of the new build to the old one in each block. `change`: the stated change as a share (0.03:
    3 %). `level`: the chance of error of the interval, as in `radius`. "no change": the interval lies within the stated
    change in both directions. "slower", "faster": the interval reaches beyond the stated change, and lies wholly on the
    side on which the new build is worse, or better, by this metric. "open": none of these yet, or fewer than two
    blocks.
    """
    if len(logs) < 2:
        return "open"
    middle, half = fmean(logs), radius(len(logs), stdev(logs), level)
    if abs(middle) + half < log(1 + change):
        return "no change"
    worse = -middle if metric.better == "higher" else middle
    return "slower" if worse > half else "faster" if -worse > half else "open"


def builds(analysis: Analysis, enough: Enough) -> BuildVerdict:
    """Return the verdict on a study of two builds (`compose.two_builds`) after the blocks so far.

    `enough`: what the run was asked: the change to be found or excluded, and the metrics that decide (none: the primary
    metrics). ValueError if `enough.change` is None.
    """
    if enough.change is None:
        raise ValueError("this run was not asked about a change between two builds")
    asked = _asked(analysis, enough)
    level = intervals.LEVEL / max(len(asked), 1)  # Bonferroni: every interval holds in 95 % of runs
    lines, twins, costs = [], [], []
    for setting, metric in asked:
        old, new, again = (analysis.cell(arm, setting, metric.name) for arm in (OLD, NEW, OLD_AGAIN))
        lines.append(_line(old, new, enough, level, _bound(old, new)))
        twins.append(_line(old, again, enough, level))
    for setting, metric in _costs(analysis, asked):
        old, new = (analysis.cell(arm, setting, metric.name) for arm in (OLD, NEW))
        if old.values and new.values:
            costs.append(_line(old, new, enough, intervals.LEVEL))
    apart = any(twin.state in ("slower", "faster") for twin in twins)
    outcome, final = _outcome(lines, apart=apart)
    return BuildVerdict(enough.change, tuple(lines), tuple(twins), tuple(costs), outcome, apart, final)


def _asked(analysis: Analysis, enough: Enough) -> list[tuple[Scenario, MetricInfo]]:
    """Return each setting with the metrics that decide: the primary ones of its workload, or those that were named."""
    uses = {use.name: use for use in analysis.results.plan.workloads}
    return [
        (setting, metric)
        for setting in analysis.settings()
        for metric in uses[setting.workload].metrics
        if (metric.name in enough.metrics if enough.metrics else metric.primary)
    ]


def _costs(analysis: Analysis, asked: Sequence[tuple[Scenario, MetricInfo]]) -> list[tuple[Scenario, MetricInfo]]:
    """Return each setting with its cost metrics (`COSTS`) that do not decide."""
    uses = {use.name: use for use in analysis.results.plan.workloads}
    decide = {(setting, metric.name) for setting, metric in asked}
    names = [f"{cost}_{end}" for cost in COSTS for end in ("source", "target")]
    found = {
        (setting, metric.name): metric for setting in analysis.settings() for metric in uses[setting.workload].metrics
    }
    keys = [(setting, name) for setting in analysis.settings() for name in names]
    return [(key[0], found[key]) for key in keys if key in found and key not in decide]


def _line(old: MetricCell, new: MetricCell, enough: Enough, level: float, bound: str = "") -> BuildChange:
    assert enough.change is not None
    before, after = ({value.block: value.value for value in cell.values} for cell in (old, new))
    blocks = sorted(before.keys() & after.keys())
    medians = tuple(None if cell.spread is None else cell.spread.median for cell in (old, new))

    def line(state: MetricState, **more: object) -> BuildChange:
        return BuildChange(old.setting, old.metric, state, len(blocks), medians, bound=bound, **more)  # type: ignore[arg-type]

    if new.success.total and new.success.high < RELIABLE and old.success.low > new.success.high:
        return line("fails", why=f"{_failed(new)} with the new build, {_failed(old)} with the old one")
    if any(min(before[block], after[block]) <= 0 for block in blocks):
        # Without a ratio, the differences decide: all must be within the margin in which two arms count as equal.
        largest = max(abs(after[block] - before[block]) for block in blocks)
        if old.metric.compare == "difference" and largest <= equal_within(old.metric) and len(blocks) > 1:
            return line("no change", why="it is zero in some block, and within the margin in all")
        return line("set aside", why="it is zero or below in some block, so that it has no ratio")
    if old.success.total and not old.success.count:
        return line("set aside", why=f"{_failed(old)} with the old build")
    logs = [log(after[block] / before[block]) for block in blocks]
    if len(logs) < 2:
        return line("open")
    middle, spread = fmean(logs), stdev(logs)
    half = radius(len(logs), spread, level)
    bounds = (exp(middle - half), exp(middle + half)) if isfinite(half) else (0.0, inf)
    return line(
        state_of(logs, old.metric, enough.change, level),
        ratio=exp(middle),
        interval=bounds,
        needed=needed(len(logs), spread, log(1 + enough.change), level),
    )


def _failed(cell: MetricCell) -> str:
    return f"{cell.success.total - cell.success.count} of {cell.success.total} trials fail"


def _bound(old: MetricCell, new: MetricCell) -> str:
    """Name what limits both builds other than their own work; "" if nothing like that is known."""
    held = {cell.ceiling for cell in (old, new)}
    if held <= {"link", "near the link"}:
        return "the link"
    return {"load": "the load that is offered", "lab": "the laboratory"}.get(str(*held), "") if len(held) == 1 else ""


def _outcome(lines: Sequence[BuildChange], *, apart: bool) -> tuple[BuildOutcome, bool]:
    """Return the outcome by all metrics together, and whether it is final: more blocks could not change it.

    A metric that was set aside may hide a change, so the outcome is then `undecided` unless another one is slower.
    """
    states = [line.state for line in lines]
    if apart or set(states) <= {"set aside"}:
        return "undecided", True
    if "slower" in states or "fails" in states:
        return "slower", True
    if "open" in states or "set aside" in states:
        return "undecided", "open" not in states
    return ("faster" if "faster" in states else "no change"), True


def decision(
    verdict: BuildVerdict, enough: Enough, blocks: int, *, spent: float, block_seconds: float
) -> BlockDecision:
    """Decide whether the run adds blocks after `blocks` blocks, or ends.

    `spent`: the seconds that the run took so far. `block_seconds`: the seconds that one block takes.
    """
    if verdict.final:
        nothing = verdict.outcome == "undecided"
        return BlockDecision(blocks, "nothing" if nothing else "found", blocks, spent, reason(verdict))
    return more_or_ended(enough, blocks, reason(verdict), spent=spent, block_seconds=block_seconds)


def reason(verdict: BuildVerdict) -> str:
    """Return in a few words why a verdict is what it is."""
    change = f"{100 * verdict.change:g} %"
    if verdict.apart:
        return "the old build came out different from itself"
    if verdict.outcome == "undecided" and not verdict.open_lines and len(verdict.set_aside) == len(verdict.lines):
        return "no metric has a ratio of new to old"
    if verdict.outcome == "undecided" and not verdict.open_lines:
        return f"{len(verdict.set_aside)} of {len(verdict.lines)} metrics have no ratio of new to old"
    if verdict.outcome == "undecided":
        return f"a change of {change} is neither found nor excluded by {len(verdict.open_lines)} of {len(verdict.lines)} metrics"
    return {"slower": "the new build is slower", "faster": "the new build is faster"}.get(
        verdict.outcome, f"no change of {change} or more"
    )


def more_needed(verdict: BuildVerdict, blocks: int) -> int | None:
    """Return how many more blocks should show the stated change by every open metric, in whole batches.

    `blocks`: how many blocks have run. None if no metric is open, or if the number is unknown for some open metric.
    """
    counts = [line.needed for line in verdict.open_lines]
    known = [count for count in counts if count is not None]
    if not counts or len(known) < len(counts):
        return None
    lacking = max(blocks - line.blocks for line in verdict.open_lines)
    return BATCH * max(ceil((max(known) + lacking - blocks) / BATCH), 1)
