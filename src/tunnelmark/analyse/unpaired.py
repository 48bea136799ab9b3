"""Computes what studies without blocks print: rank tests of every two arms, and the scatter of values. Pure.

Mann-Whitney's U (H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is Stochastically
Larger than the Other", Annals of Mathematical Statistics 18, 1947, pp. 50-60) takes the values of two arms as two
samples, whatever block they are from. If blocks differ, this test finds less than the paired test, on which verdicts
rest. It is given because published tables have it. Cliff's delta says how far the samples are apart: the share of pairs
in which the first value is larger, less the share in which it is smaller (N. Cliff, "Dominance Statistics: Ordinal
Analyses to Answer Ordinal Questions", Psychological Bulletin 114, 1993, pp. 494-509).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb, sqrt
from statistics import fmean, variance

import numpy as np

from tunnelmark.analyse.intervals import LEVEL, corrected
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo

_MOST = 32
"""Up to so many values of two arms together, p is exact even with ties: all arrangements of the ranks are counted.

SciPy's tables do not cover ties, and its way through all arrangements takes half a second for eight values against
eight."""


@dataclass(frozen=True, slots=True)
class RankTest:
    """Two arms compared as samples, by one metric in one setting.

    `counts`: the number of values of each arm, zeros included. `failed`: how many trials of each arm failed and so have
    no rank. `u`: Mann-Whitney's U of `arm`. `q`: `p` after Holm's correction over all pairs and settings of this
    metric. `delta`: Cliff's delta (1: values of `arm` are always larger). `least`: the smallest p that so few values
    can have.
    """

    arm: str
    against: str
    setting: Scenario
    metric: MetricInfo
    counts: tuple[int, int]
    failed: tuple[int, int]
    u: float
    p: float
    q: float
    delta: float
    least: float

    @property
    def differs(self) -> bool:
        """Whether the corrected test shows that values of one arm tend to be larger."""
        return self.q < LEVEL


@dataclass(frozen=True, slots=True)
class BlockScatter:
    """A cell's values over blocks: mean, standard deviation (of a sample) in the metric's unit, and their quotient.

    `deviation`: None with fewer than two values. `variation`: `deviation` divided by `mean`. It is None if either is
    missing, if the mean is zero, or if the metric is compared by differences, because the zero of such a metric is
    arbitrary, or its values are often zero. `failed`, `void`: the numbers of trials without a value.
    """

    cell: MetricCell
    count: int
    mean: float | None
    deviation: float | None
    variation: float | None
    zeros: int
    failed: int
    void: int


def rank_tests(analysis: Analysis, settings: Iterable[Scenario], metric: MetricInfo) -> tuple[RankTest, ...]:
    """Test every two arms that have values, in each of these settings of one workload; all are corrected together."""
    found = []
    for setting in settings:
        cells = [cell for cell in analysis.cells_of(setting, metric.name) if cell.values]
        for one, other in combinations(cells, 2):
            x, y = ([value.value for value in cell.values] for cell in (one, other))
            u, p = mann_whitney(x, y)
            found.append((one, other, u, p))
    q_values = corrected([p for *_, p in found])
    return tuple(
        RankTest(
            one.arm,
            other.arm,
            one.setting,
            metric,
            counts := (len(one.values), len(other.values)),
            (_failed(one), _failed(other)),
            u,
            p,
            q,
            2 * u / (counts[0] * counts[1]) - 1,
            min(1.0, 2 / comb(sum(counts), counts[0])),
        )
        for (one, other, u, p), q in zip(found, q_values, strict=True)
    )


def mann_whitney(x: Iterable[float], y: Iterable[float]) -> tuple[float, float]:
    """Return U of `x` (the number of pairs in which its value is larger; a tie counts half) and the two-sided p value.

    Neither sample may be empty.
    """
    first, second = list(x), list(y)
    _, place, counts = np.unique([*first, *second], return_inverse=True, return_counts=True)
    ranks = [float(rank) for rank in (np.cumsum(counts) - (counts - 1) / 2)[place]]  # ties share their mean rank
    return _by_ranks(tuple(sorted(ranks[: len(first)])), tuple(sorted(ranks[len(first) :])))


@lru_cache(maxsize=4096)
def _by_ranks(x: tuple[float, ...], y: tuple[float, ...]) -> tuple[float, float]:
    """Return the same from ranks. Few blocks have few arrangements of ranks, so each is computed only once."""
    from scipy.stats import mannwhitneyu  # SciPy costs 0.4 s, and most commands need none of it

    if len({*x, *y}) == 1:
        return len(x) * len(y) / 2, 1.0
    tied = len({*x, *y}) < len(x) + len(y)
    if tied and len(x) + len(y) <= _MOST:
        return sum(x) - len(x) * (len(x) + 1) / 2, _exact(x, y)
    found = mannwhitneyu(x, y)
    return float(found.statistic), float(found.pvalue)


def _exact(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exact two-sided p: where the sum of the ranks `x` lies among all choices of equally many ranks.

    Tied ranks may be halves, so ranks are doubled to be whole.
    """
    doubled = [round(2 * rank) for rank in (*x, *y)]
    ways = np.zeros((len(x) + 1, sum(doubled) + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    sums, at = ways[len(x)], sum(doubled[: len(x)])
    tail = min(float(sums[: at + 1].sum()), float(sums[at:].sum()))
    return min(1.0, 2 * tail / comb(len(doubled), len(x)))


def scatter(analysis: Analysis, settings: Iterable[Scenario], metric: MetricInfo) -> tuple[BlockScatter, ...]:
    """Return the scatter of each arm's values by one metric in each of these settings, also of arms without values."""
    return tuple(_scatter(cell) for setting in settings for cell in analysis.cells_of(setting, metric.name))


def _scatter(cell: MetricCell) -> BlockScatter:
    values = [value.value for value in cell.values]
    mean = fmean(values) if values else None
    deviation = sqrt(variance(values)) if len(values) > 1 else None
    of_ratio = cell.metric.compare == "ratio" and mean
    variation = deviation / mean if deviation is not None and mean and of_ratio else None
    return BlockScatter(cell, len(values), mean, deviation, variation, cell.zeros, _failed(cell), cell.void)


def _failed(cell: MetricCell) -> int:
    return cell.success.total - cell.success.count
