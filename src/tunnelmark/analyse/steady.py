"""Says which windows were not stationary: the halves of a transfer's window differ by more than a tenth, beyond noise. Pure.

A mean over slow start, or over a queue that still fills, says how long the trial was, and not what the arm does.
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
    """By how many per cent of the mean the second half was above the first; None where the window was stationary.

    The mean over blocks must be beyond `UNSTEADY`, and the 95 % interval over blocks must leave out zero; with fewer blocks
    than an interval needs nothing is said. Only for metrics in bit/s, because the halves are those of the goodput.
    """
    if cell.metric.unit != "bit/s" or not cell.metric.primary:
        return None
    drifts = (each for each in analysis.cells_of(cell.setting, DRIFT) if each.arm == cell.arm)
    values = [each.value for drift in drifts for each in drift.values]
    return moved(values)


def moved(drifts: Sequence[float]) -> float | None:
    """The mean of what each block drifted, in per cent, if it is beyond `UNSTEADY` and beyond chance; else None."""
    around = interval(drifts)
    if around is None or around.low <= 0 <= around.high or abs(fmean(drifts)) <= UNSTEADY:
        return None
    return fmean(drifts)
