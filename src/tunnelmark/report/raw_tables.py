"""Shows values of a source that were recomputed from its raw data: how many agree, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tunnelmark.claims.raw.raw_values import RawValues
from tunnelmark.claims.raw.recomputed import Recomputed

HEAD = ("printed value", "place", "printed", "raw data", "what it is")


def summary(recomputed: Sequence[Recomputed]) -> str:
    """Say how many printed values follow from the data: `409 of 446 printed values follow from the data`."""
    agree = [each for each in recomputed if each.agrees]
    fewer = sum("runs" in each.note for each in agree)
    said = f"{len(agree)} of {len(recomputed)} printed values follow from the data"
    return said + (f", {fewer} of them from fewer runs than the source says." if fewer else ".")


def differing(recomputed: Sequence[Recomputed]) -> list[tuple[str, str, str, str, str]]:
    """Return a row of texts, in the columns of `HEAD`, for each printed value that does not follow from the data.

    The texts are the cell, the place in the source, the printed value, the value that the raw data give ("" if they
    give none), and a note on the difference.
    """
    return [
        (
            str(each.printed.cell),
            each.printed.place,
            f"{each.printed.value:g}",
            "" if each.value is None else f"{each.value:.4g}",
            each.note,
        )
        for each in recomputed
        if not each.agrees
    ]


def as_data(values: RawValues, recomputed: Sequence[Recomputed]) -> dict[str, Any]:
    """Return the recomputed values and facts on the raw data, as data for JSON.

    `raw_data`: the data's name. `design`: what the source's design does not allow. `missing`: which runs lack values.
    `retried`: which runs succeeded only when they were repeated. `printed`: an object for each printed value.
    """
    return {
        "raw_data": values.name,
        "design": list(values.design),
        "missing": list(values.missing()),
        "retried": list(values.retried()),
        "printed": [
            {
                "quantity": each.printed.cell.quantity,
                "condition": each.printed.cell.condition,
                "arm": each.printed.cell.arm,
                "place": each.printed.place,
                "printed": each.printed.value,
                "recomputed": each.value,
                "agrees": each.agrees,
                "note": each.note,
            }
            for each in recomputed
        ],
    }
