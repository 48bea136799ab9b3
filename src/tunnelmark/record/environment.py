"""Records the environment of a run as one JSON object: machine, kernel settings, versions and hashes of every program.

Others need it, together with the plan and the raw outputs, to repeat the run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
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
    lab: Mapping[str, Any] | None = None,
    tools: Iterable[Requirement] = TOOLS,
    workloads: Iterable[Requirement] = (),
    guest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the present environment in a form that can be written as JSON.

    `vpns`: the programs of the VPNs under test; MissingPart if one of them is not installed.
    `lab`: what the lab reports about itself.
    `tools`, `workloads`: the programs of each tool and workload; those that are not installed are left out.
    `guest`: facts about the virtual machine in which this process runs; None on the host.
    """
    return {
        "tunnelmark": tunnelmark.__version__,
        "command": ["tunnelmark", *sys.argv[1:]],
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
    """Return the host's values of the sysctls that can be read here, by name.

    If a sysctl has several values, one space separates them.
    """
    found = {}
    for name in names:
        path = Path("/proc/sys", *name.split("."))
        try:
            found[name] = " ".join(path.read_text().split())
        except OSError:
            continue  # this kernel does not have it, or we may not read it
    return found


def socket_buffer_limit() -> int:
    """Return the largest socket buffer in bytes that a program may ask for, both to send and to receive.

    It is the smaller one of net.core.rmem_max and net.core.wmem_max; 212992 if neither can be read.
    """
    limits = sysctls(("net.core.rmem_max", "net.core.wmem_max"))
    return min((int(value) for value in limits.values()), default=212992)


def _programs(part: Requirement) -> dict[str, Any]:
    """Return the programs with paths and hashes, and the record of their installation (`installed`) if a recipe made it.

    That record has the version, the hash of the recipe and the toolchain. A program that is still the one that the
    recipe has installed also has its own version, because programs of one recipe may differ in it.
    """
    # The path is resolved, because `--bin` makes links that are removed when the command ends.
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
