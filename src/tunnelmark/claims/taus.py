"""Measures how far an order agrees with a published one: Kendall's tau-b with an interval.

M. G. Kendall, "A New Measure of Rank Correlation", Biometrika 30, 1938, pp. 81-93. The interval is a percentile
bootstrap over blocks: whole blocks are drawn, because what arms share inside a block must stay together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from tunnelmark.claims.model import CellValues, Values

RESAMPLES = 2000
_SEED = 20


def kendall(samples: Sequence[CellValues], values: Values) -> tuple[float, float, float] | None:
    """Return Kendall's tau of the order of the cells' means against the published order, and both ends of its interval.

    `samples`: the values of each cell, in the published order, the largest first. `values`: where the samples are from.
    A tau of 1: the same order; -1: the reverse. None with fewer than three cells. The interval is one of 95 %; its ends
    equal tau if each cell has a single value, values are not paired, or fewer than three blocks have all cells.
    """
    if len(samples) < 3:
        return None
    blocks = sorted(set.intersection(*(set(sample.values) for sample in samples))) if values.paired else []
    if values.single or len(blocks) < 3:
        tau = _tau([fmean(sample.values.values()) for sample in samples])
        return tau, tau, tau
    table = np.array([[sample.values[block] for block in blocks] for sample in samples])
    tau = _tau(list(table.mean(axis=1)))  # of the blocks that its interval is of
    draws = np.random.default_rng(_SEED).integers(len(blocks), size=(RESAMPLES, len(blocks)))
    taus = [_tau(list(table[:, draw].mean(axis=1))) for draw in draws]
    low, high = np.quantile(taus, (0.025, 0.975))
    return tau, float(low), float(high)


def _tau(means: Sequence[float]) -> float:
    """Return tau-b of the values against a falling order; 0 if all values are equal."""
    agree = against = tied = 0
    for place, one in enumerate(means):
        for other in means[place + 1 :]:
            agree, against, tied = agree + (one > other), against + (one < other), tied + (one == other)
    pairs = agree + against + tied
    root = math.sqrt(pairs * (agree + against))
    return (agree - against) / root if root else 0.0
