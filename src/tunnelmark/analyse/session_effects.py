"""Combines an effect over sessions and machines: its mean, its variance on each level, a prediction for another run.

Pure. Effects are additive (log ratios or differences), each with its standard error and its number of blocks.

The *unit* is the highest level of which there are several: machines, else sessions (runs on other boots or days) of one
machine.

*Units like these.* Units are taken as drawn from a population of such units (a model of random effects). The mean is
weighted by the variance between units after Paule and Mandel, "Consensus Values and Weighting Factors", J. Res. NBS 87,
1982, pp. 377-385, which does well with few units (Veroniki et al., "Methods to estimate the between-study variance",
Res. Synth. Methods 7, 2016, pp. 55-79). The interval of the mean is that of Hartung and Knapp (Statist. Med. 20, 2001,
pp. 1771-1782) and Sidik and Jonkman (Comput. Stat. Data An. 50, 2006, pp. 3681-3701), with Student's t of k - 1 degrees
for k units. It is never narrower than an interval whose weights are certain (Roever, Knapp and Friede, BMC Med. Res.
Methodol. 15:99, 2015).

*Short sessions.* The error of a session with two to four blocks is known so badly that weights by it are wrong:
intervals of 95 % held in 84 to 92 % of simulated studies. So if a session has fewer than `OWN_BLOCKS` blocks, all units
have equal weights, and the interval is Student's over units. This interval needs no errors. So it also holds if no
session has two blocks, and if blocks vary more on some machines. It costs little if units differ: compared with the
best weights, equal weights make the interval at most 10 % wider for machines of 12, 6, 3, 3 and 1 blocks, and at most
30 % wider for machines of 12, 1 and 1 blocks. If a computation needs the error of a short session, the deviation of a
block is pooled over all sessions.

*These units.* The mean of only the units that were measured, in these sessions, has an error from blocks alone, with
the degrees of freedom of Satterthwaite (Biometrics Bulletin 2, 1946, pp. 110-114). It says nothing about another unit.
It also exists for two units.

*Components.* The variance on a level is the variance of the estimates less the mean of their errors' variances (Hedges
and Olkin, "Statistical Methods for Meta-Analysis", 1985, ch. 9, after Cochran, Biometrics 10, 1954, pp. 101-129). It
has no bias, so it may be below zero if the units differ only by noise. An estimate that is cut off at zero is too large
on average. For example, Paule and Mandel's is 10 to 20 % too large with five machines of four blocks, if the deviation
between machines is half of that between blocks.

*Prediction.* The interval for another run has the form of Higgins, Thompson and Spiegelhalter, "A re-evaluation of
random-effects meta-analysis", JRSS A 172, 2009, pp. 137-159: mean -+ t * sqrt(spread of the units' estimates + error of
the mean). It predicts *what a run on another unit would print*. The spread of the estimates holds the differences
between units and each run's own error. So nothing is cut off at zero, and k - 1 degrees are exact if runs have equal
length and units are normal. If machines have several sessions, the spread also gets the variance that one run has and
the mean of a machine's runs lacks. The interval of Higgins et al. is for the true effect, and uses the variance between
units alone. As an interval for a run, it held in 89 to 95 % of cases where 95 % is said (3 to 5 sessions of 5 or 8
blocks, and a spread of one to five times the run's own error). `tests/unit/analyse/test_session_effects.py` counts
coverage, and `bench/machine_level.py` counts it in more cases.
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

OWN_BLOCKS = 5
"""In a session of fewer blocks, the deviation of one block is taken to be that of all sessions' blocks together."""

_LEAST_FREEDOM = 2
"""Fewer degrees of freedom give no interval: Student's factor at one degree is 12.7."""

_ROUNDING = 1e-12
_STEPS = 200

Unit = Literal["machine", "session"]


@dataclass(frozen=True, slots=True)
class SessionEffect:
    """The effect in one session: `estimate` with its standard `error` (both additive), from a number of `blocks`.

    `error`: None if there is only one block. `values`: the effects of its blocks, if they are to be shown.
    """

    session: str
    machine: str
    estimate: float
    error: float | None
    blocks: int
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitEffect:
    """The additive effect of one machine or session, with its 95 % interval over blocks (None with too few blocks)."""

    name: str
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Combined:
    """An additive effect over sessions, with intervals of 95 %.

    `low` to `high`: the interval of the mean over units like these. `next_low` to `next_high`: where a run of the same
    length on one more such unit would find the effect. Both are None with fewer than `MIN_UNITS` units. `here`: the
    mean of just these units in these sessions; its interval is None if there are too few blocks to know their error.

    `sd_machines`, `sd_sessions`: the standard deviations on these levels, beyond what the levels below explain.
    `sd_blocks`: that of one block's effect (a deployment and its trial). Each is None if nothing on its level was
    repeated. If no session has two blocks, `sd_blocks` is None, and the level above includes it. `variance_machines`
    and `variance_sessions` are not cut off at zero, and so have no bias.
    """

    unit: Unit
    units: int
    sessions: int
    mean: float
    low: float | None
    high: float | None
    next_low: float | None
    next_high: float | None
    here: float
    here_low: float | None
    here_high: float | None
    sd_machines: float | None
    sd_sessions: float | None
    sd_blocks: float | None
    variance_machines: float | None
    variance_sessions: float | None
    by_unit: tuple[UnitEffect, ...]


@dataclass(frozen=True, slots=True)
class _Variance:
    """A variance and its degrees of freedom."""

    value: float
    freedom: float


@dataclass(frozen=True, slots=True)
class _Block:
    """The variance of one block's effect, pooled over sessions; it is the sum of independent `pieces`.

    Each session with enough blocks has a piece, named by its number; the short ones share the piece "".
    """

    value: float
    pieces: Mapping[str, _Variance]


@dataclass(frozen=True, slots=True)
class _Session:
    """A session's estimate and the variance of its error, 0 if unknown.

    `own`: the name of the session's piece of the pooled variance; "" if it is short, and its error is that of all.
    """

    estimate: float
    error: float
    blocks: int
    own: str


def combine(found: Sequence[SessionEffect]) -> Combined | None:
    """Combine all sessions of one comparison; None if there are none."""
    if not found:
        return None
    block = _of_a_block(found)
    sessions = [_session(number, each, block) for number, each in enumerate(found)]
    several = len({each.machine for each in found}) > 1
    units: dict[str, list[_Session]] = {}
    for each, session in zip(found, sessions, strict=True):
        units.setdefault(each.machine if several else each.session, []).append(session)
    members = list(units.values())
    between = _between_sessions(members)
    estimates = [fmean(each.estimate for each in mine) for mine in members]
    # The spread between sessions of a machine that was measured once is taken from the other machines, if they have one.
    own = [fmean(each.error for each in mine) for mine in members]
    single = [each + max(between or 0.0, 0.0) for each in own]
    errors = [one / len(mine) for one, mine in zip(single, members, strict=True)]
    # Means over sessions hold only a part of a single run's own variance, and so does their spread; one run has all of it.
    more = _Variance(fmean(one - error for one, error in zip(single, errors, strict=True)), len(found) - len(estimates))
    mean, half, further = _over(estimates, errors, more, equal=not all(each.own for each in sessions))
    here = fmean(estimates)
    apart = None
    if len(members) > 1:
        explained = fmean((each + (between or 0.0)) / len(mine) for each, mine in zip(own, members, strict=True))
        apart = variance(estimates) - explained
    machines, boots = (apart, between) if several else (None, apart)
    (low, high), (next_low, next_high) = _around(mean, half), _around(mean, further)
    here_low, here_high = _around(here, _half(members, block))
    return Combined(
        unit="machine" if several else "session",
        units=len(members),
        sessions=len(found),
        mean=mean,
        low=low,
        high=high,
        next_low=next_low,
        next_high=next_high,
        here=here,
        here_low=here_low,
        here_high=here_high,
        sd_machines=_root(machines),
        sd_sessions=_root(boots),
        sd_blocks=_root(block.value if block else None),
        variance_machines=machines,
        variance_sessions=boots,
        by_unit=tuple(
            UnitEffect(name, estimate, *_around(estimate, _half([mine], block)))
            for (name, mine), estimate in zip(units.items(), estimates, strict=True)
        ),
    )


def paule_mandel(estimates: Sequence[float], errors: Sequence[float]) -> float:
    """Return the variance between units by the method of Paule and Mandel.

    `estimates`: the estimate of each unit. `errors`: the variance of each estimate's error. The method finds the
    variance at which the weighted squared deviations of the k estimates from their mean sum to k - 1, the sum that is
    expected by chance. The variance is 0 if the deviations sum to k - 1 or less even without a variance between units.
    """
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


def _of_a_block(found: Sequence[SessionEffect]) -> _Block | None:
    """Return the variance of a block's effect over all sessions; None if no session has two blocks."""
    freedom = sum(each.blocks - 1 for each in found)
    if not freedom:
        return None
    squares: dict[str, float] = {}
    known: dict[str, float] = {}
    for number, each in enumerate(found):
        if each.error is not None:
            piece = _piece(number, each)
            squares[piece] = squares.get(piece, 0.0) + (each.blocks - 1) * each.blocks * each.error**2
            known[piece] = known.get(piece, 0.0) + each.blocks - 1
    pieces = {name: _Variance(squares[name] / freedom, known[name]) for name in squares}
    return _Block(sum(squares.values()) / freedom, pieces)


def _piece(number: int, each: SessionEffect) -> str:
    return str(number) if each.error is not None and each.blocks >= OWN_BLOCKS else ""


def _session(number: int, each: SessionEffect, block: _Block | None) -> _Session:
    if own := _piece(number, each):
        return _Session(each.estimate, (each.error or 0.0) ** 2, each.blocks, own)
    return _Session(each.estimate, block.value / each.blocks if block else 0.0, each.blocks, own)


def _over(
    estimates: Sequence[float], errors: Sequence[float], more: _Variance, *, equal: bool
) -> tuple[float, float | None, float | None]:
    """Return the mean over units, half of its interval's width, and half of the prediction interval's width.

    Both widths are None with few units. `equal`: units have equal weights, else the best ones. `more`: by how much the
    variance of one run exceeds that of these estimates.
    """
    count = len(estimates)
    if count == 1:
        return estimates[0], None, None
    tau = 0.0 if equal else paule_mandel(estimates, errors)
    weights = [1.0 if equal else 1 / max(error + tau, _ROUNDING**2) for error in errors]
    total = sum(weights)
    mean = sum(weight * each for weight, each in zip(weights, estimates, strict=True)) / total
    if count < MIN_UNITS:
        return mean, None, None
    squares = sum(weight * (each - mean) ** 2 for weight, each in zip(weights, estimates, strict=True)) / (count - 1)
    error = sqrt((squares if equal else max(squares, 1.0)) / total)
    spread = _Variance(variance(estimates) * (1 + 1 / count), count - 1)
    further = t_quantile(_freedom([spread, more])) * sqrt(spread.value + more.value)
    return mean, t_quantile(count - 1) * error, further


def _half(members: Sequence[Sequence[_Session]], block: _Block | None) -> float | None:
    """Return half of the interval of the mean over just these units, from their blocks' errors; None if too few."""
    if block is None:
        return None
    parts, shared = dict.fromkeys(block.pieces, 0.0), 0.0
    for mine in members:
        for each in mine:
            weight = 1 / (len(members) * len(mine)) ** 2
            if each.own:
                parts[each.own] += weight * each.error
            else:
                shared += weight / each.blocks
    found = [_Variance(parts[name] + shared * piece.value, piece.freedom) for name, piece in block.pieces.items()]
    freedom = _freedom(found)
    if freedom < _LEAST_FREEDOM:
        return None
    return t_quantile(freedom) * sqrt(sum(part.value for part in found))


def _freedom(parts: Sequence[_Variance]) -> float:
    """Return the degrees of freedom of a sum of variances (Satterthwaite 1946)."""
    some = [part for part in parts if part.value > 0 and part.freedom] or parts[:1]
    squares = sum(part.value**2 / part.freedom for part in some)
    return sum(part.value for part in some) ** 2 / squares if squares else some[0].freedom


def _squares(estimates: Sequence[float], errors: Sequence[float], between: float) -> float:
    weights = [1 / max(error + between, _ROUNDING**2) for error in errors]
    mean = sum(weight * each for weight, each in zip(weights, estimates, strict=True)) / sum(weights)
    return sum(weight * (each - mean) ** 2 for weight, each in zip(weights, estimates, strict=True))


def _between_sessions(members: Sequence[Sequence[_Session]]) -> float | None:
    """Return the variance between sessions of one machine beyond their errors, pooled over machines.

    None if no machine has two sessions. It may be below zero.
    """
    repeated = [mine for mine in members if len(mine) > 1]
    freedom = sum(len(mine) - 1 for mine in repeated)
    if not freedom:
        return None
    pooled = sum((len(mine) - 1) * variance([each.estimate for each in mine]) for mine in repeated) / freedom
    return pooled - sum((len(mine) - 1) * fmean(each.error for each in mine) for mine in repeated) / freedom


def _root(value: float | None) -> float | None:
    return None if value is None else sqrt(max(value, 0.0))


def _around(mean: float, half: float | None) -> tuple[float | None, float | None]:
    return (None, None) if half is None else (mean - half, mean + half)
