"""How far a host's clocks are from ours: a question and its answer bound it, as in NTP (RFC 5905, section 8)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

_KEPT = 8  # looks: of the last ones that with the quickest answer counts, as in NTP's clock filter


@dataclass(frozen=True, slots=True)
class Offset:
    """What a host's clocks show more than ours, in nanoseconds, each within `error` of the truth."""

    realtime: int
    monotonic: int
    error: int


class HostClocks:
    """The clocks of a host, by the last looks at them."""

    every = 2.0
    """Seconds between two looks: clocks that nothing corrects drift apart by some 50 us a second at most."""

    def __init__(self) -> None:
        self._looks: deque[Offset] = deque(maxlen=_KEPT)

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
            self._looks.append(Offset(realtime, monotonic, (come[1] - asked[1]) // 2))

        yield took

    @property
    def offset(self) -> Offset:
        """What is known now; all zero before the first look."""
        return min(self._looks, key=lambda look: look.error, default=Offset(0, 0, 0))

    def monotonic(self, theirs: float) -> float:
        """A moment of the host's monotonic clock on ours, in seconds."""
        return theirs - self.offset.monotonic / 1e9
