"""The kernel's threads that work for nodes, `ksoftirqd` and the workers bound to a core: which there are, and their weight.

They handle packets that were too many for an interrupt, and kernel WireGuard's encryption (`wg-crypt`, a bound work queue). No
control group may hold them (cgroup_procs_write_start refuses PF_NO_SETAFFINITY). So next to a lab, whose group has the largest
weight, they had 1 part in 50 to 128 of a busy core, where a host gives them about half. While a lab is up they get a nice value
that weighs as much as the lab (`host.fair_nice`). The janitor sets it, also for workers that start meanwhile, and takes it back,
however the command ends. Only threads with the kernel's own nice value of 0 are touched: any other value is someone's choice.

This module imports nothing of the project, because the janitor runs with nothing installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"(ksoftirqd|kworker)/(\d+)(?::\d+(H?)(?:[-+].*)?)?")
"""As /proc/PID/comm has them: `ksoftirqd/1`, `kworker/1:0-events`, `kworker/1:0H`; not `kworker/u4:1`, which runs anywhere."""

_UNNAMED = "kthreadd"
"""What a new thread is called, by its parent's name, until its maker names it: before Linux 6.4 that is later than it is there."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of the kernel that is bound to a core; `high`: a worker to which the kernel itself gives the highest weight."""

    kind: str  # ksoftirqd, kworker
    core: int
    high: bool = False


def read(comm: str) -> Thread | None:
    """Return the thread that has this name; None if it is neither ksoftirqd nor a worker bound to a core."""
    found = _NAME.fullmatch(comm.strip())
    if found is None or (found[1] == "kworker") != (found[3] is not None):
        return None
    return Thread(found[1], int(found[2]), found[3] == "H")


class Census:
    """Which of these threads there are; each process is looked at once, when it has its name."""

    def __init__(self) -> None:
        self._known: dict[int, Thread | None] = {}

    def look(self) -> Mapping[int, Thread]:
        """The threads by process number; none where /proc does not show the kernel's threads, as in a container."""
        there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        known = {process: self._known[process] for process in there & self._known.keys()}
        for process in there - known.keys():
            if (name := kernel_name(process)) != _UNNAMED:
                known[process] = read(name)
        self._known = known
        return {process: found for process, found in self._known.items() if found is not None}


def thread(process: int) -> Thread | None:
    """Return the kernel thread with this process number if it is ksoftirqd or a kworker bound to a core.

    None otherwise, also if it has ended.
    """
    return read(kernel_name(process))


def kernel_name(process: int) -> str:
    """What a thread of the kernel is called; empty for a program, whatever it calls itself, and for what has ended."""
    try:
        if os.readlink(f"/proc/{process}/exe"):
            return ""  # the kernel's threads have none
    except FileNotFoundError:
        pass
    except OSError:
        return ""
    try:
        with open(f"/proc/{process}/comm", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


class Raised:
    """Threads that have another nice value for a while."""

    def __init__(self, nice: int) -> None:
        self._nice = nice
        self._census = Census()
        self._held: set[int] = set()

    def raise_all(self) -> None:
        """Give the nice value to every thread that has the kernel's own; to be called again and again, for new ones are born."""
        for process, found in self._census.look().items():
            if not found.high and change(process, 0, self._nice):
                self._held.add(process)

    def restore(self) -> None:
        """Give the threads back the kernel's own nice value, 0."""
        for process in self._held:
            if thread(process) is not None:  # else it has ended, and its number may be another's
                change(process, self._nice, 0)
        self._held.clear()


def restore_all(nice: int) -> None:
    """Give the kernel's own value back to every thread that has this one: what a janitor that was killed has left."""
    for process, found in Census().look().items():
        if not found.high:
            change(process, nice, 0)


def change(process: int, was: int, now: int) -> bool:
    """Change a process's nice value from `was` to `now`; False if it was another one, or could not be changed."""
    try:
        if was == now or os.getpriority(os.PRIO_PROCESS, process) != was:
            return False
        os.setpriority(os.PRIO_PROCESS, process, now)
    except OSError:  # it has just ended
        return False
    return True
