"""Measures how late this machine wakes a program of the highest priority, with or without loops that keep it awake."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tunnelmark.host import keep_awake as loops
from tunnelmark.host import pauses
from tunnelmark.linux import cgroups


@dataclass(frozen=True, slots=True)
class Wakeups:
    """How late wake-ups were, in seconds, and the share of time in which some core paused."""

    p50: float
    p99: float
    longest: float
    pause_share: float


def measure(seconds: float, awake: bool) -> Wakeups:
    """Measure wake-ups on this machine for so many seconds, and return how late they were.

    `awake`: whether loops keep its cores awake meanwhile. Needs root. LabError or OSError where the machine refuses
    real-time priority or control groups; MissingPart without the program `tunnelmark-cores`. A lab that another command
    has up keeps cores awake in both cases.
    """
    with _loops() if awake else _nothing():
        clocks = pauses.Clocks()
        try:
            time.sleep(0.1)  # the clocks find out how often they can wake
            clocks.look()
            time.sleep(seconds)
            seen = clocks.look()
        finally:
            clocks.close()
    host = pauses.host(seen.pauses, seen.begin, seen.end)
    return Wakeups(seen.p50 / 1e6, seen.p99 / 1e6, seen.longest / 1e6, host["pause_share"])


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _loops() -> Iterator[None]:
    """Run loops on all cores of this process, without a lab server, during the block."""
    cores = os.sched_getaffinity(0)
    place = loops.LoopGroups(cgroups.find(), f"tunnelmark-{os.getpid()}-{os.urandom(3).hex()}", cores)
    counts = loops.memory(cores)
    processes: list[int] = []
    try:
        processes = loops.begin(place, cores, counts)
        yield
    finally:
        os.close(counts)
        loops.end(place, processes)
