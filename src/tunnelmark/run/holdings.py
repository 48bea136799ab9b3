"""Counts what a VPN's programs hold on each node: processes, memory, open files. What only grows while a trial lasts is a leak.

It is read in the node's own /proc (proc_pid_smaps_rollup(5), proc_pid_fd(5)), where processes have the node's own numbers, and where
one that has ended without being waited for is still seen. Memory is the resident set size: the proportional one of a daemon falls
when another node's starts that has the same program, and rises when that ends.
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
"""By node, programs by the number of their process on the node; with all processes of their process groups."""

_AGENT = 1  # the first process of a node is the lab's


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the programs of a node hold: their number, resident memory in bytes, open file descriptors."""

    processes: int
    memory: int
    files: int


async def look(lab: Lab, besides: Programs) -> dict[str, dict[str, int]]:
    """What every process of each node holds but the lab's own, and those of the programs `besides`; by node, as plain data."""
    found = await asyncio.to_thread(
        lambda: {
            name: held_by(Path(f"/proc/{node.pid}", "root", "proc"), besides.get(name, ()))
            for name, node in lab.nodes.items()
        }
    )
    return {name: asdict(held) for name, held in found.items()}


def held_by(proc: Path, besides: Collection[int]) -> Holdings:
    """The resources that the processes of a node hold, read from its /proc; a process that ends meanwhile counts as holding nothing."""
    apart = {_AGENT, *besides}
    numbers = [int(name) for name in os.listdir(proc) if name.isdigit() and int(name) not in apart]
    mine = [number for number in numbers if (group := _group(proc, number)) is not None and group not in apart]
    return Holdings(len(mine), _counts.memory(mine, proc).rss, sum(_open(proc, number) for number in mine))


def _group(proc: Path, number: int) -> int | None:
    """The process group of a process: the third word behind its name, which may have spaces and brackets (proc_pid_stat(5))."""
    try:
        return int((proc / str(number) / "stat").read_text().rpartition(")")[2].split()[2])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _open(proc: Path, number: int) -> int:
    try:
        return len(os.listdir(proc / str(number) / "fd"))
    except (FileNotFoundError, ProcessLookupError):
        return 0
