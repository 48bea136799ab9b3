"""Gives the values that a source prints as if they were measured.

If a claim does not hold by these values, the source contradicts its own figures. If values are changed against a claim,
the verdict shows whether the claim's test can fail.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tunnelmark.claims.model import OVER_BLOCKS, Cell, CellValues, ClaimsFile


class PrintedValues:
    """Values without a spread, in the source's unit: one for each cell."""

    paired = True
    single = True
    measured_here = False
    units = OVER_BLOCKS

    def __init__(self, values: Mapping[Cell, float]) -> None:
        self._values = values

    @classmethod
    def of_source(cls, claims: ClaimsFile) -> PrintedValues:
        """Return all values that the source prints."""
        return cls({cell: printed.value for cell, printed in claims.printed.items()})

    def of(self, cell: Cell) -> CellValues | None:
        """Return the value of a cell; None if the source prints none."""
        return CellValues({0: self._values[cell]}) if cell in self._values else None

    def obstacle(self, cells: Mapping[Cell, int], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Return "": a source's own figures can always be compared with themselves."""
        return ""
