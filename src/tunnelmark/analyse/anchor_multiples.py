"""The headline of a cell: a multiple of the anchor, a share of direct, or added time; with a range for other machines.

A ratio holds on other machines if the same thing limits both sides. It does not if different things limit them. Against
direct, which its link limits, VPNs that their processor limits were 2.3 to 2.6 times as slow on one machine as on
another of the same kind, while their ratios to one another moved by 1 to 10 %. So a cell that the processor bounds is
given as a multiple of the anchor within the block. The anchor is our own tunnel that does the least a user-space VPN
must. Any other cell, such as one that the link, the load or a window bounds, is given as a share of direct. A delay is
given as what it adds to direct's, because delays add and have no multiple.

**On another machine.** A run's interval covers this run on this machine. The function `prediction` returns a wider
interval, which covers a run of the same length on another machine. Its width follows from the variance of the
difference between the two runs' log multiples. This variance is a sum: the variance between machines
(`machines.BETWEEN`), and twice the variance of this run's own mean, because the other run's mean is taken to have the
same variance. Half of the interval's width is the root of the sum times Student's t, at the degrees of freedom of the
sum (Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946,
pp. 110-114).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance
from typing import Literal

from tunnelmark.analyse import intervals
from tunnelmark.analyse.arms import ANCHOR
from tunnelmark.analyse.bottleneck import apart, apart_from_direct, bound_of
from tunnelmark.analyse.machines import BETWEEN, MachineComparison
from tunnelmark.analyse.model import Analysis, Bottleneck, Interval, MetricCell, Scenario
from tunnelmark.record.results import ArmInfo, MetricInfo

First = Literal["anchor", "direct", "added", "plain"]
"""Which figure comes first in a headline. `anchor`: the multiple of the anchor. `direct`: the share of direct.
`added`: the time by which a delay exceeds direct's. `plain`: only the value itself."""

DELAYS = frozenset({"s", "ms", "us"})


@dataclass(frozen=True, slots=True)
class Multiple:
    """An arm as a multiple of another arm: the geometric mean of the ratios within each block, and its interval.

    `effects`: the ratio in each block. `prediction`: the range in which 95 % of equally long runs on another machine
    would find the multiple. `zeros`: the number of blocks in which either value is zero or below. `estimate` is None if
    there is such a block, or if no block has both arms. `apart`: says that different things limit the two sides; else
    "".
    """

    arm: str
    against: str
    effects: tuple[float, ...]
    estimate: float | None
    interval: Interval | None
    prediction: tuple[float, float] | None
    zeros: int = 0
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Added:
    """The microseconds by which an arm's delay exceeds direct's: in each block, their mean, and the mean's interval."""

    effects: tuple[float, ...]
    estimate: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Headline:
    """The headline of a cell (`arm` in `setting`) by one metric, with the cell's bottleneck (`bound`).

    `first`: which figure comes first (see `First`). `apart`: a text if different things limit the arm and direct, so
    that their ratio measures the machine; else "". `multiple`: the multiple of the anchor; None if the metric does not
    measure a transfer, if the arm is the anchor, or if the study has no anchor. `added`: how much longer the delay is
    than direct's; None if the metric is not a delay, or if the arm is direct. `cpu`: the CPU seconds per gigabyte on
    the node that is the source of the traffic, and on the target node; each is None if the node's CPU time was not
    watched.
    """

    arm: str
    setting: Scenario
    metric: MetricInfo
    first: First
    bound: Bottleneck | None
    apart: str
    multiple: Multiple | None
    added: Added | None
    cpu: tuple[float | None, float | None]


def anchor_of(arms: Sequence[ArmInfo]) -> str | None:
    """Return the name of the anchor with which arms are compared: the first that encrypts, else the first anchor.

    None if the study has no anchor.
    """
    found = [arm for arm in arms if arm.vpn == ANCHOR and arm.same_as is None]
    ciphered = [arm for arm in found if arm.options.get("cipher", "none") != "none"]
    return next((arm.name for arm in [*ciphered, *found]), None)


def headlines(analysis: Analysis, between: MachineComparison = BETWEEN) -> tuple[Headline, ...]:
    """Return a headline for each arm, setting and primary metric that has values.

    The result is () if two conditions hold together: the study has no anchor, and no trial was watched for what limits
    it. `between`: how far multiples differ between machines.
    """
    anchor = anchor_of(analysis.results.plan.arms)
    if anchor is None and not analysis.bound_by:
        return ()
    return tuple(
        _headline(analysis, cell, anchor, between)
        for cell in analysis.cells
        if cell.metric.primary and cell.spread is not None
    )


def _headline(analysis: Analysis, cell: MetricCell, anchor: str | None, between: MachineComparison) -> Headline:
    direct, metric, setting = analysis.reference, cell.metric, cell.setting
    own, level = bound_of(analysis, cell.arm, setting, metric), intervals.level_of(analysis.results.plan.enough)
    multiple = added = None
    if metric.feels == "transfer" and metric.compare == "ratio" and anchor is not None and anchor != cell.arm:
        said = apart(own, bound_of(analysis, anchor, setting, metric)).format(anchor)
        multiple = against(cell, analysis.cell(anchor, setting, metric.name), between, said, level)
    if is_delay(metric) and direct is not None and direct != cell.arm:
        added = beyond(cell, analysis.cell(direct, setting, metric.name), level)
    first: First = "plain"
    if added is not None:
        first = "added"
    elif (
        own is not None
        and own.processor
        and multiple is not None
        and multiple.estimate is not None
        and not multiple.apart
    ):
        first = "anchor"  # if something else bounds the anchor itself, the ratio to it says as little as that to direct
    elif cell.against_direct is not None and cell.against_direct.estimate is not None:
        first = "direct"
    cpu = cpu_per_gigabyte(analysis, cell.arm, setting)
    return Headline(cell.arm, setting, metric, first, own, apart_from_direct(analysis, cell), multiple, added, cpu)


def is_delay(metric: MetricInfo) -> bool:
    """Return whether a metric is the time that a packet or an answer takes; the duration of a transfer is not."""
    return metric.unit in DELAYS and metric.feels in ("delay", "tail", "longest") and metric.better == "lower"


def against(
    cell: MetricCell,
    other: MetricCell,
    between: MachineComparison = BETWEEN,
    said: str = "",
    level: float = intervals.LEVEL,
) -> Multiple:
    """Return a cell (one metric of one arm in one setting) as a multiple of another cell, in the blocks that have both.

    `between`: how far multiples differ between machines. `said`: the text for `Multiple.apart`. `level`: the nominal
    chance of error of the interval.
    """
    mine = {value.block: value.value for value in cell.values}
    theirs = {value.block: value.value for value in other.values}
    both = sorted(mine.keys() & theirs.keys())
    zeros = sum(mine[block] <= 0 or theirs[block] <= 0 for block in both)
    if zeros or not both:
        return Multiple(cell.arm, other.arm, (), None, None, None, zeros, said)
    logs = [log(mine[block] / theirs[block]) for block in both]
    found = intervals.interval(logs, level)
    return Multiple(
        cell.arm,
        other.arm,
        tuple(exp(value) for value in logs),
        exp(fmean(logs)),
        found and Interval(exp(found.low), exp(found.high), found.method),
        prediction(logs, between),
        0,
        said,
    )


def prediction(logs: Sequence[float], between: MachineComparison = BETWEEN) -> tuple[float, float] | None:
    """Return the range of ratios in which 95 % of equally long runs on another machine would find the multiple.

    None with fewer than `intervals.MIN_BLOCKS` blocks. `logs`: the log ratio of each block.
    """
    if len(logs) < intervals.MIN_BLOCKS:
        return None
    from scipy.special import stdtrit

    own = 2 * variance(logs) / len(logs)
    machines = between.deviation**2
    whole = own + machines
    if whole == 0:
        return exp(fmean(logs)), exp(fmean(logs))
    freedom = whole**2 / (own**2 / (len(logs) - 1) + machines**2 / between.freedom)
    half = float(stdtrit(freedom, 1 - intervals.LEVEL / 2)) * sqrt(whole)
    return exp(fmean(logs) - half), exp(fmean(logs) + half)


def beyond(cell: MetricCell, direct: MetricCell, level: float = intervals.LEVEL) -> Added | None:
    """Return by how many microseconds a delay is longer than direct's, by block; None if no block has both."""
    factor = {"s": 1e6, "ms": 1e3, "us": 1.0}[cell.metric.unit]
    theirs = {value.block: value.value for value in direct.values}
    added = [factor * (value.value - theirs[value.block]) for value in cell.values if value.block in theirs]
    if not added:
        return None
    return Added(tuple(added), fmean(added), intervals.interval(added, level))


def cpu_per_gigabyte(analysis: Analysis, arm: str, setting: Scenario) -> tuple[float | None, float | None]:
    """Return the CPU seconds per gigabyte of the sender and the receiver, medians over blocks; None if not watched."""

    def of(end: str) -> float | None:
        try:
            cost = analysis.cell(arm, setting, f"cpu_per_gb_{end}")
        except KeyError:
            return None
        return cost.spread.median if cost.spread else None

    return of("source"), of("target")
