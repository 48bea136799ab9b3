"""What a mesh costs by its number of nodes: `python bench/many_nodes.py [VPN ...]`, as root.

For 3, 10, 30 and 100 nodes on one switch: seconds until the lab is up and until the VPN answers, and then, at rest, memory, CPU and
bytes sent of a node, the median over the nodes. Each figure is fitted by a power of the number of nodes; the interval of the exponent
is Student's over the points of a straight line between the logarithms.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import linregress, t

from tunnelmark import registry
from tunnelmark.errors import LabError, TrialError
from tunnelmark.lab.client import LabClient
from tunnelmark.linux import cgroups
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.run.collectors import _counts
from tunnelmark.run.deploy import prepare
from tunnelmark.run.observed import observed

SIZES = (3, 10, 30, 100)
UNSHAPED = Profile("unshaped", "As fast as the machine", "no figures")
REST = 10.0  # seconds in which nothing is asked of the mesh
READY = 300.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one mesh: seconds until it was there; of a node at rest, MiB of memory (RSS), ms of CPU a second, bytes sent a second."""

    lab: float
    answered: float
    memory: float
    cpu: float
    sent: float


TITLES = {
    "lab": "lab up (s)",
    "answered": "answered (s)",
    "memory": "memory of a node (MiB)",
    "cpu": "CPU of a node (ms/s)",
    "sent": "sent by a node (B/s)",
}


async def cost(labs: LabClient, vpn: str, nodes: int, folder: Path) -> Cost:
    """Bring a mesh up, and look at it at rest."""
    driver, options = registry.arm(vpn)
    names = tuple(f"n{number}" for number in range(1, nodes + 1))
    topology = Topology(f"lan-{nodes}", "one switch", names, (Link("switch", names),))
    logs = folder / f"{vpn}-{nodes}"
    logs.mkdir()
    async with labs.lab(topology, UNSHAPED) as lab:
        tunnel = prepare(lab, driver, options, logs)
        begun = time.monotonic()
        await tunnel.start()
        await tunnel.answer(READY)
        answered = time.monotonic() - begun
        context = observed(lab, tunnel, names[0], names[-1], logs)
        memory = [_counts.memory(processes).rss / 2**20 for processes in context.daemons.values()]

        def counted() -> dict[str, tuple[float, float]]:
            groups = {name: lab.group(name) for name in names}
            return {
                name: (
                    cgroups.cpu_seconds(group) if group is not None else 0.0,
                    float(_counts.traffic(context, name).sent_bytes),
                )
                for name, group in groups.items()
            }

        before, since = counted(), time.monotonic()
        await tunnel.unless_dead(asyncio.sleep(REST))
        after, took = counted(), time.monotonic() - since
        cpu = median(1000 * (after[name][0] - before[name][0]) / took for name in names)
        sent = median((after[name][1] - before[name][1]) / took for name in names)
        return Cost(lab.timings.up, answered, median(memory), cpu, sent)


def exponent(sizes: Sequence[int], values: Sequence[float]) -> str:
    """The power of the number of nodes that a figure grows by, with its 95 % interval."""
    points = [(n, value) for n, value in zip(sizes, values, strict=True) if value > 0]
    if len(points) < 3:
        return "–"
    line = linregress(*np.log(np.array(points)).T)
    half = t.ppf(0.975, len(points) - 2) * line.stderr
    return f"{line.slope:.2f} ({line.slope - half:.2f} to {line.slope + half:.2f})"


def shown(vpn: str, found: Mapping[int, Cost], console: Console) -> None:
    table = Table("nodes", *TITLES.values(), title=vpn, title_justify="left", box=None)
    for nodes, each in found.items():
        table.add_row(str(nodes), *(f"{value:.3g}" for value in asdict(each).values()))
    fits = (exponent(list(found), [getattr(each, name) for each in found.values()]) for name in TITLES)
    table.add_row("exponent", *fits)
    console.print(table)


async def main(vpns: Sequence[str], sizes: Sequence[int]) -> int:
    console, code = Console(width=160), 0
    with tempfile.TemporaryDirectory() as folder:
        for vpn in vpns:
            found: dict[int, Cost] = {}
            for nodes in sizes:
                try:
                    async with LabClient() as labs:
                        found[nodes] = await cost(labs, vpn, nodes, Path(folder))
                except (LabError, TrialError) as error:
                    console.print(f"{vpn}: {nodes} nodes: {error.message} ({error.hint})", style="red")
                    code = 1
                    break
            shown(vpn, found, console)
    return code


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vpns", nargs="*", default=["direct", "wireguard-go", "nebula"])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.vpns, asked.nodes)))
