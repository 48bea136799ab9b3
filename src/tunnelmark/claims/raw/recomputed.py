"""Recomputes printed values from raw data: whether they agree to the printed digit, and if not, what else gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tunnelmark.claims.model import ClaimsFile, Printed
from tunnelmark.claims.raw.raw_values import RawCell, RawValues, combined

MOST_LEFT_OUT = 2
MOST_CHOICES = 200
"""How many sets of runs are left out in turn, at most: of many sets, one gives a figure of three digits by chance."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A printed value, and the value that the raw data give.

    `value`: None if the raw data give no value. `agrees`: whether the printed value is `value` after rounding to the
    printed digit, after cutting off, or after coarser rounding. `note` says if the value was cut off or rounded more
    coarsely, which runs are missing from `value`, and, if the two do not agree, what else gives the printed value.
    """

    printed: Printed
    value: float | None
    agrees: bool
    note: str = ""


def compare_with_printed(
    claims: ClaimsFile, values: RawValues, others: Sequence[RawValues] = ()
) -> tuple[Recomputed, ...]:
    """Recompute each printed value; `others`: raw data of other dates, which are named if only they give the value."""
    return tuple(_recomputed(printed, values, others) for printed in claims.printed.values())


def _recomputed(printed: Printed, values: RawValues, others: Sequence[RawValues]) -> Recomputed:
    found = values.cells.get(printed.cell)
    value = found.figure if found is not None else None
    missing = f"{len(found.succeeded)} of {found.planned} runs ({found.missing})" if found and found.missing else ""
    if value is not None and (how := agreement(value, printed)):
        return Recomputed(
            printed, value, True, _joined("" if how == "exact" else how, f"of {missing}" if missing else "")
        )
    elsewhere = [other.name for other in others if _gives(other.cells.get(printed.cell), printed)]
    if elsewhere:
        return Recomputed(printed, value, False, _joined(f"is that of {', '.join(elsewhere)}", missing))
    if found is not None and value is not None:
        return Recomputed(printed, value, False, _joined(_instead(found, printed), missing))
    differ = [
        f"{other.name} gives {cell.figure:.4g}"
        for other in others
        if (cell := other.cells.get(printed.cell)) is not None and cell.figure is not None
    ]
    return Recomputed(printed, None, False, _joined(*differ) or missing or "not in the raw data")


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _gives(cell: RawCell | None, printed: Printed) -> bool:
    return cell is not None and cell.figure is not None and bool(agreement(cell.figure, printed))


def _instead(cell: RawCell, printed: Printed) -> str:
    """Say which other figure of the same files gives the printed value, or which runs must be left out for it."""
    for words, value in cell.readings.items():
        if agreement(value, printed):
            return f"is {words}"
    values = [(run.name, run.value) for run in cell.runs if run.value is not None]
    for number in range(1, MOST_LEFT_OUT + 1):
        if number >= len(values) or math.comb(len(values), number) > MOST_CHOICES:
            break
        hits = [
            left
            for left in combinations(range(len(values)), number)
            if _rest_gives([value for place, (_, value) in enumerate(values) if place not in left], cell, printed)
        ]
        if hits:
            names = " or ".join(" and ".join(values[place][0] for place in left) for left in hits[:3])
            more = f" or one of {len(hits) - 3} other choices" if len(hits) > 3 else ""
            return f"agrees without {names}{more}"
    return "nothing in the raw data gives it"


def _rest_gives(values: Sequence[float], cell: RawCell, printed: Printed) -> bool:
    value = combined(values, cell.statistic)
    return value is not None and agreement(value, printed) == "exact"


def agreement(value: float, printed: Printed) -> str:
    """Return in words how a value agrees with a printed one; "" if it does not.

    "exact": rounding the value to the printed digit gives the printed value. "cut off and not rounded": cutting off the
    further digits gives it. "rounded to 10" (or 100 and so on): rounding more coarsely gives it.
    """
    step = 10.0**-printed.decimals
    if abs(value - printed.value) <= step / 2 * (1 + 1e-9):
        return "exact"
    if 0 <= value - printed.value < step:
        return "cut off and not rounded"
    coarse = step
    while (
        not printed.decimals and printed.value >= coarse * 100 and printed.value % (coarse * 10) == 0
    ):  # two digits stay at least
        coarse *= 10
    if coarse > step and abs(value - printed.value) <= coarse / 2:
        return f"rounded to {coarse:g}"
    return ""
