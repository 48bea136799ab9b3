"""The machine's cores while a command's lab is up: which there are, kept awake by loops, watched by clocks during measurements.

The command itself leaves the nodes' cores alone while it has labs, where the machine has a core to spare.
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
"""The cores that this process had before it was kept to some of them; empty while it is not."""


def usable() -> frozenset[int]:
    """The cores that this process may use, also while it keeps to some of them."""
    return _HAD[0] if _HAD else frozenset(os.sched_getaffinity(0))


def keep_to(cores: Sequence[int]) -> None:
    """Have this process, and programs that it starts from now on, run on these cores only; none: on all that it had."""
    had = usable()
    os.sched_setaffinity(0, cores or had)
    _HAD[:] = [had] if cores else []


@contextmanager
def _everywhere() -> Iterator[None]:
    """For the length of the block, what is started may run on all cores."""
    now = os.sched_getaffinity(0)
    os.sched_setaffinity(0, usable())
    try:
        yield
    finally:
        os.sched_setaffinity(0, now)


def wholes(cpus: Path = _CPUS) -> list[Whole]:
    """The processor cores that this process may use, each as the numbers of its threads, as far as these are usable.

    Where the kernel does not tell threads (`topology/thread_siblings_list`), each is a core by itself.
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
    """The numbers of a list as the kernel writes it, such as `0,4` or `0-1` (cpuset(7), list format)."""
    ranges = (re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in text.strip().split(","))
    return {number for found in ranges if found for number in range(int(found[1]), int(found[2] or found[1]) + 1)}


def placed(topology: Topology, each: int) -> Placement:
    """Where the nodes and links of a topology run on this machine, with so many cores for each node (see `placement`)."""
    return place(topology.nodes, wholes(), each=each, links=len(topology.links))


def record(topologies: Iterable[Topology], each: int) -> dict[str, Any]:
    """Where the nodes of each topology run on this machine, by its name, for the record."""
    return {topology.name: placed(topology, each).plain() for topology in topologies}


class Cores:
    """Belongs to a lab server: `files` are for its process, `folders` for its janitor."""

    def __init__(self, name: str) -> None:
        self._asleep = keep_awake.unwanted()  # why they are not kept awake
        self._place = keep_awake.LoopGroups(cgroups.find(), name, usable())
        self._counts = keep_awake.memory(set(usable()))
        self._loops: keep_awake.Loops | None = None
        self._clocks: pauses.Clocks | None = None
        self.files = () if self._asleep else (self._counts,)
        self.folders: tuple[Path, ...] = self._place.folders

    def begun(self, said: dict[str, Any]) -> dict[str, Any]:
        """The lab server's process is ready and has said so; what the record should hold."""
        record = {"awake": False, "awake_not": self._asleep} | said if self._asleep else said
        if record["awake"]:
            self._loops = keep_awake.Loops(self._counts, self._place)
            keep_awake.STANDING.append(self._loops)
        return record

    def watch(self) -> str | None:
        """Watch for pauses of the machine from now on; the reason if that is not possible, otherwise None."""
        try:
            with _everywhere():
                self._clocks = self._clocks or pauses.start()
        except (LabError, MissingPart) as error:
            return error.message
        return None

    async def seen(self) -> pauses.PausesSeen | None:
        """The pauses since `watch`; None where nothing sees them."""
        if self._clocks is None:
            return None
        try:
            return await asyncio.to_thread(self._clocks.seen)
        except LabError:  # someone has ended the clocks: the trial does not fail for that, but lacks these figures
            return None

    def end(self) -> None:
        """Forget the loops, which end with the lab server, and end the clocks. To be called when the lab server is about to end."""
        keep_to(())
        os.close(self._counts)
        if self._loops is not None:
            self._loops.close()
            self._place.hurry()
        if self._clocks is not None:
            self._clocks.close()
