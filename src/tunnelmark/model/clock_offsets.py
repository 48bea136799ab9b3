"""Holds how far the clocks of nodes on other hosts are from the command's clocks, and corrects timestamps by that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SLEW = 500e-6
"""Seconds by which a kernel slews a clock per second at most (adjtimex(2)). A clock that changed by more was set."""

_STEPS = (1, 2, 5)  # an error is rounded up to one of these times a power of ten


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The nanoseconds by which a node's clocks are ahead of the command's; either may be wrong by up to `error`."""

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
        """Convert timestamps (ns) of the node's CLOCK_REALTIME to the command's; offsets are interpolated linearly."""
        first, last = self.before.realtime, self.after.realtime
        share = (stamps - first - self.begin) / max(self.end - self.begin, 1)
        moved: npt.NDArray[Any] = stamps - first - np.rint((last - first) * np.clip(share, 0.0, 1.0)).astype(np.int64)
        return moved

    @property
    def error(self) -> int:
        """By how many nanoseconds `ours` may be wrong. If the clock was set meanwhile, its whole change is added."""
        change = abs(self.after.realtime - self.before.realtime)
        each = self.before.error, self.after.error
        slewed = SLEW * (self.end - self.begin) + sum(each)
        return max(each) + (change if change > slewed else 0)


def apart(offsets: Iterable[ClockOffset]) -> float:
    """Return by how many seconds CLOCK_MONOTONIC of any two of these nodes may differ at most; 0 without nodes."""
    bounds = [(each.monotonic - each.error, each.monotonic + each.error) for each in offsets]
    return (max(high for _, high in bounds) - min(low for low, _ in bounds)) / 1e9 if bounds else 0.0


def rounded_up(seconds: float) -> float:
    """Round an error in seconds up to 1, 2 or 5 times a power of ten in µs, so that few values occur; 0 stays 0."""
    if seconds <= 0:
        return 0.0
    decade = 1e-6
    while True:
        for step in _STEPS:
            if seconds <= step * decade * (1 + 1e-9):
                return step * decade
        decade *= 10
