"""Reads a lab's settings back from inside one of its nodes, for the record."""

from __future__ import annotations

from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.lab.backends import describe
from tunnelmark.lab.labs import HOST_SYSCTLS, Lab

READ_BACK = (
    *HOST_SYSCTLS,
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_mtu_probing",
)
"""Kernel settings of a node: those that the lab sets, and those that decide how its TCP behaves."""


async def facts(lab: Lab) -> dict[str, Any]:
    """Return a lab's settings for the record.

    `backend`: always `netns`. `sysctls`: kernel settings of the lab's first node. `offloads`: the offload features of
    its eth0 that can be changed (ethtool(8)). `cores`: a list of core numbers, by node. `shaper`: has one key, the name
    of the lab's profile; its value says in words how the links are made.
    """
    node = next(iter(lab.nodes.values()))
    sysctls = {}
    for name in READ_BACK:
        try:
            sysctls[name] = " ".join((await node.read("/proc/sys/" + name.replace(".", "/"))).split())
        except LabError:
            continue  # not in this kernel
    shown = await node.run(["ethtool", "-k", "eth0"])
    offloads = dict(line.strip().split(": ", 1) for line in shown.stdout.splitlines() if ": " in line)
    return {
        "backend": "netns",
        "sysctls": sysctls,
        "offloads": {name: value for name, value in offloads.items() if "[fixed]" not in value},
        "cores": {node: list(cores) for node, cores in lab.cores.items()},
        "shaper": {lab.profile.name: describe(lab.profile)},
    }
