"""Judges a claim: computes each statement's effect with its interval, and compares it with the claimed range.

If values are paired, each block has an effect, and the mean of these effects has Student's interval. If values are not
paired, the effect is computed from the mean of each cell, and has Welch's interval (B. L. Welch, Biometrika 34, 1947,
pp. 28-35). Ratios are averaged as logarithms. A share of successful trials has an exact interval.

An interval inside of the range shows the statement, and an interval outside of the range shows the contrary. So a claim
holds by evidence only. If a claim has several statements, one false alarm would be enough to refute the claim. So the
intervals that can refute it are wider (Bonferroni).

A rate that this machine's processor limits is lower than the published link allows. Some claims bound a ratio on one
side only. If the limited rate can only move the ratio away from the claimed range, the claim can still hold; if it does
not hold, it is not testable.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from math import exp, inf, log, log1p, sqrt
from statistics import fmean, variance

from tunnelmark.analyse.intervals import LEVEL, MIN_BLOCKS, exact_share, t_quantile
from tunnelmark.claims import against_matrix
from tunnelmark.claims.model import Apart, Cell, CellValues, Claim, ClaimOutcome, Effect, Judged, Statement, Values
from tunnelmark.claims.taus import kendall

ALIKE = 0.10
"""The largest difference, as a share of 1, at which the means of runs still count as alike.

It applies if a source says that its test could not distinguish the runs: the interval of the means' ratio must lie
within it.
"""

MOST_BLOCKS = 1000
"""The largest number of blocks that is suggested."""


def judge(claim: Claim, values: Values, level: float = LEVEL) -> Judged:
    """Return the verdict on the claim by these values.

    `level`: the nominal chance of error of the intervals, from 0 to 1 (`intervals.level_of`).
    """
    if claim.untestable and (values.measured_here or not claim.statements):
        return Judged(claim, "not testable", _not_compared(claim, values, level), claim.untestable)
    if claim.feature is not None:
        if values.single:
            return Judged(claim, "not testable", reason="features are held against the matrix, when a run is judged")
        return against_matrix.compare(claim, claim.feature)
    claim = claim.of_a_lab() if values.measured_here and claim.elsewhere else claim
    judged: list[Effect] = []
    outcomes: list[ClaimOutcome] = []
    despite = ""
    refuting = level / max(1, len(claim.statements))
    for statement in claim.statements:
        cells = statement.cells
        powers = _powers(statement)
        if reason := values.obstacle(powers, _scale(statement), _conservative(statement)) or _absent(values, cells):
            return Judged(claim, "not testable", _not_compared(claim, values, level), reason)
        if isinstance(statement, Apart):
            outcomes.append(_told_apart(statement, values, level, refuting))
            continue
        found = _effect(statement, values, level, refuting)
        if found is None:
            return Judged(claim, "not testable", reason="no block has a value of each, or a ratio has a zero in it")
        if held_down := values.obstacle(powers, _scale(statement)):
            if found.outcome != "held":
                return Judged(claim, "not testable", _not_compared(claim, values, level), held_down)
            despite = despite or held_down
        judged.append(found)
        outcomes.append(found.outcome)
    # A place that is too close to all others is in no statement, and may be that of an arm without a value.
    known = claim.order and not _absent(values, claim.order)
    tau = kendall([_sample(values, cell) for cell in claim.order], values) if known else None
    outcome = _together(outcomes)
    return Judged(claim, outcome, tuple(judged), tau=tau, despite=despite if outcome == "held" else "")


def _not_compared(claim: Claim, values: Values, level: float) -> tuple[Effect, ...]:
    """Return the effect of a claim's only statement for which a verdict would be unfair, so that readers see what was found.

    () if the claim has several statements, or if a value is missing.
    """
    if len(claim.statements) != 1 or isinstance(statement := claim.statements[0], Apart):
        return ()
    found = None if _absent(values, statement.cells) else _effect(statement, values, level, level)
    return () if found is None else (replace(found, outcome="not testable", blocks=None),)


def _absent(values: Values, cells: tuple[Cell, ...]) -> str:
    missing = [str(cell) for cell in cells if values.of(cell) is None]
    return f"no value of {'; '.join(missing)}" if missing else ""


def _powers(statement: Statement | Apart) -> dict[Cell, int]:
    return {statement.one: 1, statement.other: -1} if isinstance(statement, Apart) else dict(statement.terms)


def _scale(statement: Statement | Apart) -> str:
    return "ratio" if isinstance(statement, Apart) else statement.scale


def _conservative(statement: Statement | Apart) -> tuple[Cell, ...]:
    """Return the cells of a ratio with one bound whose values may be too low: that only speaks against the claim."""
    if isinstance(statement, Apart) or statement.scale != "ratio":
        return ()
    return tuple(
        cell
        for cell, power in statement.terms
        if (statement.high is None and power > 0) or (statement.low is None and power < 0)
    )


def _together(outcomes: list[ClaimOutcome]) -> ClaimOutcome:
    if not outcomes:
        return "not testable"
    if "did not hold" in outcomes:
        return "did not hold"
    return "undecided" if "undecided" in outcomes else "held"


def _sample(values: Values, cell: Cell) -> CellValues:
    found = values.of(cell)
    assert found is not None  # `judge` has looked
    return found


def _effect(statement: Statement, values: Values, level: float, refuting: float) -> Effect | None:
    """Return the effect over blocks or runs; None if no block has all cells, or a ratio has a value of zero."""
    given = {cell: _sample(values, cell) for cell, _ in statement.terms}
    if len(given) == 1 and (counted := next(iter(given.values())).counted) is not None:
        return _share(statement, *counted, len(next(iter(given.values())).values), level, refuting)
    samples = {cell: each.values for cell, each in given.items()}
    ratio = statement.scale == "ratio"
    # Of runs that are not paired the means are divided, and a mean may hold a run in which nothing arrived.
    divided = (sample.values() if values.paired else [fmean(sample.values())] for sample in samples.values())
    if ratio and any(value <= 0 for each in divided for value in each):
        return None
    if values.paired:
        effects = _by_unit(_by_block(statement, samples), values.units)
        if not effects:
            return None
        middle, count = fmean(effects), len(effects)
        error = sqrt(variance(effects) / count) if count > 1 else inf
        freedom = float(count - 1)
    else:
        middle, error, freedom = _unpaired(statement, samples)
        count = min(map(len, samples.values()))
    back = exp if ratio else float
    bounds = tuple(
        bound if bound is None or not ratio else log(bound) if bound > 0 else -inf
        for bound in (statement.low, statement.high)
    )
    if values.single:
        inside = _inside(middle, middle, *bounds, strict=statement.strict)
        return Effect(statement, back(middle), None, None, count, "held" if inside else "did not hold")
    if (count < MIN_BLOCKS and values.paired) or error == inf:
        return Effect(statement, back(middle), None, None, count, "undecided")
    half, wide = (t_quantile(freedom, each) * error for each in (level, refuting))
    outcome: ClaimOutcome = "undecided"
    if _inside(middle - half, middle + half, *bounds, strict=statement.strict):
        outcome = "held"
    elif _outside(middle - wide, middle + wide, *bounds):
        outcome = "did not hold"
    towards = level if _inside(middle, middle, *bounds) else refuting  # what would decide it, if the estimate stays
    needed = _blocks(middle, error * sqrt(count), *bounds, level=towards) if outcome == "undecided" else None
    return Effect(statement, back(middle), back(middle - half), back(middle + half), count, outcome, needed)


def _share(statement: Statement, count: int, total: int, blocks: int, level: float, refuting: float) -> Effect:
    """Return the effect of a share of successful trials, in per cent, with its exact interval.

    The interval is needed: that all of three trials succeeded does not show that nine in ten do.
    """
    least, most = statement.low, statement.high
    low, high = _per_cent(count, total, level)
    lowest, highest = _per_cent(count, total, refuting)
    outcome: ClaimOutcome = "undecided"
    if _inside(low, high, least, most):
        outcome = "held"
    elif _outside(lowest, highest, least, most):
        outcome = "did not hold"
    needed = None
    for more in range(blocks + 1, MOST_BLOCKS + 1) if outcome == "undecided" else ():
        later = round(count * more / blocks), round(total * more / blocks)
        if _inside(*_per_cent(*later, level), least, most) or _outside(*_per_cent(*later, refuting), least, most):
            needed = more
            break
    return Effect(statement, 100 * count / total, low, high, blocks, outcome, needed)


def _per_cent(count: int, total: int, level: float) -> tuple[float, float]:
    low, high = exact_share(count, total, level)
    return 100 * low, 100 * high


def _by_block(statement: Statement, samples: Mapping[Cell, Mapping[int, float]]) -> dict[int, float]:
    blocks = sorted(set.intersection(*(set(sample) for sample in samples.values())))
    ratio = statement.scale == "ratio"
    return {
        block: sum(
            power * (log(samples[cell][block]) if ratio else samples[cell][block]) for cell, power in statement.terms
        )
        for block in blocks
    }


def _by_unit(effects: Mapping[int, float], units: Mapping[int, int]) -> list[float]:
    """Return the effect of each block; if intervals are over machines, the mean effect of each machine."""
    if not units:
        return list(effects.values())
    found: dict[int, list[float]] = {}
    for block, effect in effects.items():
        found.setdefault(units[block], []).append(effect)
    return [fmean(each) for each in found.values()]


def _unpaired(statement: Statement, samples: Mapping[Cell, Mapping[int, float]]) -> tuple[float, float, float]:
    """Return the mean, its standard error (infinite if a cell has one run only), and Welch's degrees of freedom."""
    middle, squares, parts = 0.0, 0.0, 0.0
    for cell, power in statement.terms:
        given = list(samples[cell].values())
        mean = fmean(given)
        middle += power * (log(mean) if statement.scale == "ratio" else mean)
        if len(given) < 2:
            squares = inf
            continue
        # Delta method: the variance of the logarithm of a mean is that of the mean over its square.
        part = power**2 * variance(given) / len(given) / (mean**2 if statement.scale == "ratio" else 1.0)
        squares += part
        parts += part**2 / (len(given) - 1)
    freedom = squares**2 / parts if parts > 0 and squares < inf else inf
    return middle, sqrt(squares), freedom


def _inside(low: float, high: float, least: float | None, most: float | None, *, strict: bool = False) -> bool:
    if strict and (low == least or high == most):
        return False
    return (least is None or low >= least) and (most is None or high <= most)


def _outside(low: float, high: float, least: float | None, most: float | None) -> bool:
    return (least is not None and high < least) or (most is not None and low > most)


def _blocks(middle: float, spread: float, least: float | None, most: float | None, *, level: float) -> int | None:
    """Return how many blocks would move the nearest bound out of the interval, if estimate and spread stay as they are.

    None if more than `MOST_BLOCKS` would be needed.
    """
    distance = min(abs(middle - bound) for bound in (least, most) if bound is not None)
    if distance <= 0 or spread == inf:
        return None
    counts = range(MIN_BLOCKS, MOST_BLOCKS + 1)  # the more blocks, the narrower the interval
    place = bisect_left(counts, True, key=lambda count: t_quantile(count - 1, level) * spread / sqrt(count) < distance)
    return counts[place] if place < len(counts) else None


def _told_apart(statement: Apart, values: Values, level: float, refuting: float) -> ClaimOutcome:
    """Judge by the source's own test whether runs differ.

    A p above 5 % from few runs shows nothing: that runs do not differ is shown by their means. A claim is shown at
    `level`, and refuted at the smaller `refuting`, because one false alarm of several would refute it.
    """
    from scipy.stats import mannwhitneyu

    one, other = (_sample(values, cell).values for cell in (statement.one, statement.other))
    if min(len(one), len(other)) < 4:  # the least p of three against three is 0.1
        return "undecided"
    p, samples = (
        mannwhitneyu(list(one.values()), list(other.values())).pvalue,
        {statement.one: one, statement.other: other},
    )
    if statement.differ:
        return "held" if p < level else "did not hold" if _alike(statement, samples, refuting) else "undecided"
    return (
        "did not hold" if p < refuting else "held" if p >= LEVEL and _alike(statement, samples, level) else "undecided"
    )


def _alike(statement: Apart, samples: Mapping[Cell, Mapping[int, float]], level: float) -> bool:
    """Return whether Welch's interval of the ratio of the means lies within `ALIKE` of 1 (95 % for a level of 0.05)."""
    if any(fmean(given.values()) <= 0 for given in samples.values()):
        return False
    ratio = Statement(((statement.one, 1), (statement.other, -1)), "ratio", None, None)
    middle, spread, freedom = _unpaired(ratio, samples)
    half = t_quantile(freedom, level) * spread
    return abs(middle) + half <= log1p(ALIKE)
