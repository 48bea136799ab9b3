"""Measures how late this machine wakes a thread that nothing may keep from running: what no program of ours can mend.

Started by itself as `python -I -S wakeups.py CORE SECONDS` it sleeps to a fixed beat on one core at real-time priority and
prints, in nanoseconds, by how much each beat was missed; as `python -I -S wakeups.py CORE` it keeps a core awake.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BEAT = 0.001
"""Seconds between two wake-ups: as often as probes are sent, and as a gigabit link has 80 packets."""

PAUSE = 0.001
"""Seconds of lateness from which on the machine is said to have stood still."""

_PRIORITY = 50  # of SCHED_FIFO: above the emulator and all of the lab, below the kernel's own threads


@dataclass(frozen=True, slots=True)
class Wakeups:
    """How late wake-ups were, all cores together, in seconds; `pause_share` of the time a core stood still for over PAUSE."""

    p50: float
    p99: float
    longest: float
    pause_share: float


def measure(seconds: float, awake: bool) -> Wakeups:
    """Sleep to a beat on each core for so long; `awake`: while an endless loop of idle class keeps the core from sleeping."""
    cores = sorted(os.sched_getaffinity(0))
    with _kept_awake(cores if awake else ()):
        beating = [_start(str(core), str(seconds)) for core in cores]
        late = [moment for each in beating for moment in json.loads(each.communicate()[0])]
    return summary([moment / 1e9 for moment in late], seconds * len(cores))


def summary(late: Sequence[float], seconds: float) -> Wakeups:
    """What so many latenesses (seconds) say of so many seconds of cores."""
    ordered = sorted(late)
    if not ordered:
        return Wakeups(0.0, 0.0, 0.0, 0.0)
    last = len(ordered) - 1
    paused = sum(moment for moment in ordered if moment > PAUSE)
    return Wakeups(ordered[last // 2], ordered[round(0.99 * last)], ordered[-1], paused / seconds)


@contextlib.contextmanager
def _kept_awake(cores: Sequence[int]) -> Iterator[None]:
    loops = [_start(str(core)) for core in cores]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.communicate()


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    # A process a core: threads of one Python would wait for one another.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _beat(seconds: float) -> list[int]:
    """By how many nanoseconds each wake-up was late; after a long pause the beat goes on from there."""
    with contextlib.suppress(OSError):  # without real-time budget other work is in the figures too
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    late, step = [], int(BEAT * 1e9)
    now = time.monotonic_ns()
    end = now + int(seconds * 1e9)
    while now < end:
        due = now + step
        time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
        now = time.monotonic_ns()
        late.append(max(now - due, 0))
    return late


def main(core: int, seconds: float | None) -> None:
    """Beat on a core and say how late each was, or keep it awake until standard input ends with whoever started us."""
    os.sched_setaffinity(0, {core})
    if seconds is not None:
        sys.stdout.write(json.dumps(_beat(seconds)))
        return
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.set_blocking(sys.stdin.fileno(), False)
    looked = 0.0
    while True:
        if (now := time.monotonic()) - looked > 0.1:
            looked = now
            with contextlib.suppress(BlockingIOError):
                if not os.read(sys.stdin.fileno(), 1):
                    return


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None)
