"""Makes the values over time for the page's charts: means of equal time steps, as fine as a page has room for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import floor
from statistics import median
from typing import Any

from tunnelmark.analyse.attempts import usable
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import MetricInfo

STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0)
"""The possible lengths of a step, in seconds."""

FINENESS = (60, 30, 20, 12)
"""The most steps that a window may have. The first of these numbers with which all series fit is used."""

MOST_POINTS = 250_000
"""The most points of all series (about 1.5 MB): in the order of the metrics, each that does not fit is left out."""

DIGITS = 4

Points = dict[int, list[tuple[float, float]]]
"""For each attempt, by its index: pairs of seconds since the window began and the value."""


def series(
    analysis: Analysis, metrics: Mapping[tuple[str, str], MetricInfo]
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the series of each metric that has any, and the metrics whose series would make the page too large.

    `metrics`: all metrics of the page, by workload and name; the second list has such pairs, too. A series has the
    index of its `metric` in `metrics`, the length of its time `step` in seconds, the indices of its `attempts`, and
    `values`: for each attempt the mean of each step, None if a step has no value.
    """
    found = _points(analysis, metrics)
    for most in FINENESS:
        shown = [_thinned(number, points, most) for number, points in found.items()]
        if sum(len(values) for one in shown for values in one["values"]) <= MOST_POINTS:
            return shown, []
    room, fitting, left_out = MOST_POINTS, [], []
    for one in shown:
        count = sum(len(values) for values in one["values"])
        if count > room:
            left_out.append(list(metrics)[one["metric"]])
            continue
        room -= count
        fitting.append(one)
    return fitting, left_out


def _points(analysis: Analysis, metrics: Mapping[tuple[str, str], MetricInfo]) -> dict[int, Points]:
    """Return the points of each metric, by its index, from the attempts that are used and not void for it."""
    places: dict[str, dict[str, int]] = {}
    for number, (workload, name) in enumerate(metrics):
        places.setdefault(workload, {})[name] = number
    counting = {(row.trial, row.attempt) for row in analysis.trials}
    found: dict[int, Points] = {}
    for place, row in enumerate(analysis.results.trials):
        if row.outcome == "ok" and (row.trial, row.attempt) in counting:
            own = {
                name: number
                for name, number in places.get(row.workload, {}).items()
                if usable(row, metrics[row.workload, name])
            }
            for sample in row.samples:
                if sample.time is not None and sample.time >= 0 and sample.metric in own:
                    points = found.setdefault(own[sample.metric], {})
                    points.setdefault(place, []).append((sample.time, sample.value))
    return dict(sorted(found.items()))


def _thinned(number: int, points: Points, most: int) -> dict[str, Any]:
    """Return a metric's points as means of time steps: the shortest that are at least as long as from one point to the next
    (the median of that), and with which no window has more than `most` steps.
    """
    longest = max(time for each in points.values() for time, _ in each)
    apart = [later - earlier for each in points.values() for (earlier, _), (later, _) in pairwise(sorted(each))]
    least = 0.9 * median(apart) if apart else 0.0  # looks are late now and then
    step = next((length for length in STEPS if longest < length * most and length >= least), STEPS[-1])
    return {
        "metric": number,
        "step": step,
        "attempts": list(points),
        "values": [_means(each, step) for each in points.values()],
    }


def _means(points: list[tuple[float, float]], step: float) -> list[float | int | None]:
    sums: dict[int, tuple[float, int]] = {}
    for time, value in points:
        at = floor(time / step + 1e-9)  # 0.3 / 0.1 is less than 3
        total, count = sums.get(at, (0.0, 0))
        sums[at] = (total + value, count + 1)
    means = [sums[at][0] / sums[at][1] if at in sums else None for at in range(max(sums) + 1)]
    return [None if mean is None else _short(mean) for mean in means]


def _short(value: float) -> float | int:
    rounded = float(f"{value:.{DIGITS - 1}e}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
