"""Looks at a VPN at rest, on three nodes of the lab: what it takes and shows when no traffic flows.

Memory is the resident set size of every process that the VPN keeps on its last node (proc_pid_smaps_rollup(5)): the
proportional one would share a program between the nodes of the lab, which separate hosts do not. The last node, for
the first one may also hold the services.
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
# Every process of the node but its first one (the lab's agent) and this look itself.
_LOOK = (
    "for p in /proc/[0-9]*; do n=${p#/proc/}; "
    '[ "$n" = 1 ] || [ "$n" = $$ ] || [ "$(cut -d" " -f4 $p/stat 2>/dev/null)" = $$ ] || '
    'cat $p/smaps_rollup $p/status 2>/dev/null; done | grep -E "^(Rss|Threads):"; true'
)


@dataclass(frozen=True, slots=True)
class IdleFootprint:
    """What was seen: seconds to the first packet everywhere, MTU in bytes, threads, RSS in bytes, TCP segmentation offload."""

    first_packet: float
    mtu: int
    threads: int
    memory: int
    segmentation: bool


async def look(labs: Labs, topology: Topology, driver: Driver[Any], options: Options, logs: Path) -> IdleFootprint:
    """Deploy the VPN, wait until it answers and has settled, and look; TrialError or LabError if it does not come up."""
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
