"""The environment of a run as one JSON object: machine, kernel settings, versions and hashes of every program.

Together with the plan and the raw outputs it is what others need to repeat the run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tunnelmark
from tunnelmark.errors import MissingPart
from tunnelmark.host import fingerprint, utilisation
from tunnelmark.host.programs import TOOLS, Requirement, find, part_version, recipe_folder, require, sha256
from tunnelmark.packages import debian, installed
from tunnelmark.packages.recipe import recipes
from tunnelmark.record.fingerprint_diff import KEY, plain

SYSCTLS = (
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.udp_mem",
    "kernel.sched_autogroup_enabled",
)
"""Settings of the host that change what a lab measures."""


def capture(
    vpns: Iterable[Requirement],
    *,
    command: Sequence[str] = (),
    lab: Mapping[str, Any] | None = None,
    tools: Iterable[Requirement] = TOOLS,
    workloads: Iterable[Requirement] = (),
    guest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The environment now, fit to be written as JSON.

    `vpns` are the parts of the VPNs under test: MissingPart if one of their programs is not there. A
    tool or a workload that is not there is left out. `lab` is what the lab says of itself, `command` the command
    line (default: this process's own). `guest`: facts about the virtual machine that we run in, None on the host.
    """
    return {
        "tunnelmark": tunnelmark.__version__,
        "command": list(command or ["tunnelmark", *sys.argv[1:]]),
        "python": sys.version.split()[0],
        "machine": {
            "system": utilisation.system(),
            "kernel": utilisation.kernel(),
            "cpu": utilisation.cpu(),
            "cores": utilisation.cores(),
            "memory_bytes": utilisation.memory()[0],
            "virtualisation": f"qemu, {guest['accelerator']}" if guest else utilisation.virtualisation(),
        },
        KEY: json.loads(json.dumps(plain(fingerprint.look(guest=guest is not None)))),
        **({"guest": dict(guest)} if guest else {}),
        "vpns": {part.name: {"version": part_version(part), **_programs(part)} for part in vpns},
        "workloads": {
            part.name: {"packages": debian.versions(part.packages), **_programs(part)}
            for part in workloads
            if _installed(part)
        },
        "tools": {part.name: _tool(part) for part in tools if _installed(part)},
        "host_sysctls": sysctls(),
        "lab": dict(lab or {}),
        "load": {"before": asdict(utilisation.load())},
    }


def sysctls(names: Iterable[str] = SYSCTLS) -> dict[str, str]:
    """The host's values of those settings that this kernel has; columns are separated by one space."""
    found = {}
    for name in names:
        path = Path("/proc/sys", *name.split("."))
        try:
            found[name] = " ".join(path.read_text().split())
        except OSError:
            continue  # not in this kernel, or not for us to read
    return found


def socket_buffer_limit() -> int:
    """The largest socket buffer in bytes that a program may ask for, both ways (net.core.{r,w}mem_max)."""
    limits = sysctls(("net.core.rmem_max", "net.core.wmem_max"))
    return min((int(value) for value in limits.values()), default=212992)


def _programs(part: Requirement) -> dict[str, Any]:
    """The programs with paths and hashes, and how a recipe built them, if one did: version, hash of the recipe, toolchain.

    A program that is the recipe's own has its version, for those of one recipe may differ.
    """
    # Resolved, for what `--bin` named is a link that ends with the command.
    programs = {name: {"path": str(path.resolve()), "sha256": sha256(path)} for name, path in require(part).items()}
    found = installed.read(recipe_folder(part.recipe)) if part.recipe else None
    if not found:
        return {"programs": programs}
    made = recipes().get(part.recipe)
    for name, version in made.versions().items() if made else ():
        if name in programs and programs[name]["sha256"] == found.get("programs", {}).get(name, {}).get("sha256"):
            programs[name]["version"] = version
    return {"programs": programs, "installed": found}


def _tool(part: Requirement) -> dict[str, str]:
    path = find(part.programs[0])
    return {"version": part_version(part), "path": str(path), "sha256": sha256(path)}


def _installed(part: Requirement) -> bool:
    try:
        require(part)
    except MissingPart:
        return False
    return True
