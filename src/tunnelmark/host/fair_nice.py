"""Finds the nice value with which the kernel's threads get as large a part of a core as a lab's programs.

On an ordinary host, a kernel thread and one busy program have the same weight, so each gets half of a core. A lab's
programs are in a control group of the largest weight, so that other work does not take their cores. Next to such a
group, a kernel thread of nice 0 would get far less than half of a core; `linux.kernel_threads` sets the nice value. The
kernel divides a group's weight among the cores on which the group is busy (`calc_group_shares`, kernel/sched/fair.c). A
lab is busy mostly on the cores of the path's two ends.
"""

from __future__ import annotations

import math
from pathlib import Path

from tunnelmark.linux.cgroups import V1_SHARES, V2_WEIGHT, Hierarchies

WEIGHTS = (
    *(88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, 1024),
)
"""The CPU weights of nice -20, -19 ... 0 (`sched_prio_to_weight`, kernel/sched/core.c)."""

BUSY = 2
"""The number of cores on which a lab is busy: those of the path's two ends."""

_AUTOGROUP = (
    29154  # the weight of a session of nice -15 (`lab.server.server.HIGHEST_AUTOGROUP`), used without a CPU controller
)
_V2_UNIT = 10.24  # a v2 group of cpu.weight 100 weighs 1024 (`sched_weight_from_cgroup`)


def nice_of(weight: float) -> int:
    """Return the nice value (-20 to 0) whose weight (`WEIGHTS`, 1024 for nice 0) is nearest to `weight` in ratio."""
    return min(range(-20, 1), key=lambda nice: abs(math.log(WEIGHTS[nice + 20] / max(weight, 1.0))))


def weight_of(hierarchies: Hierarchies) -> float:
    """Return the CPU weight that all labs of a command together have on one busy core; a program of nice 0 has 1024.

    On that core the labs compete with the kernel's threads, which are in no control group. So the weight of the labs'
    group counts, or that of the topmost group above the labs' group if there is one.
    """
    cpu, mount = hierarchies.cpu, hierarchies.cpu_mount
    if cpu is None or mount is None:
        return _AUTOGROUP / BUSY
    unified = cpu == hierarchies.unified
    if cpu == mount:
        return (int(V2_WEIGHT) * _V2_UNIT if unified else int(V1_SHARES)) / BUSY
    above = mount / cpu.relative_to(mount).parts[0]
    return _set(above, unified) / BUSY


def _set(group: Path, unified: bool) -> float:
    """Return a control group's CPU weight; 1024, the weight of a program of nice 0, if it has none."""
    try:
        given = int((group / ("cpu.weight" if unified else "cpu.shares")).read_text())
    except (OSError, ValueError):
        return 1024
    return given * _V2_UNIT if unified else given


def nice_beside(hierarchies: Hierarchies) -> int:
    """Return the nice value for the kernel's threads that run next to the labs of a command (-20 to 0)."""
    return nice_of(weight_of(hierarchies))
