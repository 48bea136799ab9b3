"""Manages the machine's cores while a command's lab is up: loops keep them awake, and clocks watch them for pauses.

If the machine has a core to spare, the command itself does not run on the nodes' cores while it has labs.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, MissingPart
from tunnelmark.host import keep_awake, pauses
from tunnelmark.host.placement import Placement, Whole, place
from tunnelmark.linux import cgroups
from tunnelmark.plan.model import Topology

_CPUS = Path("/sys/devices/system/cpu")
_HAD: list[frozenset[int]] = []
"""The cores that this process had before `keep_to` limited it to some of them; empty while it is not limited."""


def usable() -> frozenset[int]:
    """Return the cores that this process may use, even if `keep_to` limits it to some of them now."""
    return _HAD[0] if _HAD else frozenset(os.sched_getaffinity(0))


def keep_to(cores: Sequence[int]) -> None:
    """Limit this process, and programs that it starts from now on, to `cores`; if that is empty, end the limit."""
    had = usable()
    os.sched_setaffinity(0, cores or had)
    _HAD[:] = [had] if cores else []


@contextmanager
def _everywhere() -> Iterator[None]:
    """Let programs that start in the body of the `with` statement run on all cores."""
    now = os.sched_getaffinity(0)
    os.sched_setaffinity(0, usable())
    try:
        yield
    finally:
        os.sched_setaffinity(0, now)


def wholes(cpus: Path = _CPUS) -> list[Whole]:
    """Return the processor cores that this process may use, each as the numbers of its usable threads.

    If the kernel does not list siblings (`topology/thread_siblings_list`), each thread is a core by itself.
    """
    found = set()
    for core in usable():
        try:
            threads = listed((cpus / f"cpu{core}/topology/thread_siblings_list").read_text())
        except OSError:
            threads = {core}
        found.add(tuple(sorted(threads & usable() | {core})))
    return sorted(found)


def listed(text: str) -> set[int]:
    """Return the numbers in a list as the kernel writes it, such as `0,4` or `0-1` (cpuset(7), list format)."""
    ranges = (re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in text.strip().split(","))
    return {number for found in ranges if found for number in range(int(found[1]), int(found[2] or found[1]) + 1)}


def placed(topology: Topology, each: int) -> Placement:
    """Return on which cores a topology's nodes and links run here, with `each` cores for each node (see
    `placement`).
    """
    return place(topology.nodes, wholes(), each=each, links=len(topology.links))


def record(topologies: Iterable[Topology], each: int) -> dict[str, Any]:
    """Return the placement of each topology on this machine, by the topology's name, as JSON objects for the record.

    `each`: the number of cores for each node.
    """
    return {topology.name: placed(topology, each).plain() for topology in topologies}


class Cores:
    """Owns the loops that keep cores awake, and the clocks that watch for pauses, for one lab server.

    `name`: the name of its command's control groups. `files`: the file descriptors that the lab server must inherit.
    `folders`: the control groups that the command's janitor must remove.
    """

    def __init__(self, name: str) -> None:
        self._asleep = keep_awake.unwanted()  # why they are not kept awake
        self._place = keep_awake.LoopGroups(cgroups.find(), name, usable())
        self._counts = keep_awake.memory(set(usable()))
        self._loops: keep_awake.Loops | None = None
        self._clocks: pauses.Clocks | None = None
        self.files = () if self._asleep else (self._counts,)
        self.folders: tuple[Path, ...] = self._place.folders

    def begun(self, said: dict[str, Any]) -> dict[str, Any]:
        """Take over the loops that the lab server has started. `said`: the facts with which it reported itself ready.

        Return these facts for the record. If no loops were wanted, they also say why (`awake_not`).
        """
        record = {"awake": False, "awake_not": self._asleep} | said if self._asleep else said
        if record["awake"]:
            self._loops = keep_awake.Loops(self._counts, self._place)
            keep_awake.STANDING.append(self._loops)
        return record

    def watch(self) -> str | None:
        """Watch for pauses of the machine from now on; return None, or the reason if that is not possible."""
        try:
            with _everywhere():
                self._clocks = self._clocks or pauses.start()
        except (LabError, MissingPart) as error:
            return error.message
        return None

    async def seen(self) -> pauses.PausesSeen | None:
        """Return the pauses since `watch`; None if nothing watches for them."""
        if self._clocks is None:
            return None
        try:
            return await asyncio.to_thread(self._clocks.seen)
        except LabError:  # someone has ended the clocks: the trial does not fail for that, but lacks these figures
            return None

    def end(self) -> None:
        """End the clocks, and stop reading the loops. Call `end` just before the lab server ends, which ends the loops.

        If `keep_to` limits this process to some cores, the limit ends too.
        """
        keep_to(())
        os.close(self._counts)
        if self._loops is not None:
            self._loops.close()
            self._place.hurry()
        if self._clocks is not None:
            self._clocks.close()
