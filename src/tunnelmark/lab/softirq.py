"""The threads of the kernel that process packets when softirq work piles up: one a core, in no control group.

Softirq work runs in the context of whichever task a core just runs, and its time is billed to that task unless the kernel
accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING); only what is left to `ksoftirqd` is outside every node's account.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path


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


def total() -> float:
    """CPU seconds that ksoftirqd has used up to now, all cores together."""
    return sum(seconds().values())


def owners(cores: Mapping[str, list[int]]) -> dict[int, str]:
    """Which node a core belongs to, of the cores that belong to one alone."""
    holders: dict[int, list[str]] = {}
    for node, own in cores.items():
        for core in own:
            holders.setdefault(core, []).append(node)
    return {core: nodes[0] for core, nodes in holders.items() if len(nodes) == 1}
