"""Computes the smallest difference that a study could find with 80 % power, by the spread of an arm's own blocks.

Source: the power of Student's t test by the noncentral t distribution (J. Cohen, "Statistical Power Analysis for the
Behavioral Sciences", 2nd edition, 1988, 2.5), two-sided, at the level that Holm's procedure had reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np

from tunnelmark.analyse.intervals import MIN_BLOCKS

POWER = 0.8


def detectable(additive: Sequence[float], level: float, threshold: float) -> float | None:
    """Return the smallest true additive effect that blocks with this spread show in four of five studies.

    None with fewer than `MIN_BLOCKS` blocks. `additive`: the effect of each block, a log ratio or a difference.
    `level`: the chance of error left to this one question. `threshold`: the smallest effect that counts at all. An
    effect is shown only if its estimate is larger than the threshold. Estimates scatter around the true effect, so the
    smallest true effect is larger than the threshold by a part of that scatter.
    """
    n = len(additive)
    if n < MIN_BLOCKS:
        return None
    return smallest(float(np.std(additive, ddof=1)), n, level, threshold)


def smallest(sd: float, n: int, level: float, threshold: float) -> float:
    """Return the smallest true effect that `n` blocks with effects of deviation `sd` show in four of five studies.

    `level`, `threshold`: as in `detectable`.
    """
    error = sd / sqrt(n)
    return max(_noncentrality(n - 1, level) * error, threshold + _ABOVE * error)


_ABOVE = (
    0.8416212335729143  # the 80 % quantile of the normal: so far beyond the threshold, four of five estimates pass it
)


@lru_cache(maxsize=4096)
def _noncentrality(freedom: int, level: float) -> float:
    """Return by how many standard errors the truth must be off so that the two-sided t test at `level` finds it.

    The noncentral t is a normal over an independent root of a chi-square, so its upper tail is the mean of normal ones
    over that root; SciPy's own distribution is not a number at the small levels of large studies.
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincinv, ndtr, stdtrit

    bound = float(stdtrit(freedom, 1 - level / 2))
    middles = (np.arange(_STEPS) + 0.5) / _STEPS
    roots = np.sqrt(2 * gammaincinv(freedom / 2, middles) / freedom)
    return float(brentq(lambda off: float(ndtr(off - bound * roots).mean()) - POWER, 0.0, 10 * bound + 10))


_STEPS = 2000
