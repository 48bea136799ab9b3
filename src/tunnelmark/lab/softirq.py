"""Softirq work that is in no control group's account: that of `ksoftirqd`, and that on cores that have nothing else to do.

Softirq work runs in the context of whichever task a core just runs, and its time is billed to that task unless the kernel
accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING). Two parts are billed to no node: what is left to `ksoftirqd`, one
thread a core; and what is done while the core is idle, which is billed to nobody. The second is most of a TCP sender's
work on a link that it does not fill: with 1 Gbit/s its core was busy for 3.4 of 5 s, and tasks had run for 0.5 s.
Where the lab keeps cores awake (`awake`) none idles, and the same work is billed to the loop that it interrupts.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tunnelmark.lab import awake


@cache
def threads() -> Mapping[int, int]:
    """The process number of ksoftirqd by core; empty where /proc does not show the kernel's threads."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                word = Path("/proc", name, "comm").read_text().strip()
            except OSError:
                continue
            if match := re.fullmatch(r"ksoftirqd/(\d+)", word):
                found[int(match[1])] = int(name)
    return found


def seconds() -> dict[int, float]:
    """CPU seconds that ksoftirqd has used up to now, by core.

    From /proc/PID/schedstat (nanoseconds), else from /proc/PID/stat (ticks).
    """
    found = {}
    for core, process in threads().items():
        try:
            found[core] = int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
        except OSError:
            words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            found[core] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime: proc_pid_stat(5)
    return found


def handling() -> dict[int, float]:
    """Seconds that each core has spent on softirq work up to now, in whatever context, and on interrupts.

    From /proc/stat, which looks at each tick what a core just does: right on average, and no finer than ticks.
    """
    found = {}
    for line in Path("/proc/stat").read_text().splitlines():
        if match := re.match(r"cpu(\d+) ", line):
            words = line.split()
            found[int(match[1])] = (int(words[6]) + int(words[7])) / os.sysconf("SC_CLK_TCK")  # irq, softirq
    return found


def unbilled() -> dict[int, float]:
    """Seconds that each core was neither idle nor ran a task; the difference of two looks is softirq work of an idle core.

    A core's tasks are counted to the nanosecond (`cpuacct.usage_percpu` of cgroup v1), its idle time too where the kernel
    stops idle ticks (/proc/stat, shown in hundredths of a second). Where a loop keeps the core awake, what it was billed
    and did not use is that work. Empty where there is neither such a count of tasks nor a loop.
    """
    found, awakened = _of_idle(), awake.interrupted()
    return {core: found.get(core, 0.0) + awakened.get(core, 0.0) for core in {*found, *awakened}}


def _of_idle() -> dict[int, float]:
    group = _cpuacct()
    if group is None:
        return {}
    now, tick = time.monotonic(), os.sysconf("SC_CLK_TCK")
    ran = [int(word) / 1e9 for word in (group / "cpuacct.usage_percpu").read_text().split()]
    found = {}
    for line in Path("/proc/stat").read_text().splitlines():
        if (match := re.match(r"cpu(\d+) ", line)) and int(match[1]) < len(ran):
            words = line.split()
            rested = sum(int(words[place]) for place in (4, 5, 8)) / tick  # idle, iowait, steal: proc_stat(5)
            found[int(match[1])] = now - rested - ran[int(match[1])]
    return found


@cache
def _cpuacct() -> Path | None:
    """Where the controller `cpuacct` of cgroup v1 is mounted, if it is."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpuacct" in options.split(",") and Path(folder, "cpuacct.usage_percpu").exists():
            return Path(folder)
    return None


def total() -> float:
    """CPU seconds that ksoftirqd has used up to now, and those that no task was billed for, all cores together.

    Only the difference of two looks has a meaning.
    """
    return sum(seconds().values()) + sum(unbilled().values())


def owners(cores: Mapping[str, list[int]]) -> dict[int, str]:
    """Which node a core belongs to, of the cores that belong to one alone."""
    holders: dict[int, list[str]] = {}
    for node, own in cores.items():
        for core in own:
            holders.setdefault(core, []).append(node)
    return {core: nodes[0] for core, nodes in holders.items() if len(nodes) == 1}
