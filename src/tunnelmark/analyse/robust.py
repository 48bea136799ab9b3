"""Finds comparisons whose mean over blocks misleads: zeros in a ratio, mostly zero differences, a block far off. Pure.

There, with a handful of blocks, no interval of a mean holds as often as it says (the bootstrap's 95 % hold 41 to 79 % where a
trial in ten is halved, 28 to 87 % of losses that are mostly zero: `bench/statistics.py`). So the median is given instead, with
the exact interval that signs give, and reports say why.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tunnelmark.analyse.model import Doubt

MANY = 0.25
"""From this share of exactly zero blocks on, differences are mostly zero. There are then two kinds of blocks, and a mean of both
describes neither."""

FAR = 4.0
"""A block is far off beyond that many median absolute deviations, each scaled to be a normal's standard deviation."""

_NORMAL = 1.4826  # one over the upper quartile of the normal distribution
_FEWEST = 6
"""With fewer blocks the deviation says too little: 17 % of normal samples of five have a block that far off, 9 % of those of
eight. For such a sample the interval is only wider: it is exact, and holds as often as it says."""


def doubt(additive: Sequence[float], zeros: int, *, ratio: bool) -> Doubt | None:
    """Return why the mean of these effects is not to be given, or None if it is.

    `additive`: the effect of each block, a log ratio (if `ratio` is set) or a difference. `zeros`: how many values are
    zero in ratios.
    """
    if zeros:
        return "zeros"
    if not ratio:
        none = sum(value == 0 for value in additive)
        if MANY * len(additive) <= none < len(additive):
            return "mostly zero"
    return "far off" if far_off(additive) else None


def doubtful(additive: Sequence[float], zeros: int, found: Doubt | None) -> int:
    """Return how many blocks cause the doubt: those with a zero, with a difference of zero, or far off; else 0."""
    if found == "mostly zero":
        return sum(value == 0 for value in additive)
    if found == "far off":
        return far_off(additive)
    return zeros if found == "zeros" else 0


def far_off(additive: Sequence[float]) -> int:
    """Return how many blocks lie far off; 0 if half of the blocks are alike, or if there are fewer than six."""
    return len(far_blocks(additive))


def far_blocks(additive: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of the blocks that lie more than `FAR` deviations from the median.

    () if half of the blocks are alike, or if there are fewer than six.
    """
    if len(additive) < _FEWEST:
        return ()
    middle = median(additive)
    apart = [abs(value - middle) for value in additive]
    far = FAR * _NORMAL * median(apart)
    return tuple(index for index, value in enumerate(apart) if value > far > 0)
