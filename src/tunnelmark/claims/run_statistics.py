"""Computes figures that a source prints and no trial reports: over a trial's seconds, a cell's runs, an arm's trials.

A spread over runs has no value in a single run. It is replaced by the jackknife's pseudo-values of its logarithm (R. G.
Miller, "Jackknifing Variances", Annals of Mathematical Statistics 39(2), 1968, pp. 567-582). They are one value for
each block, and their mean and error are those of the spread. So spreads are compared as any other values are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import exp, log
from statistics import fmean, median, pstdev, quantiles, stdev
from typing import Literal, get_args

from tunnelmark.analyse.attempts import usable
from tunnelmark.analyse.bottleneck import CORE, without_rest
from tunnelmark.analyse.intervals import MIN_BLOCKS
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.model.grades import others
from tunnelmark.record.results import MetricInfo, TrialRow

OfSeconds = Literal[
    "seconds-mean",
    "seconds-median",
    "seconds-sd",
    "seconds-cv",
    "seconds-lower-quartile",
    "seconds-upper-quartile",
    "seconds-min",
    "seconds-max",
]
OfRuns = Literal["runs-sd"]
OfTrials = Literal["success"]
OfArm = Literal["first-packet", "suite-success"]
Statistic = Literal[OfSeconds, OfRuns, OfTrials, OfArm]
"""`seconds-...`: the statistic of the means of a trial's whole seconds; `cv` is their standard deviation over their
mean. `runs-sd`: the standard deviation over runs. `success`: per cent of a workload's trials that succeeded,
`suite-success`: the same of all the arm's trials under a condition. `first-packet`: seconds from a deployment's start
until both directions had answered, as the mean over all the arm's trials of a block.
"""

SECONDS: tuple[str, ...] = get_args(OfSeconds)
SPREADS: tuple[str, ...] = get_args(OfRuns)
SUITE = "suite-success"
SHARES = ("success", SUITE)
OF_ARM: tuple[str, ...] = get_args(OfArm)
"""The statistics that are computed from all workloads of a condition together."""

OF_THE_VPN = frozenset({"not-ready", "daemon-died", "workload-failed"})
"""Reasons of failures that say something about an arm. Others, such as a missing program, are the machine's."""


def of_seconds(analysis: Analysis, arm: str, setting: Scenario, metric: MetricInfo, statistic: str) -> dict[int, float]:
    """Return, by block, a statistic over a trial's seconds, in the metric's unit (`seconds-cv`: a pure number).

    `statistic`: a name in `SECONDS`, which `Statistic` explains. Trials with fewer than two whole seconds are left out,
    and for `seconds-cv` also trials whose values are all zero.
    """
    found: dict[int, list[float]] = {}
    for row in _rows(analysis, arm, setting):
        if usable(row, metric):
            seconds = whole_seconds((each.time, each.value) for each in row.samples if each.metric == metric.name)
            if len(seconds) > 1 and (any(seconds) or statistic != "seconds-cv"):
                found.setdefault(row.block, []).append(made_of(seconds, statistic))
    return {block: fmean(values) for block, values in sorted(found.items())}


def whole_seconds(series: Iterable[tuple[float | None, float]]) -> list[float]:
    """Return the mean value of a series in each second; the last second is left out if it is not complete.

    `series`: pairs of a time, in seconds since the measurement began, and a value. A pair without a time (None) is the
    value of a whole trial, and is left out. [] if fewer than two pairs have a time.
    """
    points = sorted((time, value) for time, value in series if time is not None)
    if len(points) < 2:
        return []
    step = median(later - earlier for (earlier, _), (later, _) in pairwise(points))
    by_second: dict[int, list[float]] = {}
    for time, value in points:
        by_second.setdefault(int(time), []).append(value)
    # Of the last second all but a step or two must be there: intervals drift by some milliseconds each.
    last = max(by_second)
    complete = points[-1][0] + 2 * step >= last + 1
    return [fmean(values) for second, values in sorted(by_second.items()) if second < last or complete]


def made_of(values: Sequence[float], statistic: str) -> float:
    """Return a statistic over a trial's seconds, in the unit of the values (`seconds-cv`: a pure number).

    `values`: one for each whole second, two or more. `statistic`: a name in `SECONDS`, which `Statistic` explains.
    """
    match statistic:
        case "seconds-mean":
            return fmean(values)
        case "seconds-median":
            return median(values)
        case "seconds-sd":
            return pstdev(values)
        case "seconds-cv":
            return pstdev(values) / fmean(values)
        case "seconds-min":
            return min(values)
        case "seconds-max":
            return max(values)
    lower, _, upper = quantiles(values, n=4, method="inclusive")
    return lower if statistic == "seconds-lower-quartile" else upper


def of_runs(values: Mapping[int, float]) -> dict[int, float]:
    """Return, by block, a value that replaces the standard deviation over runs, in the unit of the given values.

    The value is the exponential of the jackknife's pseudo-value, which is computed for the standard deviation's
    logarithm. {} if all given values, or all but one, are the same, or if there are fewer than `MIN_BLOCKS` of them.
    """
    count = len(values)
    if count < MIN_BLOCKS:
        return {}
    rest = {block: [other for key, other in values.items() if key != block] for block in values}
    left = {block: stdev(others) for block, others in rest.items()}
    whole = stdev(values.values())
    if whole <= 0 or min(left.values()) <= 0:
        return {}
    return {block: exp(count * log(whole) - (count - 1) * log(each)) for block, each in left.items()}


def first_packets(analysis: Analysis, arm: str, profile: str, topology: str) -> dict[int, float]:
    """Return, by block, the mean time in seconds from a deployment's start until both directions had answered.

    The mean is over the arm's successful trials of all workloads. `topology`: "" means any.
    """
    found: dict[int, list[float]] = {}
    for row in _of_arm(analysis, arm, profile, topology):
        if row.outcome == "ok" and row.first_packet:
            found.setdefault(row.block, []).append(max(row.first_packet.values()))
    return {block: fmean(values) for block, values in sorted(found.items())}


def answered(analysis: Analysis, arm: str, profile: str, topology: str) -> tuple[int, int]:
    """Return how many of the arm's deployments under a condition answered, and how many were counted.

    Deployments that failed for another reason than those in `OF_THE_VPN` are not counted.
    """
    rows = _of_arm(analysis, arm, profile, topology)
    told = [row for row in rows if row.outcome == "ok" or (row.outcome == "failed" and row.reason in OF_THE_VPN)]
    return sum(bool(row.first_packet) for row in told), len(told)


def full_core(analysis: Analysis, arm: str, setting: Scenario) -> str:
    """Return "the sender's core" or "the receiver's core" if it was always busy in most of the arm's trials; else "".

    What other work took of a core does not count (see `analyse.bottleneck`).
    """
    rows = [row for row in _rows(analysis, arm, setting) if row.outcome == "ok" and row.limits]
    for end, words in (("source", "the sender's core"), ("target", "the receiver's core")):
        full = sum(without_rest(row.limits, end, others(row.host)) >= CORE for row in rows)
        if 2 * full > len(rows):
            return words
    return ""


def tried(
    analysis: Analysis, arm: str, setting: Scenario | None, profile: str, topology: str
) -> tuple[tuple[TrialRow, ...], str]:
    """Return the arm's trials that are not void, and the reason why these trials say nothing about the arm, or "".

    `setting`: the scenario of the trials. If it is None, the trials are those of all workloads with this profile and
    topology ("" means any topology); otherwise `profile` and `topology` are not used.
    """
    rows = _of_arm(analysis, arm, profile, topology) if setting is None else _rows(analysis, arm, setting)
    found = tuple(row for row in rows if row.outcome != "void")
    strange = next((row for row in found if row.outcome == "failed" and row.reason not in OF_THE_VPN), None)
    return found, (strange.message or strange.reason or "") if strange is not None else ""


def _rows(analysis: Analysis, arm: str, setting: Scenario) -> list[TrialRow]:
    return [row for row in analysis.trials if row.arm == arm and setting_of(row) == setting]


def _of_arm(analysis: Analysis, arm: str, profile: str, topology: str) -> list[TrialRow]:
    return [
        row for row in analysis.trials if row.arm == arm and row.profile == profile and topology in ("", row.topology)
    ]
