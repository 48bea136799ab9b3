"""Keeps the machine's cores awake while a lab is up: a loop of idle class on each, which gives way to all other work.

When a virtual core idles, the host gives its physical core to other work. Waking the virtual core then takes up to
milliseconds, which delays the links' packets. The loop (`tunnelmark-cores awake`, crates/cores) leaves no
idle time, and ends with the lab server.

Each loop has control groups of its own, so that its time is not billed to other work. The loop counts in shared memory
the time that it used itself. Interrupts and softirq work that run while the loop runs are also billed to the loop: they
are the difference between the billed time and the counted time (`softirq.unbilled`).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from tunnelmark.errors import MissingPart
from tunnelmark.host.programs import find as find_program
from tunnelmark.linux import cgroup_cleanup
from tunnelmark.linux.cgroups import Hierarchies, find, used

PROGRAM = "tunnelmark-cores"
VARIABLE = "TUNNELMARK_LET_CORES_SLEEP"
"""Environment variable: if it is not empty, cores are not kept awake. `--let-cores-sleep` sets it."""

COUNTED = "TUNNELMARK_COUNTED_CLOCK"
"""Environment variable: not empty if this is a guest whose clock counts instructions (`lab.vm.clock_keepalive`)."""

SUFFIX = "-awake-"
"""The middle of a loop's control group's name: before it is the name of its command's groups, after it the core."""

_STRIDE = 64  # bytes between the counts of two cores (crates/cores/src/awake.rs)
_LEAST_SHARES = "2"  # cpu.shares of a v1 group, at the least; cpu.weight of v2 begins at 1
_LAST_AUTOGROUP = 19  # nice value of a session, the least weight; see sched(7)

Spent = dict[int, tuple[float, float]]
"""By core: CPU seconds that its loop used itself, and CPU seconds of interrupts and softirq work billed to the loop."""


def unwanted() -> str | None:
    """Return why cores are not to be kept awake here, in words for the record; None if they are to be kept awake."""
    if os.environ.get(VARIABLE):
        return "switched off"
    if os.environ.get(COUNTED):
        return "a machine with a counted clock has a loop of its own"
    try:
        find_program(PROGRAM)
    except MissingPart as missing:
        return missing.message
    found = find()
    if found.unified is None:
        return "without cgroup v2 their CPU cannot be separated from other work"
    if found.cpu is not None and _limited(found.cpu):
        # The loops would use up what the lab needs itself.
        return "this machine's CPU time is limited by a quota of its control group"
    return None


def _limited(cpu: Path) -> bool:
    """Return whether the first group of a hierarchy has a CPU quota: in a container it is the container's own."""
    for name, free in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        with contextlib.suppress(OSError):
            return (cpu / name).read_text().split()[0] != free
    return False


class LoopGroups:
    """The control groups in which a command's loops run; `folders`: their paths.

    The loops' groups are next to the groups of the command's labs. Below a lab's group, they would take a part of the
    weight of that group, although the loops' tasks are of idle class.

    Each core's loop has groups of its own. The kernel splits a group's weight among the cores on which the group
    has tasks. If two loops share one group, the part on a core can be so small (0.008) that the scheduler's virtual
    times go wrong (`scale_load_down`, kernel/sched/sched.h). A lab that woke then waited up to a second behind a busy
    program of normal priority, whatever the lab's weight (Linux 6.18).
    """

    def __init__(self, hierarchies: Hierarchies, name: str, cores: Iterable[int]) -> None:
        self._hierarchies = hierarchies
        self._name = name
        self.folders = tuple(folder for core in sorted(cores) for folder in self._of(core))

    def _of(self, core: int) -> list[Path]:
        mounts = {self._hierarchies.unified, self._hierarchies.cpu} - {None}
        return sorted(mount / f"{self._name}{SUFFIX}{core}" for mount in mounts if mount)

    def create(self) -> None:
        """Make the groups, idle as a whole (`cpu.idle`, Linux 5.15) or of least weight; OSError if that is refused."""
        for folder in self.folders:
            folder.mkdir()
            if (folder / "cpu.idle").exists():
                (folder / "cpu.idle").write_text("1")
            elif (folder / "cpu.weight").exists():
                (folder / "cpu.weight").write_text("1")
            elif (folder / "cpu.shares").exists():
                (folder / "cpu.shares").write_text(_LEAST_SHARES)

    def take(self, process: int, core: int) -> None:
        """Keep a process to a core, give it the idle class (SCHED_IDLE), and move it into the groups of that core.

        The caller moves it: a process that moves itself sleeps in the kernel while it holds the locks of all control
        groups (`cgroup_attach_lock`, kernel/cgroup/cgroup.c). One of idle class on busy cores then did not run again
        for more than 11 s (`bench/bench_loops.py`), for which no program on the machine could make a control group.
        """
        os.sched_setaffinity(process, {core})
        os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))
        for folder in self._of(core):
            (folder / "cgroup.procs").write_text(str(process))

    def leave_session(self) -> None:
        """Without a CPU controller, start a kernel session (setsid(2)), whose autogroup gets the least weight."""
        if self._hierarchies.cpu is None:
            os.setsid()
            with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as autogroup:
                autogroup.write(str(_LAST_AUTOGROUP))

    def hurry(self) -> None:
        """Give the loops the highest weight just before they are killed, or their end would wait for all other work."""
        for folder in self.folders:
            cgroup_cleanup.hurry(str(folder))

    @property
    def unified(self) -> tuple[Path, ...]:
        """The groups in the v2 hierarchy; () without cgroup v2."""
        return tuple(folder for folder in self.folders if folder.parent == self._hierarchies.unified)


def memory(cores: set[int]) -> int:
    """Make a nameless file in which these cores' loops count CPU time; return its descriptor. The caller closes it."""
    fd = os.memfd_create("awake", os.MFD_CLOEXEC)
    os.ftruncate(fd, _STRIDE * (max(cores) + 1))
    return fd


def begin(place: LoopGroups, cores: set[int], fd: int) -> list[int]:
    """Start a loop on each core as a child process, and return their PIDs; OSError if the groups are refused.

    `fd`: the file from `memory` in which the loops count. The caller keeps it, and ends the processes. Raises
    MissingPart if the program of the loops is not built.
    """
    program = str(find_program(PROGRAM))
    place.create()
    begun: list[int] = []
    try:
        for core in sorted(cores):
            begun.append(_begin(place, core, [program, "awake", str(core), str(fd)], fd))
    except OSError:
        end(place, begun)
        raise
    return begun


def _begin(place: LoopGroups, core: int, argv: list[str], fd: int) -> int:
    """Start a core's loop, with `fd` as its one open file besides the standard ones; return its PID."""
    gate, opened = os.pipe2(os.O_CLOEXEC)
    process = os.fork()
    if process == 0:
        try:
            os.close(opened)
            if not os.read(gate, 1):  # its groups were refused
                os._exit(1)
            place.leave_session()
            os.closerange(3, fd)
            os.closerange(fd + 1, 65536)
            os.set_inheritable(fd, True)
            os.execv(argv[0], argv)
        finally:
            os._exit(1)
    os.close(gate)
    try:
        place.take(process, core)
        os.write(opened, b"\n")
    except OSError:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    finally:
        os.close(opened)
    return process


def end(place: LoopGroups, processes: Iterable[int]) -> None:
    """End loops that this process has begun, and remove their groups. A lab server's end with it (`cgroup_cleanup`)."""
    place.hurry()
    for process in processes:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    for folder in place.folders:
        cgroup_cleanup.remove(str(folder))


class KeepAwake(Protocol):
    """The command's view of loops that keep cores awake. `groups`: their groups in cgroup v2; () if they have none."""

    groups: tuple[Path, ...]

    def spent(self) -> Spent:
        """Return, by core, the CPU seconds that its loop used itself, and those of other work billed to the loop."""

    def in_process(self) -> float:
        """Return the CPU seconds billed to those loops that are threads of this process; 0 if none of them is."""


class Loops:
    """The loops of this command's lab server, each a process of its own."""

    def __init__(self, fd: int, place: LoopGroups) -> None:
        self._counts = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        self.groups = place.unified
        self._clocks: dict[int, int] = {}

    def spent(self) -> Spent:
        """Return, by core, the CPU seconds that its loop used itself, and those of other work billed to the loop.

        {} without cgroup v2, by which the loops' processes are found.
        """
        found: Spent = {}
        for core, clock in self._of_cores().items():
            with contextlib.suppress(OSError):  # it has ended
                (own,) = struct.unpack_from("@Q", self._counts, core * _STRIDE)
                found[core] = own / 1e9, time.clock_gettime_ns(clock) / 1e9 - own / 1e9
        return found

    def _of_cores(self) -> dict[int, int]:
        """Return the CPU-time clock of each core's loop (`CPUCLOCK_SCHED`, include/linux/posix-timers.h)."""
        for group in self.groups:
            core = int(group.name.rpartition("-")[2])
            with contextlib.suppress(OSError):
                if core not in self._clocks and (processes := (group / "cgroup.procs").read_text().split()):
                    self._clocks[core] = ~int(processes[0]) << 3 | 2
        return self._clocks

    def in_process(self) -> float:
        """Return 0: these loops are processes of their own, so none is inside this process."""
        return 0.0

    def close(self) -> None:
        """Stop reading the loops, which end with their lab server."""
        self._counts.close()
        STANDING.remove(self)


STANDING: list[KeepAwake] = []
"""The loops that run for this process: those of its lab servers, mostly one set, or a guest's `ClockLoop`."""


def process_seconds() -> float:
    """Return the CPU seconds that this process has used; those of loops that are its threads are left out."""
    return time.process_time() - sum(loops.in_process() for loops in STANDING)


def interrupted() -> dict[int, float]:
    """Return, by core, the seconds up to now that interrupts and softirq work took in place of this command's loops."""
    found: dict[int, float] = {}
    for loops in STANDING:
        for core, (_, instead) in loops.spent().items():
            found[core] = found.get(core, 0.0) + instead
    return found


def own_seconds() -> float:
    """Return the CPU seconds that loops of any command on this machine used; only a difference of two calls has a
    meaning.

    The loops of other commands count with all the time that the kernel bills to them. That time includes interrupts and
    softirq work that ran while a loop ran, because the kernel bills them to no other process.
    """
    mine = {group for loops in STANDING for group in loops.groups}
    unified = find().unified
    for folder in unified.glob(f"tunnelmark-*{SUFFIX}*") if unified else ():
        if folder not in mine:
            with contextlib.suppress(OSError):  # its command has just ended
                _OTHERS[folder] = used(folder).total
    return sum(own for loops in STANDING for own, _ in loops.spent().values()) + sum(_OTHERS.values())


_OTHERS: dict[Path, float] = {}
"""By group of another command's loop: CPU seconds when last seen; kept when it is gone, or a sum would fall."""
