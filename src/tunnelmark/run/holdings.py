"""Counts a VPN's processes, their memory and their open files by node: a number that only grows in a trial is a leak.

They are read from the node's own /proc (proc_pid_smaps_rollup(5), proc_pid_fd(5)), where processes have the node's own
process IDs, and where zombies (ended processes that were not waited for) are seen, too. Memory is the resident set
size. The proportional set size is not used: it falls when the same program starts on another node, and rises when the
program ends there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tunnelmark.lab.labs import Lab
from tunnelmark.run.collectors import _counts

Programs = Mapping[str, Collection[int]]
"""By node, process IDs in the node's own /proc. Each ID means all processes of that process's group."""

_AGENT = 1  # the first process of a node is the lab's


@dataclass(frozen=True, slots=True)
class Holdings:
    """The number of a node's processes, their resident memory in bytes, and the number of their open files."""

    processes: int
    memory: int
    files: int


async def look(lab: Lab, besides: Programs) -> dict[str, dict[str, int]]:
    """Return the holdings of each node, as plain data, without the lab's own process and the programs `besides`."""
    found = await asyncio.to_thread(
        lambda: {
            name: held_by(Path(f"/proc/{node.pid}", "root", "proc"), besides.get(name, ()))
            for name, node in lab.nodes.items()
        }
    )
    return {name: asdict(held) for name, held in found.items()}


def held_by(proc: Path, besides: Collection[int]) -> Holdings:
    """Return the holdings of a node, read from its /proc, without the processes `besides` and their process groups.

    A process that ends meanwhile counts as holding nothing.
    """
    apart = {_AGENT, *besides}
    numbers = [int(name) for name in os.listdir(proc) if name.isdigit() and int(name) not in apart]
    mine = [number for number in numbers if (group := _group(proc, number)) is not None and group not in apart]
    return Holdings(len(mine), _counts.memory(mine, proc).rss, sum(_open(proc, number) for number in mine))


def _group(proc: Path, number: int) -> int | None:
    """Return the process group of a process; None if it has ended.

    It is the third word behind the name, which may contain spaces and brackets (proc_pid_stat(5)).
    """
    try:
        return int((proc / str(number) / "stat").read_text().rpartition(")")[2].split()[2])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _open(proc: Path, number: int) -> int:
    try:
        return len(os.listdir(proc / str(number) / "fd"))
    except (FileNotFoundError, ProcessLookupError):
        return 0
