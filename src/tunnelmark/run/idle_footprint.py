"""Measures an idle VPN on a lab of three nodes: the memory and threads that it needs, and its interface's properties.

Memory is the resident set size of all processes of the VPN on the last node (proc_pid_smaps_rollup(5)). The
proportional set size would divide a program's memory among the lab's nodes, and separate hosts do not share memory. The
last node is measured because the first one may also run the VPN's services.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.lab.labs import Lab, Labs
from tunnelmark.model.options import Options
from tunnelmark.plan.model import Profile, Topology
from tunnelmark.run.deploy import RunningDeployment, prepare
from tunnelmark.vpns.base import Driver

_READY = 40.0  # seconds beyond the driver's own `starting`
_UNSHAPED = Profile("unshaped", "As fast as the machine", "no figures")
# Prints memory and threads of all processes of the node but its first one (the lab's agent) and this script itself.
_LOOK = (
    "for p in /proc/[0-9]*; do n=${p#/proc/}; "
    '[ "$n" = 1 ] || [ "$n" = $$ ] || [ "$(cut -d" " -f4 $p/stat 2>/dev/null)" = $$ ] || '
    'cat $p/smaps_rollup $p/status 2>/dev/null; done | grep -E "^(Rss|Threads):"; true'
)


@dataclass(frozen=True, slots=True)
class IdleFootprint:
    """The measured properties of an idle VPN.

    `first_packet`: seconds until a ping was answered in every direction. `mtu`: MTU of the overlay interface in bytes.
    `threads`, `memory`: the number of threads and the resident memory in bytes of all its processes on the last node.
    `segmentation`: whether TCP segmentation offload is on at the overlay interface.
    """

    first_packet: float
    mtu: int
    threads: int
    memory: int
    segmentation: bool


async def look(labs: Labs, topology: Topology, driver: Driver[Any], options: Options, logs: Path) -> IdleFootprint:
    """Deploy the VPN, wait until it answers and has converged, and measure it.

    Raises TrialError or LabError if it does not come up.
    """
    logs.mkdir(parents=True, exist_ok=True)
    async with labs.lab(topology, _UNSHAPED) as lab:
        tunnel = prepare(lab, driver, options, logs)
        await tunnel.start()
        await tunnel.answer(_READY + driver.startup_time)
        await tunnel.wait_converged(_READY + driver.convergence_time)
        return await _look(lab, tunnel, topology.nodes[-1])


async def _look(lab: Lab, tunnel: RunningDeployment, name: str) -> IdleFootprint:
    node, interface = lab.nodes[name], tunnel.interface[name]
    seen = (await node.run(["sh", "-c", _LOOK])).stdout
    offloads = (await node.run(["ethtool", "-k", interface])).stdout
    found = re.search(r"^tcp-segmentation-offload: (on|off)", offloads, re.MULTILINE)
    if found is None:
        raise LabError(f"ethtool says nothing of {interface} on {name}", hint="see `ethtool -k` in `lab shell`")
    return IdleFootprint(
        first_packet=max(tunnel.first_packet.values()),
        mtu=int(await node.read(f"/sys/class/net/{interface}/mtu")),
        threads=sum(int(number) for number in re.findall(r"^Threads:\s+(\d+)", seen, re.MULTILINE)),
        memory=1024 * sum(int(number) for number in re.findall(r"^Rss:\s+(\d+)", seen, re.MULTILINE)),
        segmentation=found[1] == "on",
    )
