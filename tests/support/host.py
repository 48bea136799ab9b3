"""What a lab could leave behind on the host: processes, network namespaces, interfaces, mounts, control groups.

Labs of other commands may stand on the machine meanwhile, other tests' among them, and whatever else its users run. A lab belongs to the
command whose process ID is in the name of its control group, and a command is one of these tests' if it has their mark in its environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30.0
"""Seconds that the kernel may take, on a machine that has much else to do, to end what belongs to a lab."""

_MARK = "TUNNELMARK_TESTS"
_GROUP = re.compile(r"tunnelmark-(\d+)-\w+")
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


def queue_drops() -> int:
    """Packets that the receive queues of all cores have had no room for, since the machine was started.

    All network namespaces share a core's queue: what one lab floods it with, another lab's packets find no room for.
    """
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


def _processes() -> list[str]:
    """Processes that a lab may have started: those of a lab, and of ours what lives in another network namespace or belongs to a lab server."""
    found = []
    home = os.readlink("/proc/self/ns/net")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = _command(folder)
            elsewhere = os.readlink(folder / "ns/net") != home
            if not _may_be_ours(folder):
                continue
        except OSError:
            continue
        if elsewhere or "tunnelmark.lab" in command or "cgroup_cleanup.py" in command:
            found.append(f"{folder.name} {command}")
    return found


def _groups() -> list[str]:
    """Control groups of labs at the top of every hierarchy; not deeper, where folders vanish while one looks."""
    ours = [str(group) for group in _all_groups() if not _is_of_others(group.name)]
    # What all commands share is left if there is no command any more.
    return ours or [str(group) for group in _groups_of_name("tunnelmark.realtime") if not _all_groups()]


def _all_groups() -> list[Path]:
    return _groups_of_name("tunnelmark-*")


def _groups_of_name(pattern: str) -> list[Path]:
    mounts = [Path("/sys/fs/cgroup"), *(folder for folder in Path("/sys/fs/cgroup").iterdir() if folder.is_dir())]
    return [group for mount in mounts for group in mount.glob(pattern)]


def _links(kind: str) -> list[str]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if _may_be_ours(folder):
                found.add(os.readlink(folder / "ns" / kind))
        except OSError:
            continue
    return sorted(found)


def _is_of_others(group: str) -> bool:
    """Whether a control group belongs to a command that is not ours; what was seen once stays known when its command has ended."""
    found = _GROUP.match(group)
    if found is None or group in _others:
        return group in _others
    with contextlib.suppress(OSError):
        if found[1] != str(os.getpid()) and not _is_marked(Path("/proc", found[1])):
            _others.add(group)
    return group in _others


def _may_be_ours(process: Path) -> bool:
    """Whether a process was started by us, or is in a lab's group or names it (a lab server before it has joined, a janitor) that is not others'.

    Whose a group is, is asked for when it is met: another command may have made it since one began to look.
    """
    known = _command(process) + (process / "cgroup").read_text()
    groups = {found[0] for found in _GROUP.finditer(known)}
    if any(_is_of_others(group) for group in groups):
        return False
    return bool(groups) or _is_marked(process)


def _is_marked(process: Path) -> bool:
    return f"{_MARK}={os.getpid()}".encode() in (process / "environ").read_bytes().split(b"\0")


def _command(process: Path) -> str:
    return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
