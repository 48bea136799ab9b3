"""An axis of a figure has places for all of its values, whatever they are."""

from __future__ import annotations

from math import isfinite

import pytest

from tunnelmark.report.figures import svg


@pytest.mark.parametrize("values", [(0.0, 0.0), (0.0,), (-0.0, 0.0), (3.0, 3.0), (-2.0,), (0.0, 5.0), (1e-9, 1e9)])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("may_be_log", [False, True])
def test_every_value_and_every_tick_has_a_place(values: tuple[float, ...], zero: bool, may_be_log: bool) -> None:
    axis = svg.axis(values, 10.0, 110.0, zero=zero, may_be_log=may_be_log)
    for value in (*values, *axis.ticks()):
        assert isfinite(axis(value)) and 10 <= axis(value) <= 110
    assert axis.ticks()
