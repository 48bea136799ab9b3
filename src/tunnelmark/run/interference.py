"""Measures what the machine did besides the lab in a trial: CPU that other work took, and that the hypervisor stole."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.host import keep_awake, pauses, softirq

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Glance:
    """CPU seconds of all cores together up to a moment (`time`, monotonic seconds).

    `busy`: used by all work but the loops that keep cores awake. `stolen`: taken by the hypervisor. `lab`: used by the
    lab's control groups (NaN if unknown). `softirq`: used by ksoftirqd, and by softirq work on idle cores. `own`: used
    by this command.
    """

    time: float
    softirq: float
    busy: float
    stolen: float
    lab: float
    own: float


def glance(lab: float | None) -> Glance:
    """Read the machine's counters now. `lab`: CPU seconds that the lab's control groups have used; None if unknown."""
    tick = os.sysconf("SC_CLK_TCK")
    # proc_stat(5): user nice system idle iowait irq softirq steal
    user, nice, system, _, _, irq, soft, steal = (int(x) / tick for x in _STAT.read_text().split("\n")[0].split()[1:9])
    return Glance(
        time.monotonic(),
        softirq.total(),
        user + nice + system + irq + soft - keep_awake.own_seconds(),
        steal,
        float("nan") if lab is None else lab,
        keep_awake.process_seconds() + pauses.own_seconds(),
    )


def between(before: Glance, after: Glance, *, alone: bool = False) -> dict[str, float]:
    """Return how many cores were used between two glances, by what used them; {} if no time has passed.

    `steal`: by the hypervisor. `lab_cpu`: by the lab. `other_cpu`: by other work, at least 0. `lab_cpu` and `other_cpu`
    are absent if the lab's CPU is not known. `softirq_cpu`: by ksoftirqd and by softirq work on idle cores; this does
    not count as other work, because it handles packets, and most packets are the lab's.
    `alone`: all other work counts as the lab's, so `other_cpu` is 0.
    """
    wall = after.time - before.time
    if wall <= 0:
        return {}
    lab, own = after.lab - before.lab, after.own - before.own
    softirqs = after.softirq - before.softirq
    other = (after.busy - before.busy - lab - own - softirqs) / wall
    found = {"steal": (after.stolen - before.stolen) / wall, "softirq_cpu": softirqs / wall}
    if other == other:  # not NaN
        found["other_cpu"] = 0.0 if alone else max(other, 0.0)
        found["lab_cpu"] = lab / wall + (max(other, 0.0) if alone else 0.0)
    return found
