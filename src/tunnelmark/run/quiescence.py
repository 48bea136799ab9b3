"""Waits until other work on the machine has ended, within bounds, before something is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tunnelmark.host import utilisation
from tunnelmark.model.grades import QUIET

ONCE = 60.0
"""Seconds to wait at most at a time: what disturbs for longer is mostly there to stay."""

ALL = 600.0
"""Seconds to wait at most in a run."""

LEAST = 5.0
"""Seconds that a wait is worth: once it would be shorter, others are there to stay, and none is waited for any more."""

_LOOK = 0.5  # seconds: long enough that a timer's work does not count as load
_BETWEEN = 1.0


def _others() -> float:
    """Cores that are busy or stolen now; the lab rests meanwhile."""
    seen = utilisation.load(_LOOK)
    return seen.busy + seen.steal


class Quiescence:
    """Waits for calm before blocks and looks; after a wait without success the next one is half as long.

    `say` gets a text for the user, `look` gives the cores that others take, `clock` gives seconds.
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
        """Return when others take no more than `QUIET` cores, or when the time for waiting is over."""
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
