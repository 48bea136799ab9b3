"""How far a node's clocks are from the command's, where nodes run on other hosts: plain data, and what follows for stamps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SLEW = 500e-6
"""Seconds by which a kernel lets a clock be slewed in one second at the most (adjtimex(2)); what differs by more was set."""

_STEPS = (1, 2, 5)  # of a decade, to which an error is rounded up


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What a node's clocks show more than the command's, in nanoseconds, each within `error` of the truth."""

    realtime: int
    monotonic: int
    error: int


@dataclass(frozen=True, slots=True)
class ClockCourse:
    """The offsets of a node's clocks at two moments (`begin` and `end`, nanoseconds of the command's CLOCK_REALTIME)."""

    before: ClockOffset
    after: ClockOffset
    begin: int
    end: int

    def ours(self, stamps: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Stamps of the node's CLOCK_REALTIME on the command's, with an offset that changes evenly between the two moments."""
        first, last = self.before.realtime, self.after.realtime
        share = (stamps - first - self.begin) / max(self.end - self.begin, 1)
        moved: npt.NDArray[Any] = stamps - first - np.rint((last - first) * np.clip(share, 0.0, 1.0)).astype(np.int64)
        return moved

    @property
    def error(self) -> int:
        """Nanoseconds by which what `ours` returns may be wrong; a clock that was set meanwhile adds all that it was set by."""
        change = abs(self.after.realtime - self.before.realtime)
        each = self.before.error, self.after.error
        slewed = SLEW * (self.end - self.begin) + sum(each)
        return max(each) + (change if change > slewed else 0)


def apart(offsets: Iterable[ClockOffset]) -> float:
    """Seconds by which CLOCK_MONOTONIC of two of these nodes may differ at the most."""
    bounds = [(each.monotonic - each.error, each.monotonic + each.error) for each in offsets]
    return (max(high for _, high in bounds) - min(low for low, _ in bounds)) / 1e9 if bounds else 0.0


def rounded_up(seconds: float) -> float:
    """An error, rounded up to 1, 2 or 5 times a power of ten in microseconds, so that few different ones are met; 0 remains 0."""
    if seconds <= 0:
        return 0.0
    decade = 1e-6
    while True:
        for step in _STEPS:
            if seconds <= step * decade * (1 + 1e-9):
                return step * decade
        decade *= 10
