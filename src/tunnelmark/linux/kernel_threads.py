"""Gives the CPU weight of a lab to the kernel's threads that work for nodes: `ksoftirqd`, and workers bound to a core.

They handle packets that were too many for an interrupt, and kernel WireGuard's encryption (`wg-crypt`, a bound work
queue). They cannot be put into a control group (cgroup_procs_write_start refuses PF_NO_SETAFFINITY). A host without a
lab gives such a thread about half of a core on which a program is busy too. A lab's group has the largest weight, so
next to a lab a thread would get only a fiftieth of the core, or less.

So while a lab is up, the threads get a nice value that weighs the same as the lab (`host.fair_nice`). The janitor
(`cgroup_cleanup`) sets it, also for workers that start meanwhile, and takes it back, however the command ends. Only
threads with the kernel's own nice value of 0 are changed: any other value is a user's choice. The module imports
nothing of the project, because the janitor runs with nothing installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"(ksoftirqd|kworker)/(\d+)(?::\d+(H?)(?:[-+].*)?)?")
"""The names of such threads in /proc/PID/comm: `ksoftirqd/1`, `kworker/1:0-events`, `kworker/1:0H`; not `kworker/u4:1`,
which runs on any core."""

_UNNAMED = "kthreadd"
"""A new thread has this name, its parent's, until it gets its own: before Linux 6.4 it can be seen under it."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A kernel thread that is bound to a core. `high`: a worker to which the kernel itself gives the highest weight."""

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
    """Finds in /proc the kernel threads that are bound to a core.

    A process is read at each `look` until it has its final name, and after that not again.
    """

    def __init__(self) -> None:
        self._known: dict[int, Thread | None] = {}

    def look(self) -> Mapping[int, Thread]:
        """Return the threads by process ID; {} if /proc does not show kernel threads, as in a container."""
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
    """Return the name of a kernel thread; "" for a program, whatever its name, and for a process that has ended."""
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
    """Gives kernel threads the nice value `nice`, from `raise_all` until `restore`."""

    def __init__(self, nice: int) -> None:
        self._nice = nice
        self._census = Census()
        self._held: set[int] = set()

    def raise_all(self) -> None:
        """Give the nice value `nice` to all such threads that have the kernel's own, 0, but not to `high` workers.

        New threads start at any time, so the caller repeats the call, such as every 0.5 s.
        """
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
    """Give the kernel's own nice value, 0, to all threads that a killed janitor has left with the value `nice`."""
    for process, found in Census().look().items():
        if not found.high:
            change(process, nice, 0)


def change(process: int, was: int, now: int) -> bool:
    """Change a process's nice value to `now` if it is `was`; return whether it was changed."""
    try:
        if was == now or os.getpriority(os.PRIO_PROCESS, process) != was:
            return False
        os.setpriority(os.PRIO_PROCESS, process, now)
    except OSError:  # it has just ended
        return False
    return True
