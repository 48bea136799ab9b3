"""Values that are not paired: their means are compared, and a run in which nothing arrived is a part of a mean."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import OVER_BLOCKS, Cell, CellValues, Claim, Statement

ONE, OTHER = (Cell("tcp", "high", arm) for arm in ("one", "other"))
HALF = Claim("half", "tab 1", "half", (Statement(((ONE, 1), (OTHER, -1)), "ratio", 0.4, 0.6),))


class Unpaired:
    """The given runs of two cells."""

    paired = False
    single = True
    measured_here = False
    units = OVER_BLOCKS

    def __init__(self, one: Sequence[float], other: Sequence[float]) -> None:
        self._runs = {ONE: one, OTHER: other}

    def of(self, cell: Cell) -> CellValues:
        """The runs of a cell."""
        return CellValues(dict(enumerate(self._runs[cell])))

    def obstacle(self, cells: object, scale: str, conservative: object = ()) -> str:
        """None."""
        return ""


def test_a_run_of_zero_is_a_part_of_the_mean() -> None:
    found = judge(HALF, Unpaired([0.0, 4.0, 5.0], [5.0, 6.0, 7.0]))
    assert found.outcome == "held"
    assert found.effects[0].estimate == pytest.approx(0.5)


def test_a_mean_of_zero_has_no_ratio() -> None:
    assert judge(HALF, Unpaired([0.0, 0.0], [5.0, 6.0])).outcome == "not testable"


def test_printed_digits_are_counted_as_they_are_written() -> None:
    printed = reading.find("mesh-vpns").printed
    assert [printed[Cell("tcp", "medium", arm)].decimals for arm in ("ZeroTier", "WireGuard")] == [1, 2]  # 12.0, 8.77
    assert printed[Cell("tcp", "baseline", "Internal")].decimals == 0  # 934
