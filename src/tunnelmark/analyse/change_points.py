"""Finds where a series changes its level: tests the most likely split in two, and then each part again. Pure.

The statistic is the largest standardised Mann-Whitney statistic over all splits of the series in two (D. M. Hawkins and
Q. Deng, "A Nonparametric Change-Point Control Chart", Journal of Quality Technology 42(2), 2010, pp. 165-173). The
statistic is made of ranks, so one run far off, or a ratio of zero, cannot cause a change by itself. The p value is the
share of random orders of the same values in which the statistic is at least as large. If nothing changed, this p value
is exact, whatever the distribution of the values.

A series with a change is split there, and its parts are tested in turn, as in D. S. Matteson and N. A. James, "A
Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA 109, 2014, pp. 334-345. Benchmarks
of software use this method (D. Daly et al., "The Use of Change Point Detection to Identify Software Performance
Regressions in a Continuous Integration System", ICPE 2020). All series that are tested together are one family, which
is corrected after Holm in each round.

The place of a change is found by least absolute deviations (J. Bai, "Least Absolute Deviation Estimation of a Shift",
Econometric Theory 11, 1995, pp. 403-436). At the end, each change is placed again and tested again in the stretch
between its two neighbours (J. Bai, "Estimating Multiple Breaks One at a Time", Econometric Theory 13, 1997,
pp. 315-352). `bench/change_points.py` counts how many changes are found, and how many are false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tunnelmark.analyse.intervals import LEVEL, corrected

LEAST = 8
"""The fewest values for a test.

With seven, even the clearest order (three low and four high) has p = 2/35, so no change could ever be shown."""

ORDERS = 9_999
"""The number of random orders that are tried.

The smallest p value is 1 in 10,000, which is small enough even after Holm's correction over a hundred series."""


_TURNS = 20
"""The largest number of times that all changes are placed again; they no longer move after two or three."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of level. `place`: the index of the first value of the new level, from 0. `p`: the corrected p value.

    `before`, `after`: the medians of the two levels.
    """

    place: int
    p: float
    before: float
    after: float


def change_points(family: Sequence[Sequence[float]], seed: int = 0) -> tuple[tuple[ChangePoint, ...], ...]:
    """Find the changes of each series, in order; () for a series with fewer than `LEAST` values.

    The same seed gives the same result.
    """
    found: list[list[tuple[int, float]]] = [[] for _ in family]
    parts = [(number, 0, len(series)) for number, series in enumerate(family)]
    while parts := [part for part in parts if part[2] - part[1] >= LEAST]:
        looks = [_look(family[number][start:end], (seed, number, start)) for number, start, end in parts]
        q_values = corrected([p for _, p in looks])
        split = []
        for (number, start, end), (place, _), q in zip(parts, looks, q_values, strict=True):
            if q < LEVEL:
                found[number].append((start + place, q))
                split += [(number, start, start + place), (number, start + place, end)]
        parts = split
    return tuple(
        _with_levels(series, _between_neighbours(series, sorted(places), (seed, number)))
        for number, (series, places) in enumerate(zip(family, found, strict=True))
    )


def _between_neighbours(
    series: Sequence[float], places: list[tuple[int, float]], seed: Sequence[int]
) -> list[tuple[int, float]]:
    """Place and test each change again between its neighbours.

    In each turn, the weakest change is left out if it is not significant there. If a series has several steps, the
    first split may lie between two of them.
    """
    for _ in range(_TURNS):
        moved: list[tuple[int, float]] = []
        for number, (_, q) in enumerate(places):
            start = moved[-1][0] if moved else 0
            end = places[number + 1][0] if number + 1 < len(places) else len(series)
            place, p = _look(series[start:end], (*seed, start, end))
            moved.append((start + place, max(p, q)))
        weakest = max(moved, key=lambda each: each[1], default=(0, 0.0))
        if weakest[1] >= LEVEL:
            moved.remove(weakest)
        elif [place for place, _ in moved] == [place for place, _ in places]:
            break
        places = moved
    return places


def _look(values: Sequence[float], seed: Sequence[int]) -> tuple[int, float]:
    """Return the most likely split (the index of the second part's first value), and the p value of no change."""
    from scipy.stats import permutation_test, rankdata

    ranks = rankdata(values)
    if np.ptp(ranks) == 0:
        return 1, 1.0
    tested = permutation_test(
        (ranks,),
        lambda order, axis: _splits(order).max(axis=axis),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=ORDERS,
        alternative="greater",
        random_state=np.random.default_rng(list(seed)),
    )
    return _place(values), float(tested.pvalue)


def _place(values: Sequence[float]) -> int:
    """Return the split with the least sum of absolute deviations of the values from their part's median (Bai 1995).

    It is the index of the second part's first value. Ranks are not enough: in a short part they do not say how large a
    step is. The largest value counts as the second largest, and the smallest as the second smallest, so that one
    outlier is not taken for a level of its own. Infinite values, of which there may be several, are placed just over
    one range beyond the others.
    """
    found = np.asarray(values, dtype=float)
    finite = found[np.isfinite(found)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    beyond = high - low + 1
    found = np.clip(found, low - beyond, high + beyond)
    ordered = np.sort(found)
    if len(found) > 3:
        found = np.clip(found, ordered[1], ordered[-2])
    return min(range(1, len(found)), key=lambda at: _apart(found[:at]) + _apart(found[at:]))


def _apart(values: NDArray[np.float64]) -> float:
    return float(np.abs(values - np.median(values)).sum())


def _splits(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Mann-Whitney's statistic of each split in two along the last axis.

    It is standardised except for a constant factor.
    """
    n = ranks.shape[-1]
    first = np.arange(1, n)
    apart = np.cumsum(ranks - (n + 1) / 2, axis=-1)[..., :-1]
    return np.asarray(np.abs(apart) / np.sqrt(first * (n - first)))


def _with_levels(series: Sequence[float], places: Sequence[tuple[int, float]]) -> tuple[ChangePoint, ...]:
    ends = [0, *(place for place, _ in places), len(series)]
    levels = [median(series[start:end]) for start, end in pairwise(ends)] if places else []
    return tuple(ChangePoint(place, p, levels[number], levels[number + 1]) for number, (place, p) in enumerate(places))
