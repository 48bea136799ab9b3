"""Says whether the machine stood still during a measurement, by clocks of its own, and measures again where it did.

A host may take a virtual machine's cores away for tens of milliseconds at any moment. What a test measures then is the
host, whatever the project does. Which attempt counts is decided by these clocks, and never by what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tunnelmark.errors import TrialVoid
from tunnelmark.host.pauses import Clocks
from tunnelmark.workloads.base import Reading

STILL = 0.003
"""Seconds by which a thread that goes before all others is not woken late on a machine that runs; it is 0.1 ms mostly."""

ATTEMPTS = 4

_Result = TypeVar("_Result")


@dataclass(slots=True)
class Stop:
    """The longest time, in seconds, that a core gave nobody."""

    seconds: float = 0.0


@contextmanager
def watched() -> Iterator[Stop]:
    """A clock on each core as long as the context lasts; what they saw is known when it ends."""
    stop = Stop()
    clocks = Clocks()
    try:
        clocks.look()
        yield stop
    finally:
        stop.seconds = clocks.look().longest / 1e6
        clocks.close()


def while_still(measure: Callable[[Path], _Result], raw: Path) -> _Result:
    """What was measured while the machine ran, or else in the attempt in which it stood still for the least time.

    Each attempt has a folder of its own in `raw`. TrialVoid if the lab's own checks found each of them void, or the one
    in which the machine ran.
    """
    found: list[tuple[float, _Result | TrialVoid]] = []
    for attempt in range(ATTEMPTS):
        folder = raw / f"attempt-{attempt}"
        folder.mkdir(parents=True)
        with watched() as stop:
            try:
                result: _Result | TrialVoid = measure(folder)
            except TrialVoid as void:
                result = void
        if stop.seconds < STILL:
            break
        print(f"attempt {attempt}: the machine stood still for {1e3 * stop.seconds:.1f} ms")
        found.append((stop.seconds, result))
    else:
        result = min(found, key=lambda each: (isinstance(each[1], TrialVoid), each[0]))[1]
    if isinstance(result, TrialVoid):
        raise result
    return result


def unless_starved(reading: Reading) -> Reading:
    """The reading; TrialVoid if its sender fell short, which in a test of the workload is the machine's doing."""
    if reading.starved:
        raise TrialVoid(reading.starved, hint="try on a quiet machine")
    return reading
