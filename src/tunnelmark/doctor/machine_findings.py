"""Collects the facts on this machine that `checks` judges: kernel, cores, load, virtual machines, programs."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunnelmark.errors import MissingPart
from tunnelmark.host import kernel_features
from tunnelmark.host import utilisation as machine
from tunnelmark.host.programs import TOOLS, Requirement, part_version
from tunnelmark.lab import emulator
from tunnelmark.lab.vm import host_support
from tunnelmark.linux import cgroups

PERF = Requirement("perf", ("perf",), ("linux-perf",), ("perf", "--version"), r"perf version (\S+)")
"""Linux's profiler, which shows where a program spends its time; a lab works without it."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Facts on the machine. Sizes are in bytes.

    `parts`: each program with its version, or with the error that says why it is missing.
    `probes`, `as_user`: for each kernel feature, the reason why root, or a user, cannot use it; "" if it can be used.
    """

    system: str
    os: str  # platform.system()
    kernel: str
    capabilities: int  # effective, as a bit set
    cores: int
    memory: tuple[int, int]  # all, available
    disk: int  # free where results go
    load: machine.HostLoad
    guests: host_support.VmSupport
    cgroup_v2: str  # mount point, empty: none
    cgroup_cpu: str  # mount point of the hierarchy with the CPU controller, empty: none
    congestion_default: str
    congestion_available: tuple[str, ...]
    probes: Mapping[str, str]
    parts: Sequence[tuple[Requirement, str | MissingPart]]
    tools: frozenset[str]  # names of the parts that are tools
    emulator: str = ""  # why the link emulator cannot be used, empty: it can
    as_user: Mapping[str, str] = field(default_factory=dict)  # the probes by a user in a user namespace


def look(vpns: Sequence[Requirement], results: Path) -> Findings:
    """Collect the findings. Kernel features are tried in namespaces of a child process; the machine does not change."""
    hierarchies = cgroups.find()
    load = machine.load()  # before the probes, which are work themselves
    return Findings(
        system=machine.system(),
        os=platform.system(),
        kernel=machine.kernel(),
        capabilities=_capabilities(),
        cores=machine.cores(),
        memory=machine.memory(),
        disk=shutil.disk_usage(results).free,
        load=load,
        guests=host_support.look(),
        cgroup_v2=str(hierarchies.unified or ""),
        cgroup_cpu=str(hierarchies.cpu or ""),
        congestion_default=_sysctl("tcp_congestion_control"),
        congestion_available=tuple(_sysctl("tcp_available_congestion_control").split()),
        probes=kernel_features.run(),
        parts=[(part, _version(part)) for part in (*TOOLS, PERF, *vpns)],
        tools=frozenset(tool.name for tool in (*TOOLS, PERF)),
        emulator=_emulator(),
        as_user=kernel_features.run(as_user=True),
    )


def _emulator() -> str:
    try:
        emulator.program()
    except MissingPart as missing:
        return missing.hint
    return ""


def _version(part: Requirement) -> str | MissingPart:
    try:
        return part_version(part)
    except MissingPart as missing:
        return missing


def _capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _sysctl(name: str) -> str:
    try:
        return Path("/proc/sys/net/ipv4", name).read_text().strip()
    except OSError:
        return ""
