"""Puts a claim's figures into words: which values are compared, their unit, and what is allowed, found and printed."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from tunnelmark.claims.model import Cell, ClaimsFile, Effect, Statement

TIMES = "×"


def compared(statement: Statement, claims: ClaimsFile) -> str:
    """Say what is compared: `throughput of TCP, one hop: WireGuard / OpenVPN`. A single value is named alone."""
    named = {cell: _named(cell, claims) for cell, _ in statement.terms}
    fields = list(zip(*named.values(), strict=True))
    if len(named) == 1:
        return ", ".join(values[0] for values in fields)
    same = [len(set(values)) == 1 for values in fields]
    shared = ", ".join(values[0] for values, is_same in zip(fields, same, strict=True) if is_same)
    own = {
        cell: ", ".join(name for name, is_same in zip(names, same, strict=True) if not is_same)
        for cell, names in named.items()
    }
    joint = " × " if statement.scale == "ratio" else " + "
    above, below = (
        _together([own[cell] for cell, power in statement.terms for _ in range(sign * power)], joint)
        for sign in (1, -1)
    )
    said = f"{above} {'/' if statement.scale == 'ratio' else '−'} {below}" if below else above
    return f"{shared}: {said}" if shared else said


def unit(statement: Statement, claims: ClaimsFile) -> str:
    """Return the unit to append to a figure, with its space: ` Mbit/s`; "" if the source's quantity has none.

    It is `×` for a ratio, and ` points` for a difference of shares in per cent.
    """
    if statement.scale == "ratio" and len(statement.terms) > 1:
        return TIMES
    said = claims.quantities[statement.terms[0][0].quantity].unit
    if said == "%" and len(statement.terms) > 1:
        return " points"
    return f" {said}" if said else ""


def allowed(statement: Statement, claims: ClaimsFile) -> str:
    """Return the range in which a claim says that an effect lies, with its unit: `≥ 2×`, `1.5 to 2×`."""
    of = unit(statement, claims)
    low, high = statement.low, statement.high
    kind = claims.quantities[statement.terms[0][0].quantity].kind
    if of == " %" and kind == "share" and low is not None and high is not None:  # itself it is from 0 to 100 %
        low, high = (None if low <= 0 else low), (None if high >= 100 else high)
    if low is None:
        return f"≤ {number(high)}{of}" if high is not None else f"any{of}"
    return f"≥ {number(low)}{of}" if high is None else f"{number(low)} to {number(high)}{of}"


def found(effect: Effect, claims: ClaimsFile) -> str:
    """Return an effect's estimate with its unit; if it has an interval, that follows in brackets, without a unit.

    Values that are all equal have no scatter from which an interval could follow, so their number is said instead.
    """
    value = f"{number(effect.estimate)}{unit(effect.statement, claims)}"
    if effect.low is None or effect.high is None:
        return value
    if isclose(effect.low, effect.high, rel_tol=1e-9, abs_tol=1e-9):
        return f"{value} ({effect.count} equal values)"
    return f"{value} [{number(effect.low)}–{number(effect.high)}]"


def printed(statement: Statement, claims: ClaimsFile) -> str:
    """Return the ratio, difference or value of a statement as computed from the values that the source prints.

    The figure is followed by its unit. The text is "" if the source does not print all of these values. A ratio from 1
    to 2 has three digits after the point, which are those of a printed share: 1.396 for 39.6 % more.
    """
    if statement.printed is None:
        return ""
    of = unit(statement, claims)
    figure = f"{statement.printed:.4g}" if of == TIMES and 1 < statement.printed < 2 else number(statement.printed)
    return f"{figure}{of}"


def number(value: float | None) -> str:
    """Format a number to three significant digits, from 1000 on as a whole number; "" for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _named(cell: Cell, claims: ClaimsFile) -> tuple[str, str, str]:
    return claims.quantities[cell.quantity].title, claims.conditions[cell.condition].title, cell.arm


def _together(names: Sequence[str], joint: str) -> str:
    said = joint.join(names)
    return f"({said})" if len(names) > 1 else said
