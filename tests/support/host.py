"""What a lab could leave behind on the host: processes, network namespaces, interfaces, mounts, control groups.

Labs of other commands may stand on the machine meanwhile, other tests' among them, and whatever else its users run. A lab belongs to the
command whose process ID is in the name of its control group, and a command is one of these tests' if it has their mark in its environment.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30.0
"""Seconds that the kernel may take, on a machine that has much else to do, to end what belongs to a lab."""

_MARK = "TUNNELMARK_TESTS"
_others: set[str] = set()  # names of control groups that were seen to belong to other commands


def mark_processes() -> None:
    """Have every process that is started from now on carry our mark."""
    os.environ[_MARK] = str(os.getpid())


@dataclass(frozen=True)
class Host:
    """The host as it is seen from outside of any lab."""

    processes: frozenset[str]
    networks: frozenset[str]
    interfaces: frozenset[str]
    mounts: frozenset[str]
    groups: frozenset[str]
    sysctls: tuple[str, ...]

    @classmethod
    def now(cls) -> Host:
        return cls(
            processes=frozenset(_processes()),
            networks=frozenset(_links("net")),
            interfaces=frozenset(os.listdir("/sys/class/net")),
            mounts=frozenset(Path("/proc/self/mounts").read_text().splitlines()),
            groups=frozenset(_groups()),
            sysctls=tuple(
                Path("/proc/sys/net/ipv4", name).read_text()
                for name in ("tcp_congestion_control", "tcp_allowed_congestion_control", "ip_forward")
            ),
        )

    def left_by(self, later: Host) -> dict[str, object]:
        """What `later` has that was not there before, and settings that changed."""
        left: dict[str, object] = {
            name: sorted(getattr(later, name) - getattr(self, name))
            for name in ("processes", "networks", "interfaces", "mounts", "groups")
        }
        if later.sysctls != self.sysctls:
            left["sysctls"] = later.sysctls
        return {name: found for name, found in left.items() if found}


def left_within(before: Host, seconds: float = PATIENCE) -> dict[str, object]:
    """What is still left after at most that many seconds; it looks until nothing is."""
    deadline = time.monotonic() + seconds
    while (left := before.left_by(Host.now())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _processes() -> list[str]:
    """Processes that a lab may have started: those of a lab, and of ours what lives in another network namespace or belongs to a lab server."""
    found = []
    home = os.readlink("/proc/self/ns/net")
    others = _of_others()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = _command(folder)
            elsewhere = os.readlink(folder / "ns/net") != home
            if not _may_be_ours(folder, others):
                continue
        except OSError:
            continue
        if elsewhere or "tunnelmark.lab" in command or "cgroup_cleanup.py" in command:
            found.append(f"{folder.name} {command}")
    return found


def _groups() -> list[str]:
    """Control groups of labs at the top of every hierarchy; not deeper, where folders vanish while one looks."""
    others = _of_others()
    return [str(group) for group in _all_groups() if group.name not in others]


def _all_groups() -> list[Path]:
    mounts = [Path("/sys/fs/cgroup"), *(folder for folder in Path("/sys/fs/cgroup").iterdir() if folder.is_dir())]
    return [group for mount in mounts for group in mount.glob("tunnelmark-*")]


def _links(kind: str) -> list[str]:
    found = set()
    others = _of_others()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if _may_be_ours(folder, others):
                found.add(os.readlink(folder / "ns" / kind))
        except OSError:
            continue
    return sorted(found)


def _of_others() -> set[str]:
    """The names of control groups of commands that are not ours; what was seen once stays known when its command has ended."""
    for group in _all_groups():
        try:
            pid = group.name.split("-")[1]
            if pid != str(os.getpid()) and not _is_marked(Path("/proc", pid)):
                _others.add(group.name)
        except (OSError, IndexError):
            continue
    return _others


def _may_be_ours(process: Path, others: set[str]) -> bool:
    """Whether a process was started by us, or is in a lab's group or names it (a lab server before it has joined, a janitor) that is not others'."""
    known = _command(process) + (process / "cgroup").read_text()
    if any(group in known for group in others):
        return False
    return "tunnelmark-" in known or _is_marked(process)


def _is_marked(process: Path) -> bool:
    return f"{_MARK}={os.getpid()}".encode() in (process / "environ").read_bytes().split(b"\0")


def _command(process: Path) -> str:
    return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
