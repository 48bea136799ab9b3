"""Combines an effect over sessions and machines: its mean, how it varies on each level, and what one more session would say.

Pure, and about nothing but additive effects (log ratios or differences), each with its standard error and number of blocks.

The *unit* is the highest level of which there are several: machines, else sessions (runs on other boots or days) of one machine.
Units are taken as drawn from a population of such units, which is the model of random effects. Its mean is weighted by the
variance between units after Paule and Mandel, "Consensus Values and Weighting Factors", J. Res. NBS 87, 1982, pp. 377-385, which
does well with few units (Veroniki et al., "Methods to estimate the between-study variance", Res. Synth. Methods 7, 2016, pp. 55-79).
Its interval is that of Hartung and Knapp (Statist. Med. 20, 2001, pp. 1771-1782) and Sidik and Jonkman (Comput. Stat. Data An. 50,
2006, pp. 3681-3701), with Student's t of k - 1 degrees, and never narrower than one with weights that are certain (Roever, Knapp
and Friede, BMC Med. Res. Methodol. 15:99, 2015).

The prediction interval has the form of Higgins, Thompson and Spiegelhalter, "A re-evaluation of random-effects meta-analysis",
JRSS A 172, 2009, pp. 137-159, for *what a run there would print*: mean -+ t * sqrt(spread of the units' estimates + error of the
mean). The spread is that of the estimates as they came, which holds the differences between units and each run's own error; so
nothing is cut off at zero, and with runs of equal length and normal units k - 1 degrees are exact. (For machines with several
sessions, what a single run varies more than their mean is added.) With the variance between
units alone, as theirs has it for the true effect, intervals of 95 % held in 89 to 95 % of cases (3 to 5 sessions of 5 or 8 blocks, and
a spread of one to five times the run's own error). `tests/unit/analyse/test_session_effects.py` counts coverage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance
from typing import Literal

from tunnelmark.analyse.intervals import t_quantile

MIN_UNITS = 3
"""Fewer units give no interval: Student's factor at two is 12.7."""

_ROUNDING = 1e-12
_STEPS = 200

Unit = Literal["machine", "session"]


@dataclass(frozen=True, slots=True)
class SessionEffect:
    """What one session says: `estimate` and its standard `error`, additive, from so many `blocks`."""

    session: str
    machine: str
    estimate: float
    error: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Combined:
    """An effect over sessions, additive. Intervals hold 95 % and are None with fewer than `MIN_UNITS` units.

    `low` to `high` is of the mean over units like these; `next_low` to `next_high` of what a run of the same length on one more
    such unit would print. Standard deviations by level: `machines` and `sessions` beyond what their parts explain, `blocks` of one
    block's effect (a deployment, and its trial); None where one alone cannot say.
    """

    unit: Unit
    units: int
    sessions: int
    mean: float
    low: float | None
    high: float | None
    next_low: float | None
    next_high: float | None
    sd_machines: float | None
    sd_sessions: float | None
    sd_blocks: float


def combine(found: Sequence[SessionEffect]) -> Combined | None:
    """All sessions of one comparison as one; None without any. Each needs two blocks or more, for a standard error."""
    if not found:
        return None
    by_machine: dict[str, list[SessionEffect]] = {}
    for each in found:
        by_machine.setdefault(each.machine, []).append(each)
    between = _between_sessions(by_machine)
    blocks = sqrt(
        sum((each.blocks - 1) * each.blocks * each.error**2 for each in found) / sum(e.blocks - 1 for e in found)
    )
    if len(by_machine) == 1:
        estimates, errors = [each.estimate for each in found], [each.error**2 for each in found]
        mean, half, further = _over(estimates, errors)
        tau = sqrt(paule_mandel(estimates, errors)) if len(found) > 1 else None
        return Combined(
            "session", len(found), len(found), mean, *_around(mean, half), *_around(mean, further), None, tau, blocks
        )
    estimates = [fmean(each.estimate for each in mine) for mine in by_machine.values()]
    # The spread between sessions of a machine that was measured once is taken from the other machines, if they have one.
    single = [fmean(each.error**2 for each in mine) + (between or 0.0) for mine in by_machine.values()]
    errors = [one / len(mine) for one, mine in zip(single, by_machine.values(), strict=True)]
    # Means over sessions hold only a part of a single run's own variance, and so does their spread; one run has all of it.
    more = fmean(one - error for one, error in zip(single, errors, strict=True))
    mean, half, further = _over(estimates, errors, more, len(found) - len(estimates))
    return Combined(
        "machine",
        len(estimates),
        len(found),
        mean,
        *_around(mean, half),
        *_around(mean, further),
        sqrt(paule_mandel(estimates, errors)),
        None if between is None else sqrt(between),
        blocks,
    )


def paule_mandel(estimates: Sequence[float], errors: Sequence[float]) -> float:
    """The variance between units with which their weighted squares are as large as expected, k - 1; `errors` are variances."""
    freedom = len(estimates) - 1
    if _squares(estimates, errors, 0.0) <= freedom:
        return 0.0
    low, high = 0.0, max(variance(estimates), _ROUNDING)
    while _squares(estimates, errors, high) > freedom:
        high *= 2
    for _ in range(_STEPS):  # the squares fall with it, so half is thrown away each time
        middle = (low + high) / 2
        low, high = (middle, high) if _squares(estimates, errors, middle) > freedom else (low, middle)
        if high - low <= _ROUNDING * high:
            break
    return (low + high) / 2


def _over(
    estimates: Sequence[float], errors: Sequence[float], more: float = 0.0, known: int = 0
) -> tuple[float, float | None, float | None]:
    """The mean over units, and half of its interval and of the prediction interval.

    One run varies more than these estimates do: by the variance `more`, which has `known` degrees of freedom.
    """
    count = len(estimates)
    if count == 1:
        return estimates[0], None, None
    tau = paule_mandel(estimates, errors)
    weights = [1 / max(error + tau, _ROUNDING**2) for error in errors]
    total = sum(weights)
    mean = sum(weight * each for weight, each in zip(weights, estimates, strict=True)) / total
    if count < MIN_UNITS:
        return mean, None, None
    squares = sum(weight * (each - mean) ** 2 for weight, each in zip(weights, estimates, strict=True))
    error = sqrt(max(squares / (count - 1), 1.0) / total)
    spread = variance(estimates) * (1 + 1 / count)
    further = t_quantile(_freedom(spread, count - 1, more, known)) * sqrt(spread + more)
    return mean, t_quantile(count - 1) * error, further


def _freedom(first: float, of_first: int, second: float, of_second: int) -> float:
    """The degrees of freedom of a sum of two variances (Satterthwaite, Biometrics Bulletin 2, 1946, pp. 110-114)."""
    if second <= 0 or not of_second:
        return of_first
    return (first + second) ** 2 / (first**2 / of_first + second**2 / of_second)


def _squares(estimates: Sequence[float], errors: Sequence[float], between: float) -> float:
    weights = [1 / max(error + between, _ROUNDING**2) for error in errors]
    mean = sum(weight * each for weight, each in zip(weights, estimates, strict=True)) / sum(weights)
    return sum(weight * (each - mean) ** 2 for weight, each in zip(weights, estimates, strict=True))


def _between_sessions(by_machine: Mapping[str, Sequence[SessionEffect]]) -> float | None:
    """The variance between sessions of one machine beyond their errors, pooled over machines; None where none has two."""
    repeated = [mine for mine in by_machine.values() if len(mine) > 1]
    freedom = sum(len(mine) - 1 for mine in repeated)
    if not freedom:
        return None
    pooled = sum((len(mine) - 1) * variance([each.estimate for each in mine]) for mine in repeated) / freedom
    own = fmean(each.error**2 for mine in repeated for each in mine)
    return max(pooled - own, 0.0)


def _around(mean: float, half: float | None) -> tuple[float | None, float | None]:
    return (None, None) if half is None else (mean - half, mean + half)
