"""What a lab could leave behind on the host: processes, network namespaces, interfaces, mounts, control groups."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


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


def left_within(before: Host, seconds: float) -> dict[str, object]:
    """What is still left after at most that many seconds."""
    deadline = time.monotonic() + seconds
    while (left := before.left_by(Host.now())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _processes() -> list[str]:
    """Processes that a lab may have started: ours, and whatever lives in another network namespace."""
    found = []
    home = os.readlink("/proc/self/ns/net")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            elsewhere = os.readlink(folder / "ns/net") != home
        except OSError:
            continue
        if elsewhere or "tunnelmark.lab" in command or "janitor.py" in command:
            found.append(f"{folder.name} {command}")
    return found


def _groups() -> list[str]:
    """Control groups of labs at the top of every hierarchy; not deeper, where folders vanish while one looks."""
    mounts = [Path("/sys/fs/cgroup"), *(folder for folder in Path("/sys/fs/cgroup").iterdir() if folder.is_dir())]
    return [str(group) for mount in mounts for group in mount.glob("tunnelmark-*")]


def _links(kind: str) -> list[str]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.add(os.readlink(folder / "ns" / kind))
        except OSError:
            continue
    return sorted(found)
