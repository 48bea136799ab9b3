"""What the machine did besides the lab during a trial: CPU taken by other work, and stolen by the hypervisor."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.host import keep_awake, pauses, softirq

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Glance:
    """CPU seconds, all cores together: `busy` by anybody but loops that keep cores awake, `stolen`; and what lab, softirq
    without a task, and we used.
    """

    time: float
    softirq: float
    busy: float
    stolen: float
    lab: float
    own: float


def glance(lab: float | None) -> Glance:
    """Look at the machine now; `lab` are the CPU seconds that the lab's groups have used (None: unknown)."""
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
    """Cores taken meanwhile by others: `other_cpu` (never below 0; absent without CPU accounting) and `steal`.

    `softirq_cpu` is what ksoftirqd took, and softirq work on idle cores. It does not count as other work: it handles packets,
    and most packets are the lab's. `alone`: everything that ran was the lab's.
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
