"""Intervals and tests for a handful of blocks: the expanded bootstrap, Student's t, the sign interval, Wilson's, Holm.

Sources: T. C. Hesterberg, "What Teachers Should Know About the Bootstrap: Resampling in the Undergraduate Statistics
Curriculum", The American Statistician 69(4), 2015, pp. 371-386 (the expanded percentile interval, and the exact
bootstrap distribution). E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22,
1927, pp. 209-212. S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics
6(2), 1979, pp. 65-70. W. R. Thompson, "On Confidence Ranges for the Median and Other Expectation Distributions for
Populations of Unknown Distribution Form", Annals of Mathematical Statistics 7(3), 1936, pp. 122-128 (the sign interval).
D. J. Schuirmann, "A Comparison of the Two One-Sided Tests Procedure ...", Journal of Pharmacokinetics and Biopharmaceutics
15(6), 1987, pp. 657-680 (equal within a margin: an interval lies inside of it). C. J. Clopper and E. S. Pearson, "The Use of Confidence
or Fiducial Limits Illustrated in the Case of the Binomial", Biometrika 26, 1934, pp. 404-413 (the exact interval of a share).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from tunnelmark.analyse.model import Interval, SuccessShare
from tunnelmark.plan.enough import Enough

LEVEL = 0.05
"""The chance of error everywhere: intervals of 95 %; a corrected test says "differs" if q is below 5 %."""

EQUAL_LEVEL = 0.08
"""The level of the test for equality: two one-sided tests at 4 % each are one interval of 92 % (Schuirmann 1987).

At 5 % they are wrong in exactly 5 % of normal samples, and noise that is not quite normal is to stay below that, too."""

LEVEL_UNTIL_PRECISE = 0.035
"""`LEVEL` of a run that stops when its intervals are narrow. It stops early if its blocks happen to scatter little, so
that an interval of 95 % holds the truth in 93 % of such runs (as Chow and Robbins' rule in small samples: N. Starr, "The
Performance of a Sequential Procedure for the Fixed-Width Interval Estimation of the Mean", Annals of Mathematical
Statistics 37(1), 1966, pp. 36-50). With the factor of 96.5 % it is 95 % or more (`bench/stopping_bars.py` simulates it)."""

LEVEL_UNTIL_CHANGED = 0.025
"""`LEVEL` of a run that stops when a change between two builds is found or excluded (`build_change`, whose own
intervals hold after every block). All other intervals of such a run are too near to what it stopped for: those of 95 %
hold the truth in 90 to 96 % of runs, those with the factor of 97.5 % in 96 % or more, by the simulation in
`bench/ab.py`."""

MIN_BLOCKS = 3
"""Fewer blocks than this give no interval and no test; Student's factor at two blocks is 12.7."""

MIN_BOOTSTRAP = 5
"""With fewer blocks than this, Student's interval is given instead of a percentile interval. A percentile interval does
not reach beyond the smallest and the largest block. These hold the truth between them 75 % of the time if there are
three blocks, and 88 % if there are four."""

EXACT_BLOCKS = 8
"""Up to this many blocks, all resamples are enumerated and no chance is left in the interval."""

RESAMPLES = 10_000

_ROUNDING = 1e-12


def level_of(enough: Enough | None) -> float:
    """Return the level (nominal chance of error) at which the intervals of such a run hold the truth in 95 % of runs.

    The level is 5 % for a run that does not end because of its results. It is smaller for a run that ends when its
    intervals are narrow, or when a change is found or excluded. `enough`: what decides when the run ends; None if its
    number of blocks is fixed.
    """
    if enough is not None and enough.change is not None:
        return LEVEL_UNTIL_CHANGED
    return LEVEL if enough is None or enough.precision is None else LEVEL_UNTIL_PRECISE


def interval(effects: Sequence[float], level: float = LEVEL) -> Interval | None:
    """Return a 95 % interval of the mean of additive effects (log ratios or differences), one per block.

    Blocks are the clusters: whatever is correlated inside a block stays together when blocks are drawn again. None with
    fewer than `MIN_BLOCKS` blocks. The same effects always give the same interval. `level`: see `level_of`.
    """
    n = len(effects)
    if n < MIN_BLOCKS:
        return None
    if n < MIN_BOOTSTRAP and (found := student(effects, level)) is not None:
        return Interval(*found, "student")
    return Interval(*percentiles(np.asarray(effects, dtype=float), expanded_tail(n, level)), "bootstrap")


def expanded_tail(n: int, level: float = LEVEL) -> float:
    """Return the tail (0 to 1) of Hesterberg's expanded percentile interval, which takes the place of the usual 2.5 %.

    The tail is Phi(-sqrt(n / (n - 1)) t), where `n` is the number of blocks, Phi is the normal distribution function,
    and t is Student's factor for n - 1 degrees of freedom at `level`. The plain percentile interval is too narrow for
    two reasons: the bootstrap divides by n instead of n - 1, and its factor is that of the normal distribution instead
    of Student's t. With five blocks, the plain interval of 95 % holds the truth 85 % of the time, and the expanded one
    94 %.
    """
    from scipy.special import ndtr  # SciPy costs 0.4 s, and most commands need none of it

    return float(ndtr(-sqrt(n / (n - 1)) * t_quantile(n - 1, level)))


def percentiles(values: NDArray[np.float64], tail: float) -> tuple[float, float]:
    """Return the lower and upper `tail` quantile of the bootstrap distribution of the mean.

    `values`: the additive effect of each block. `tail`: a share, such as `expanded_tail` returns. With few blocks the
    distribution has few steps. If a quantile lies between two steps, the outer step is taken, because these intervals
    tend to be too narrow.
    """
    n = len(values)
    if n > EXACT_BLOCKS:
        outer = max(0, int(tail * RESAMPLES) - 1)
        low, high = np.partition(_drawn(n) @ values, (outer, -1 - outer))[[outer, -1 - outer]]
        return float(low), float(high)
    weights, chances = _resamples(n)
    means = weights @ values
    order = np.argsort(means)
    below, above = np.cumsum(chances[order]), np.cumsum(chances[order[::-1]])
    low, high = (max(0, int(np.searchsorted(sums, tail, side="right")) - 1) for sums in (below, above))
    return float(means[order[low]]), float(means[order[::-1][high]])


@lru_cache
def _resamples(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all distinct resamples of n values, as weights of these values, and the chance of each (multinomial)."""
    draws = [np.bincount(draw, minlength=n) for draw in combinations_with_replacement(range(n), n)]
    chances = [factorial(n) / prod(factorial(int(k)) for k in draw) / n**n for draw in draws]
    return np.array(draws) / n, np.array(chances)


@lru_cache(maxsize=32)
def _drawn(n: int) -> NDArray[np.float64]:
    """Return `RESAMPLES` resamples of n values as weights, drawn by chance, and the same for every question.

    A draw of its own for each question would be as good, and takes most of the time of a large study's analysis.
    """
    draws = np.random.default_rng(n).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    return draws / n


def paired_t(effects: Sequence[float]) -> float | None:
    """Return the two-sided p value of "the mean additive effect is zero" by Student's paired t over blocks.

    None with fewer than `MIN_BLOCKS`. Effects that are all alike have no spread to compare with: p is 1 when they are
    all zero and 0 otherwise.
    """
    n = len(effects)
    if n < MIN_BLOCKS:
        return None
    from scipy.special import stdtr

    values = np.asarray(effects, dtype=float)
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    largest = float(np.abs(values).max())
    if spread <= _ROUNDING * max(largest, _ROUNDING):
        return 1.0 if largest <= _ROUNDING else 0.0
    return float(2 * stdtr(n - 1, -abs(mean) / (spread / sqrt(n))))


def corrected(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values of one family of questions, corrected by Holm (1979), in the same order.

    Whatever the questions have to do with one another, the chance that any "differs" at 5 % is false stays below 5 %.
    """
    m, largest, found = len(p_values), 0.0, [0.0] * len(p_values)
    for place, index in enumerate(sorted(range(m), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (m - place) * p_values[index]))
        found[index] = largest
    return tuple(found)


def student(effects: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Return the ends of Student's interval of the mean additive effect, with a confidence of 1 - `level`.

    None with fewer than `MIN_BLOCKS` blocks.
    """
    n = len(effects)
    if n < MIN_BLOCKS:
        return None
    values = np.asarray(effects, dtype=float)
    half = float(t_quantile(n - 1, level) * values.std(ddof=1) / sqrt(n))
    return float(values.mean()) - half, float(values.mean()) + half


def sign_interval(effects: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Return the narrowest exact interval of the median, with a confidence of at least 1 - `level`.

    Both ends of the interval are effects of single blocks. The interval holds for any distribution of the effects
    (Thompson 1936), and effects may be infinite. None if even the interval from the smallest to the largest effect has
    a confidence below 1 - `level`: with five or fewer blocks at a level of 5 %, with four or fewer at 10 %.
    """
    n, ordered = len(effects), sorted(effects)
    tail, found = 0.0, None
    for below in range((n + 1) // 2):
        tail += comb(n, below) / 2**n
        if 2 * tail > level:
            break
        found = ordered[below], ordered[n - 1 - below]
    return found


def share(count: int, total: int) -> SuccessShare:
    """Return `count` of `total` with Wilson's 95 % interval of the rate; it is 0 to 1 if nothing was tried."""
    if total == 0:
        return SuccessShare(0, 0, 0.0, 1.0)
    z = 1.959963984540054
    rate, extra = count / total, z * z / total
    middle = (rate + extra / 2) / (1 + extra)
    half = z / (1 + extra) * sqrt(rate * (1 - rate) / total + extra / (4 * total))
    return SuccessShare(count, total, max(0.0, middle - half), min(1.0, middle + half))


def exact_share(count: int, total: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval (from 0 to 1) of the rate behind `count` of `total`.

    It holds the rate in at least 1 - `level` of studies.
    """
    from scipy.special import betaincinv  # SciPy costs 0.4 s

    low = float(betaincinv(count, total - count + 1, level / 2)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - level / 2)) if count < total else 1.0
    return low, high


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Return the factor of a two-sided interval by Student's t, outside of which a share `level` of values lies.

    `freedom`: the degrees of freedom; if they are infinite, it is the factor of a normal distribution.
    """
    from scipy.special import stdtrit  # SciPy costs 0.4 s

    return float(stdtrit(freedom, 1 - level / 2))
