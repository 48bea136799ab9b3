"""Measures how far a host's clocks are from ours, with a bound of the error, as in NTP (RFC 5905, section 8)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tunnelmark.model.clock_offsets import ClockOffset

_KEPT = 8  # looks: of the last 8, the one with the smallest error counts, as in NTP's clock filter
DRIFT = 15e-6
"""The largest drift of two clocks, in seconds per second: PHI of RFC 5905, section 7.1."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One answer: how far the host's clocks were ahead of ours (ns), within `error` (ns) at our monotonic time `at`."""

    realtime: int
    monotonic: int
    error: int
    at: int

    def error_at(self, moment: int) -> int:
        return self.error + round(DRIFT * (moment - self.at))


class HostClocks:
    """Estimates the offsets of a host's clocks from the last questions to the host."""

    every = 2.0
    """Seconds between two questions to the host, so that the clocks drift little in between."""

    burst = 6
    """How many questions in a row make the offsets as exact as possible: the quickest answer counts."""

    def __init__(self) -> None:
        self._looks: deque[_Look] = deque(maxlen=_KEPT)

    @asynccontextmanager
    async def look(self) -> AsyncIterator[Callable[[Mapping[str, Any]], None]]:
        """Measure the offsets once; yield a function that takes the host's answer.

        In the body of the `with` statement, the caller asks the host what its clocks show (`realtime` and `monotonic`,
        in ns), and passes the answer to that function. Our clocks are read at the start of the body and when the
        function is called.
        """
        asked = time.time_ns(), time.monotonic_ns()

        def took(answer: Mapping[str, Any]) -> None:
            come = time.time_ns(), time.monotonic_ns()
            realtime, monotonic = (
                int(answer[name]) - (before + after) // 2
                for name, before, after in zip(("realtime", "monotonic"), asked, come, strict=True)
            )
            self._looks.append(_Look(realtime, monotonic, (come[1] - asked[1]) // 2, come[1]))

        yield took

    @property
    def offset(self) -> ClockOffset:
        """The offsets of the host's clocks, by the best of the last 8 measurements; all zero before the first one.

        The best measurement is the one with the smallest error. An error grows by 15 µs per second, as clocks drift.
        """
        now = time.monotonic_ns()
        if not self._looks:
            return ClockOffset(0, 0, 0)
        best = min(self._looks, key=lambda look: look.error_at(now))
        return ClockOffset(best.realtime, best.monotonic, best.error_at(now))
