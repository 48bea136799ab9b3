"""Finds windows that were not stationary: their halves' goodput differs by more than a tenth, beyond noise. Pure.

A mean over slow start, or over a queue that still fills, depends on the length of the trial, and not only on the arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tunnelmark.analyse.intervals import interval
from tunnelmark.analyse.model import Analysis, MetricCell
from tunnelmark.model.metrics import DRIFT

UNSTEADY = 10.0
"""The halves of a window differ if they are further apart than this many per cent of their mean."""


def unsteady(analysis: Analysis, cell: MetricCell) -> float | None:
    """Return by how many per cent of the mean the second half was above the first; None if the window was stationary.

    It was not stationary if the mean difference over blocks is beyond `UNSTEADY`, and its 95 % interval does not hold
    zero. None also with too few blocks for an interval, and for metrics that are not primary or not in bit/s, because
    the difference is that of the goodput.
    """
    if cell.metric.unit != "bit/s" or not cell.metric.primary:
        return None
    drifts = (each for each in analysis.cells_of(cell.setting, DRIFT) if each.arm == cell.arm)
    values = [each.value for drift in drifts for each in drift.values]
    return moved(values)


def moved(drifts: Sequence[float]) -> float | None:
    """Return the mean drift over blocks in per cent, if it is beyond `UNSTEADY` and beyond chance; else None."""
    around = interval(drifts)
    if around is None or around.low <= 0 <= around.high or abs(fmean(drifts)) <= UNSTEADY:
        return None
    return fmean(drifts)
