"""Reads the CPU time that control groups do not account: of kernel threads, and of softirq work on an idle core.

Softirq work runs in the context of the task that its core runs at that moment, and the kernel bills its time to that
task unless it accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING). Three kinds of work are billed to no node:

- The work of `ksoftirqd`, of which each core has one thread.
- The work of kernel workers that are bound to a core, such as kernel WireGuard's encryption.
- Softirq work on an idle core, which is billed to no task at all. If a TCP sender does not fill its link, most of its
  work is of this kind: with 1 Gbit/s, its core was busy for 3.4 of 5 s, and tasks ran for only 0.5 s of these.

If loops keep the cores awake (`keep_awake`), the third kind of work is billed to the loop that it interrupts.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tunnelmark.host import keep_awake
from tunnelmark.linux.kernel_threads import Census

_CENSUS = Census()
_WORKED: dict[int, tuple[int, float]] = {}
"""By worker, its core and its CPU seconds when last seen: kept when the worker is gone, or a sum would fall."""

_TICK = os.sysconf("SC_CLK_TCK")
_SCHEDSTAT = Path("/proc/schedstat")


def threads() -> Mapping[int, int]:
    """Return the core of each thread that `seconds` and `workers` count, by its process ID."""
    return {process: thread.core for process, thread in _CENSUS.look().items()}


def seconds() -> dict[int, float]:
    """Return the CPU seconds of ksoftirqd up to now, by core; {} if /proc does not show the kernel's threads."""
    threads = _CENSUS.look().items()
    return {
        thread.core: used
        for process, thread in threads
        if thread.kind == "ksoftirqd" and (used := _of(process)) is not None
    }


def workers() -> dict[int, float]:
    """Return the CPU seconds of workers bound to a core, by core; only the difference of two calls has a meaning.

    All of their work counts. A little of it is not done for the nodes on their cores: mostly work for disks and timers.
    Workers that may run anywhere (`kworker/u4:1`; WireGuard's handshakes) are left out.
    """
    for process, thread in _CENSUS.look().items():
        if thread.kind == "kworker" and (used := _of(process)) is not None:
            _WORKED[process] = thread.core, used
    found: dict[int, float] = {}
    for core, used in _WORKED.values():
        found[core] = found.get(core, 0.0) + used
    return found


def _of(process: int) -> float | None:
    """Return a kernel thread's CPU seconds, from its schedstat (ns) or stat (ticks) in /proc; None if it has ended."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        pass
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    return (int(words[11]) + int(words[12])) / _TICK  # utime, stime: proc_pid_stat(5)


def handling() -> dict[int, float]:
    """Return the seconds that each core has spent on softirq work and on interrupts since the machine started.

    Softirq work counts in every context: in a task, in ksoftirqd, on an idle core. The figures are from /proc/stat: the
    kernel looks at each tick what a core is doing, so they are right on average, and no finer than one tick.
    """
    return {core: (int(words[6]) + int(words[7])) / _TICK for core, words in _stat().items()}  # irq, softirq


def unbilled() -> dict[int, float]:
    """Return, by core, the seconds that are neither idle time nor billed to a task; {} if they cannot be counted.

    Only the difference of two calls has a meaning: the seconds of softirq work on a core while the core was idle. The
    kernel counts such work neither as idle time nor as a task's time, so the work is the remaining time. Tasks' time is
    from cgroup v1 (`cpuacct.usage_percpu`), or else from the scheduler (/proc/schedstat, CONFIG_SCHEDSTATS), in
    nanoseconds. Idle time is from /proc/stat, in hundredths of a second; it is exact if the kernel stops idle ticks.

    If a loop keeps a core awake, the time that the loop was billed for and did not use itself counts as such work. The
    scheduler's count is not used for that core: it grows only when a turn of a task ends, and a loop's turns are long.
    """
    awakened = keep_awake.interrupted()
    ran = _by_cpuacct()
    if ran is None:
        ran = {core: used for core, used in (_by_scheduler() or {}).items() if core not in awakened}
    now, found = time.monotonic(), dict(awakened)
    for core, words in _stat().items():
        if core in ran:
            rested = sum(int(words[place]) for place in (4, 5, 8)) / _TICK  # idle, iowait, steal: proc_stat(5)
            found[core] = found.get(core, 0.0) + now - rested - ran[core]
    return found


def ran() -> float | None:
    """Return the seconds that tasks, kernel threads and loops have run, over all cores; None if nothing counts them.

    All programs of the machine count. Only the difference of two calls has a meaning.
    """
    by_core = _by_cpuacct() or _by_scheduler()
    return None if by_core is None else sum(by_core.values())


def _stat() -> dict[int, list[str]]:
    """Return the words of each core's line in /proc/stat, by core."""
    lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    return {int(words[0][3:]): words for words in lines if re.fullmatch(r"cpu\d+", words[0])}


def _by_cpuacct() -> dict[int, float] | None:
    """Return the seconds that tasks have run on each core, by `cpuacct` of cgroup v1; None without that controller."""
    if (group := _cpuacct()) is None:
        return None
    return {core: int(word) / 1e9 for core, word in enumerate((group / "cpuacct.usage_percpu").read_text().split())}


def _by_scheduler() -> dict[int, float] | None:
    """Return the same as `_by_cpuacct` from /proc/schedstat, a core's seventh figure; None without that file.

    See sched-stats.rst, versions 15 to 17.
    """
    try:
        lines = _SCHEDSTAT.read_text().splitlines()
    except OSError:
        return None
    return {
        int(found[1]): int(found[2]) / 1e9 for line in lines if (found := re.match(r"cpu(\d+)(?: \d+){6} (\d+) ", line))
    }


def lacking() -> str | None:
    """Return why this machine cannot count softirq work on an idle core (see `unbilled`); None if it can."""
    if not unbilled():
        return "the kernel does not count the tasks of a core here (cpuacct of cgroup v1, or CONFIG_SCHEDSTATS)"
    if _cpuacct() is None and keep_awake.interrupted() and _interrupts_apart():
        return (
            "this kernel accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING), so they are billed to no loop that keeps a core "
            "awake; --let-cores-sleep has them counted"
        )
    return None


@cache
def _interrupts_apart() -> bool:
    """Return whether the kernel accounts interrupts apart from tasks; False if its configuration cannot be read."""
    for place, read in ((Path("/proc/config.gz"), gzip.open), (Path(f"/boot/config-{os.uname().release}"), open)):
        with contextlib.suppress(OSError), read(place, "rt") as file:
            return any(line.startswith("CONFIG_IRQ_TIME_ACCOUNTING=y") for line in file)
    return False


@cache
def _cpuacct() -> Path | None:
    """Return the mount point of the controller `cpuacct` of cgroup v1; None if it is not mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpuacct" in options.split(",") and Path(folder, "cpuacct.usage_percpu").exists():
            return Path(folder)
    return None


def total() -> float:
    """Return the CPU seconds of ksoftirqd and those that no task was billed for (`unbilled`), over all cores.

    Only the difference of two calls has a meaning.
    """
    return sum(seconds().values()) + sum(unbilled().values())


def owners(cores: Mapping[str, Iterable[int]]) -> dict[int, str]:
    """Return, by core, the node that the core belongs to; cores that several nodes share are left out.

    `cores`: by node, the numbers of its cores.
    """
    holders: dict[int, list[str]] = {}
    for node, own in cores.items():
        for core in own:
            holders.setdefault(core, []).append(node)
    return {core: nodes[0] for core, nodes in holders.items() if len(nodes) == 1}
