"""Detects when the machine itself paused: a clock of the highest priority on each core measures how late it wakes.

A host may take a virtual machine's cores away for tens of milliseconds at any moment, and no priority helps. A clock
(`tunnelmark-cores watch`, crates/cores) sleeps about 2 ms and costs less than 1 % of its core. If it wakes more than
0.5 ms late, the core ran no program meanwhile: a pause. The part of a pause before the clock was due to wake is not
seen, so the measured share of time in pauses is a lower bound.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.host.keep_awake import COUNTED, PROGRAM
from tunnelmark.host.programs import find
from tunnelmark.linux import cgroups

PACKET_WORK = 8_000_000
"""Nanoseconds for which a kernel that is not preempted may handle packets before any other program runs (two ticks at
250 Hz, `net.core.netdev_budget_usecs`). A clock cannot distinguish such work, the lab's own, from a core that was taken
away."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of a core: when its clock last ran, when it was due to wake, and when it woke (ns of CLOCK_MONOTONIC)."""

    core: int
    ran: int
    due: int
    woke: int


@dataclass(frozen=True, slots=True)
class ClockLook:
    """A report of the clocks on the time since their last one, from `begin` to `end` (ns of CLOCK_MONOTONIC).

    `p50`, `p99`, `longest`: the lateness of wake-ups in microseconds: its median, 99th percentile and maximum.
    """

    begin: int
    end: int
    p50: float
    p99: float
    longest: float
    pauses: tuple[Pause, ...]


@dataclass(frozen=True, slots=True)
class PausesSeen:
    """All pauses seen up to `until` (ns of CLOCK_MONOTONIC). A later result adds new ones at the end."""

    until: int
    pauses: Sequence[Pause]


def host(pauses: Iterable[Pause], begin: int, end: int) -> dict[str, float]:
    """Return the pauses between two moments (ns of CLOCK_MONOTONIC) as figures of an attempt's `host`.

    `pause_share`: the share of the time between them in which some core paused. Only pauses longer than the kernel's
    own work on packets (PACKET_WORK) count, so it is a lower bound. `pause_longest`: the length of the longest pause in
    seconds. `pauses`: the number of pauses, short ones included; if several cores pause at once, each core's pause
    counts.
    """
    met = sorted((one for one in pauses if one.due < end and one.woke > begin), key=lambda one: one.due)
    spans = [(max(one.due, begin), min(one.woke, end)) for one in met]
    still, upto = 0, begin
    for one, (first, last) in zip(met, spans, strict=True):
        if one.woke - one.due > PACKET_WORK:
            still += max(last - max(first, upto), 0)
            upto = max(upto, last)
    return {
        "pause_share": still / max(end - begin, 1),
        "pause_longest": max((last - first for first, last in spans), default=0) / 1e9,
        "pauses": float(len(spans)),
    }


class Clocks:
    """A clock on each core that this process may use, until `close`."""

    def __init__(self) -> None:
        """Start the clocks; LabError if the machine refuses them, MissingPart if their program is not built."""
        self.pauses: list[Pause] = []
        self._looking = threading.RLock()  # a thread must also see the pauses that another thread's report has taken
        self._process = subprocess.Popen(
            [find(PROGRAM), "watch", *_first_group()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self._answer("ready")
        except LabError:
            self.close()
            raise
        STANDING.append(self)

    def look(self) -> ClockLook:
        """Return what the clocks saw since the last call; LabError if they have ended."""
        with self._looking:
            return self._look()

    def _look(self) -> ClockLook:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("report\n")
            self._process.stdin.flush()
        said = self._answer("report")
        pauses = tuple(Pause(*each) for each in said["pauses"])
        self.pauses += pauses
        wakeups = said["wakeups_us"]
        return ClockLook(said["begin"], said["end"], wakeups["p50"], wakeups["p99"], wakeups["max"], pauses)

    def seen(self) -> PausesSeen:
        """Return all pauses since the clocks were started; LabError if they have ended."""
        with self._looking:
            return PausesSeen(self.look().end, tuple(self.pauses))

    def cpu_seconds(self) -> float:
        """Return the clocks' CPU seconds (`CPUCLOCK_SCHED`, include/linux/posix-timers.h); 0 if they have ended."""
        with contextlib.suppress(OSError):
            return time.clock_gettime(~self._process.pid << 3 | 2)
        return 0.0

    def close(self) -> None:
        """End the clocks."""
        if self in STANDING:
            STANDING.remove(self)
        self._process.kill()
        self._process.communicate()

    def _answer(self, word: str) -> Mapping[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LabError(
                f"{PROGRAM} ended with code {self._process.wait()}: pauses of the machine cannot be seen",
                hint="real-time priority is refused here: run it as root; under cgroup v1 set cpu.rt_runtime_us of the control group, too",
            )
        found: Mapping[str, Any] = json.loads(line)[word]
        return found


def start() -> Clocks:
    """Start a command's clocks, and return them; `Clocks.close` ends them. LabError or MissingPart if that fails."""
    if os.environ.get(COUNTED):
        raise LabError("the machine's clock is counted, so it cannot pause", hint="nothing is to be done")
    return Clocks()


STANDING: list[Clocks] = []
"""The clocks of this process that run now; mostly one set."""


def own_seconds() -> float:
    """Return the CPU seconds that the running clocks of this process have used; clocks that ended are left out."""
    return sum(clocks.cpu_seconds() for clocks in STANDING)


def _first_group() -> list[str]:
    """Return the file by which to join the first group of a v1 CPU hierarchy, as a list; [] without such a hierarchy.

    In other groups real-time priority needs a budget (sched-rt-group), and labs that are up may have all of it.
    """
    unified, cpu = cgroups.mounted()
    return [] if cpu is None or cpu == unified else [str(cpu / "cgroup.procs")]
