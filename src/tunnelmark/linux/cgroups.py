"""Control groups of a lab: they count the CPU time of each node, give labs more CPU than other work, and carry BPF
programs.

Two hierarchies may matter. The v2 hierarchy always accounts CPU time (`cpu.stat`) and carries the BPF program that sets
the congestion control (`congestion`). The CPU controller divides CPU time by weights. It is in the v2 hierarchy or, on
hybrid machines, in a v1 hierarchy of its own. Where labs can use this controller, the weight of their group gives them
priority over programs of other terminals. The `nice` value of a program does not: autogroup scheduling makes `nice`
meaningless between terminals' sessions, but does not apply inside a group with a CPU controller (sched(7)). The janitor
(`cgroup_cleanup`) is the process that removes a command's groups after the command has ended.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.linux import cgroup_cleanup

V2_WEIGHT = "10000"  # largest cpu.weight
V1_SHARES = "262144"  # largest cpu.shares
_BUDGET = "cpu.rt_runtime_us"
_REALTIME = (940_000, 850_000, 400_000, 200_000)
"""Microseconds of real-time scheduling per second to ask for, the best first: all commands share what the host has."""

VARIABLE = "TUNNELMARK_CGROUP"
"""Environment variable that names a control group. Labs get their groups below it, so its limits hold for all labs."""

_ATTEMPTS = 10  # to join a group that another command's janitor may remove meanwhile, because it is empty


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """The folders in which labs get their groups; None if the hierarchy is missing or cannot be written to.

    `unified` is in the v2 hierarchy, `cpu` in the one with the CPU controller: the mount point, or a group below it.
    `cpu_mount` is the mount point of the latter.
    """

    unified: Path | None
    cpu: Path | None
    cpu_mount: Path | None = None

    @property
    def priority(self) -> str:
        """How the lab gets priority over other work, in words for the record."""
        if self.cpu is None:
            return "autogroup nice -15"
        return f"cpu.weight {V2_WEIGHT}" if self.cpu == self.unified else f"cpu.shares {V1_SHARES} (cgroup v1)"


def find() -> Hierarchies:
    """Return the hierarchies that can be written to: for each its mount point, or a group below the mount point.

    The environment variable TUNNELMARK_CGROUP may name that group, by its path below the mount point. It has no effect
    in a hierarchy without such a group.
    """
    mounts = mounted()
    name = os.environ.get(VARIABLE, "").strip("/")
    unified, cpu = (mount / name if mount and name and (mount / name).is_dir() else mount for mount in mounts)
    return Hierarchies(unified, cpu, mounts[1])


def mounted() -> tuple[Path | None, Path | None]:
    """Return the mount points of the v2 hierarchy and the CPU controller's; None for one that cannot be written to."""
    unified = cpu = None
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, folder, kind, options = line.split()[:4]
            if not os.access(folder, os.W_OK) or "ro" in options.split(","):
                continue
            if kind == "cgroup2" and unified is None:
                unified = Path(folder)
            elif kind == "cgroup" and cpu is None and "cpu" in options.split(","):
                cpu = Path(folder)
    if cpu is None and unified and "cpu" in (unified / "cgroup.controllers").read_text().split():
        cpu = unified
    return unified, cpu


def sweep() -> bool:
    """Remove the control groups of commands that have ended and whose janitor was killed, too.

    Return whether there were any.
    """
    found, any_left = find(), False
    for mount in {found.unified, found.cpu} - {None}:
        for folder in mount.glob("tunnelmark-*-*") if mount else ():
            if not os.path.exists(f"/proc/{folder.name.split('-')[1]}"):
                cgroup_cleanup.remove(str(folder))
                any_left = True
                with contextlib.suppress(OSError):  # labs that are up use it
                    os.rmdir(cgroup_cleanup.shared(str(folder)))
    return any_left


class ControlGroup:
    """The control groups of one command, in each hierarchy: a top folder, and one leaf for each node of each lab.

    Leaves are removed with their lab; the janitor removes the groups of a killed command.
    """

    def __init__(self, hierarchies: Hierarchies, name: str) -> None:
        self._hierarchies = hierarchies
        mounts = {hierarchies.unified, hierarchies.cpu} - {None}
        self.folders = tuple(sorted(mount / name for mount in mounts if mount))
        self._sharing: set[str] = set()

    def create(self) -> None:
        """Make the top folders, and give them the largest share of the CPU."""
        for folder in self.folders:
            folder.mkdir()
            if folder.parent != self._hierarchies.cpu:
                continue
            if folder.parent == self._hierarchies.unified:
                for level in (folder.parent, folder):
                    if "cpu" not in (level / "cgroup.subtree_control").read_text().split():
                        (level / "cgroup.subtree_control").write_text("+cpu")
                (folder / "cpu.weight").write_text(V2_WEIGHT)
            else:
                (folder / "cpu.shares").write_text(V1_SHARES)

    @property
    def top(self) -> Path | None:
        """The top folder in the v2 hierarchy, for BPF programs; None without cgroup v2."""
        return self._hierarchies.unified / self.folders[0].name if self._hierarchies.unified else None

    def leaf(self, name: str, *, realtime: bool = False) -> None:
        """Make a leaf in every hierarchy. `realtime`: its processes may have real-time priority, if possible here."""
        if realtime:
            self._sharing.add(name)
        for folder in self.folders:
            (folder / name).mkdir()

    def join(self, name: str) -> None:
        """Move the calling process into a leaf.

        In a hierarchy that budgets real-time scheduling, a process of a `realtime` leaf joins one group that all
        commands share.
        """
        for folder in self.folders:
            if name in self._sharing and (folder / _BUDGET).exists():
                _join_shared(Path(cgroup_cleanup.shared(str(folder))))
            else:
                (folder / name / "cgroup.procs").write_text("0")

    def remove_leaf(self, name: str) -> None:
        """Remove an empty leaf; a leaf whose processes are still ending is left for the janitor."""
        for folder in self.folders:
            try:
                (folder / name).rmdir()
            except OSError:
                continue


def _join_shared(shared: Path) -> None:
    """Move the calling process into the group of all processes with real-time priority; make the group if it is
    missing.

    A group for each lab, or for each command, would not do: groups divide the budget of the group above. Of two labs
    that are up at once, the first would have all of it, even if it is idle, and the measured one nothing. The command
    that ends last removes the group.
    """
    for left in reversed(range(_ATTEMPTS)):
        try:
            shared.mkdir(exist_ok=True)
            (shared / "cgroup.procs").write_text("0")
            break
        except OSError:
            if not left:
                raise
    (shared / "cpu.shares").write_text(V1_SHARES)
    # Kernels with CONFIG_RT_GROUP_SCHED refuse SCHED_FIFO in a v1 group until it has a budget (sched-rt-group).
    for microseconds in _REALTIME:
        with contextlib.suppress(OSError):  # the group above does not have that much left
            (shared / _BUDGET).write_text(str(microseconds))
            break


def cpu_seconds(leaf: Path) -> float:
    """Return the CPU seconds that a v2 group has used, user and kernel; OSError if its `cpu.stat` cannot be read."""
    for line in (leaf / "cpu.stat").read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == "usage_usec":
            return int(value) / 1e6
    raise OSError(f"{leaf}/cpu.stat has no usage_usec")


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds that a v2 group has used: in user space and in the kernel."""

    user: float
    system: float

    @property
    def total(self) -> float:
        """CPU seconds in user space and in the kernel together."""
        return self.user + self.system


def used(leaf: Path) -> Used:
    """Return the CPU seconds that a v2 group has used up to now; OSError if the group does not exist."""
    found = dict(line.split() for line in (leaf / "cpu.stat").read_text().splitlines())
    return Used(int(found["user_usec"]) / 1e6, int(found["system_usec"]) / 1e6)
