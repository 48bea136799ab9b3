"""Waits before a measurement until other work on the machine has ended, for a limited time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tunnelmark.host import utilisation
from tunnelmark.model.grades import QUIET

ONCE = 60.0
"""Seconds that one wait may take: work that lasts longer mostly does not end."""

ALL = 600.0
"""Seconds that all waits of a run may take together."""

LEAST = 5.0
"""The shortest wait in seconds. If the next wait would be shorter, the run does not wait any more.

After so many waits without success, each half as long as the one before, the other work will hardly end.
"""

_LOOK = 0.5  # seconds over which the load is measured: long enough that a timer's short work does not count
_BETWEEN = 1.0


def _others() -> float:
    """Return how many cores are busy or stolen now; the lab must be idle meanwhile."""
    seen = utilisation.load(_LOOK)
    return seen.busy + seen.steal


class Quiescence:
    """Waits for a quiet machine before blocks and link checks; after a failed wait the next is half as long.

    `say` shows a text to the user. `wanted`: False to never wait. `look` returns the cores that other work takes.
    `clock` returns the time in seconds.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        wanted: bool = True,
        look: Callable[[], float] = _others,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._look, self._clock = say, look, clock
        self._once, self._left = ONCE, ALL if wanted else 0.0

    async def __call__(self) -> None:
        """Wait until other work takes at most `QUIET` cores, or until the time for waiting is over."""
        bound = min(self._once, self._left)
        if bound < LEAST:
            return
        begun = self._clock()
        taken = await asyncio.to_thread(self._look)
        if taken <= QUIET:
            return
        self._say(f"waiting for calm: other work takes {taken:.2f} cores; up to {bound:.0f} s (--no-wait: at once)")
        while self._clock() - begun < bound:
            await asyncio.sleep(min(_BETWEEN, bound / 10))
            taken = await asyncio.to_thread(self._look)
            if taken <= QUIET:
                self._once = ONCE
                break
        else:
            self._once /= 2
            last = "" if self._once >= LEAST else "; it is not waited for again"
            self._say(
                f"no calm: other work still takes {taken:.2f} cores; going on, and results are graded by it{last}"
            )
        self._left -= self._clock() - begun
