"""Turns the test of a claim into statements: effects, and the ranges in which they must lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import prod

from tunnelmark.claims.claims_schema import ClaimTable, OverTable
from tunnelmark.claims.model import Apart, Cell, EffectScale, Printed, Quantity, Statement

Table = Mapping[Cell, Printed]


def effect(claim: ClaimTable, cell: Cell, printed: Table, within: float) -> Statement:
    """Return the statement about one cell of a claim whose test is `ratio`, `difference` or `value`.

    `printed`: the source's values, by cell. `within`: the factor by which a ratio may differ from the printed ratio, if
    the claim does not state a factor. If the claim states neither `least` nor `most`, the range is around the printed
    value. Then ValueError is raised if the source prints no such value, or if a `difference` or `value` does not state
    `plus_minus`.
    """
    terms = _terms(cell, claim.over)
    scale: EffectScale = "ratio" if claim.test == "ratio" else "difference"
    value = _printed(terms, scale, printed) if claim.printed is None else claim.printed
    if claim.least is not None or claim.most is not None:
        return Statement(terms, scale, claim.least, claim.most, value)
    if value is None:
        raise ValueError(f"rests on a value that no [[table]] holds: {', '.join(str(cell) for cell, _ in terms)}")
    if scale == "ratio":
        factor = claim.within or within
        return Statement(terms, scale, value / factor, value * factor, value)
    if claim.plus_minus is None:
        raise ValueError(
            "should say how far a difference or value may be from the printed one: plus_minus, least or most"
        )
    return Statement(terms, scale, value - claim.plus_minus, value + claim.plus_minus, value)


def order(
    cells: Sequence[Cell], printed: Table, quantity: Quantity, margin: float, over: Sequence[OverTable]
) -> tuple[Statement, ...]:
    """Return, for pairs of cells (best first), the statements that the earlier cell is better than the later one.

    `margin`: a factor; a pair is left out if the ratio of its printed values is between 1 / `margin` and `margin`.
    `quantity`, `over`: as in `before`. If the printed values of a pair are in the reverse order, the pair has a
    statement too: its own source contradicts such a claim. If not all values are printed, only neighbours are paired.
    """
    pairs = combinations(cells, 2) if all(_known(cell, over, printed) for cell in cells) else pairwise(cells)
    return _further_apart(margin, (before(better, worse, printed, quantity, over) for better, worse in pairs))


def before(better: Cell, worse: Cell, printed: Table, quantity: Quantity, over: Sequence[OverTable] = ()) -> Statement:
    """Return the statement that `better` is better than `worse`: the ratio of their values is above 1.

    The value that should be larger is divided by the other value; `quantity.better` says whether larger is better.
    `over`: the cells by which both values are divided before, as `claims_schema.OverTable` states them.
    """
    larger, smaller = (better, worse) if quantity.better == "higher" else (worse, better)
    terms = _joined((*_terms(larger, over), *((cell, -power) for cell, power in _terms(smaller, over))))
    return Statement(terms, "ratio", 1.0, None, _printed(terms, "ratio", printed), strict=True)


def groups(of: Sequence[Sequence[Cell]], printed: Table, quantity: Quantity, margin: float) -> tuple[Statement, ...]:
    """Return the statements that each cell of a group is better than each cell of the next group.

    `margin`: as in `order`.
    """
    pairs = (pair for group, following in pairwise(of) for pair in product(group, following))
    return _further_apart(margin, (before(better, worse, printed, quantity) for better, worse in pairs))


def apart(pairs: Sequence[tuple[Cell, Cell]], differ: bool) -> tuple[Apart, ...]:
    """Return, for each pair, the statement that its runs differ, or (if `differ` is False) that they do not."""
    return tuple(Apart(one, other, differ) for one, other in pairs)


def _further_apart(margin: float, found: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements but those whose printed ratio is between 1 / `margin` and `margin`."""
    return tuple(one for one in found if one.printed is None or not 1 / margin < one.printed < margin)


def _terms(cell: Cell, over: Sequence[OverTable]) -> tuple[tuple[Cell, int], ...]:
    """Return the cell compared with each entry of `over` in turn; a second entry compares ratios: (A/B) / (C/D)."""
    terms: tuple[tuple[Cell, int], ...] = ((cell, 1),)
    for each in over:
        other = {key: value for key, value in each.model_dump().items() if value is not None}
        terms += tuple((replace(of, **other), -power) for of, power in terms)
    return _joined(terms)


def _joined(terms: Sequence[tuple[Cell, int]]) -> tuple[tuple[Cell, int], ...]:
    """Return each cell once, with the sum of its powers; cells whose sum is 0 are left out."""
    powers: dict[Cell, int] = {}
    for cell, power in terms:
        powers[cell] = powers.get(cell, 0) + power
    return tuple((cell, power) for cell, power in powers.items() if power)


def _known(cell: Cell, over: Sequence[OverTable], printed: Table) -> bool:
    return all(each in printed for each, _ in _terms(cell, over))


def _printed(terms: Sequence[tuple[Cell, int]], scale: str, printed: Table) -> float | None:
    """Return the effect that follows from the source's own values; None if it lacks one, or a ratio has a zero."""
    values = [(printed[cell].value, power) for cell, power in terms if cell in printed]
    if len(values) < len(terms):
        return None
    if scale == "difference":
        return sum(value * power for value, power in values)
    if any(value <= 0 for value, _ in values):
        return None
    return prod(value**power for value, power in values)
