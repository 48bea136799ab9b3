"""Finds comparisons whose mean over blocks misleads: zeros in a ratio, mostly zero differences, a block far off. Pure.

With a handful of blocks, an interval of such a mean holds the truth less often than it says. The bootstrap's interval
of 95 % holds the truth in 41 to 79 % of cases if one trial in ten has half of its value, and in 28 to 87 % for losses
that are mostly zero (`bench/statistics_bars.py`). So the median is given in place of the mean, with its exact sign
interval, and reports say why.
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
    """Return why the mean of these effects would mislead; None if the mean can be given.

    `additive`: the effect of each block, a log ratio (if `ratio` is set) or a difference. `zeros`: in how many blocks
    an arm is zero, if the arms are compared by ratios.
    """
    if zeros:
        return "zeros"
    if not ratio:
        none = sum(value == 0 for value in additive)
        if MANY * len(additive) <= none < len(additive):
            return "mostly zero"
    return "far off" if far_off(additive) else None


def doubtful(additive: Sequence[float], zeros: int, found: Doubt | None) -> int:
    """Return how many blocks cause the doubt `found`: those with a zero, with a difference of zero, or far off; else 0.

    `zeros`: as in `doubt`.
    """
    if found == "mostly zero":
        return sum(value == 0 for value in additive)
    if found == "far off":
        return far_off(additive)
    return zeros if found == "zeros" else 0


def far_off(additive: Sequence[float]) -> int:
    """Return the number of blocks that lie far from the median (see `far_blocks`)."""
    return len(far_blocks(additive))


def far_blocks(additive: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of the blocks whose effect lies more than `FAR` deviations from the median effect.

    The deviation is the median absolute deviation, scaled to a normal's standard deviation. It is zero if half of the
    blocks or more have the same effect, and then no block counts as far off: the result is (). The result is also () if
    there are fewer than six blocks.
    """
    if len(additive) < _FEWEST:
        return ()
    middle = median(additive)
    apart = [abs(value - middle) for value in additive]
    far = FAR * _NORMAL * median(apart)
    return tuple(index for index, value in enumerate(apart) if value > far > 0)
