"""How far a host's clocks are from ours: a question and its answer bound it, as in NTP (RFC 5905, section 8)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tunnelmark.model.clock_offsets import ClockOffset

_KEPT = 8  # looks: of the last ones that with the smallest error counts, as in NTP's clock filter
DRIFT = 15e-6
"""Seconds by which two clocks drift apart in one second at the most: PHI of RFC 5905, section 7.1."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One answer: the offsets, within `error` when it had come (`at`, nanoseconds of our monotonic clock)."""

    realtime: int
    monotonic: int
    error: int
    at: int

    def error_at(self, moment: int) -> int:
        return self.error + round(DRIFT * (moment - self.at))


class HostClocks:
    """The clocks of a host, by the last looks at them."""

    every = 2.0
    """Seconds between two looks, so that drift adds little."""

    burst = 6
    """Looks in a row where a clock is to be known as well as it can be: the quickest answer says most."""

    def __init__(self) -> None:
        self._looks: deque[_Look] = deque(maxlen=_KEPT)

    @asynccontextmanager
    async def look(self) -> AsyncIterator[Callable[[Mapping[str, Any]], None]]:
        """Takes the answer to a question that is asked in the block."""
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
        """The host's clock offsets as known now; all zero before the first look."""
        now = time.monotonic_ns()
        if not self._looks:
            return ClockOffset(0, 0, 0)
        best = min(self._looks, key=lambda look: look.error_at(now))
        return ClockOffset(best.realtime, best.monotonic, best.error_at(now))
