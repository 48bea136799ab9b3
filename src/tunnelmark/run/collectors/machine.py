"""Measures how much of the whole machine was in use: all of its cores, and its memory.

Published studies say of their machines that no resource was used up. While a lab is up, loops
of our own keep the cores awake; the time that these loops use counts as idle.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tunnelmark.errors import LabError
from tunnelmark.host import keep_awake
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.run.collectors import _proc
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch

METRICS = (
    Metric("machine_cores", "%", "time of all of the machine's cores that was used", "lower", feels="processor"),
    Metric("machine_memory", "%", "the machine's memory that was in use, at most", "lower", feels="counts"),
)
EVERY = 0.5
_PROC = Path("/proc")


def memory_used(text: str) -> float:
    """Return the per cent of the memory that is not available to programs, from /proc/meminfo."""
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB$", text, re.MULTILINE))
    return 100 * (1 - int(found["MemAvailable"]) / int(found["MemTotal"]))


def cores_used(first: dict[int, tuple[float, float]], last: dict[int, tuple[float, float]], took: float) -> float:
    """Return the per cent of the cores' time used in `took` seconds; what the hypervisor took does not count.

    `first`, `last`: by core, its idle and its stolen seconds up to the first and up to the last look.
    """
    had = rested = 0.0
    for core, (rest, stolen) in last.items():
        before = first.get(core, (0.0, 0.0))
        own = max(took - (stolen - before[1]), 1e-9)
        had += own
        rested += min(max(rest - before[0], 0.0), own)
    return 100 * (1 - rested / had) if had else 0.0


class _Machine:
    def __init__(self, context: CollectorContext) -> None:
        if os.environ.get(keep_awake.COUNTED):
            raise LabError(
                "another program's loop keeps the cores awake, so the time that they are idle cannot be measured",
                hint="start the measurement on a machine that does nothing else",
            )
        self._tick = os.sysconf("SC_CLK_TCK")
        self._most = 0.0

    async def begin(self) -> None:
        self._since = Stopwatch()
        self._begun, self._first = self._since(), self._rests()
        await self.sample()

    async def sample(self) -> None:
        self._most = max(self._most, memory_used((_PROC / "meminfo").read_text()))

    async def end(self) -> Collected:
        await self.sample()
        cores = cores_used(self._first, self._rests(), max(self._since() - self._begun, 1e-9))
        return Collected((Sample("machine_cores", cores), Sample("machine_memory", self._most)))

    def _rests(self) -> dict[int, tuple[float, float]]:
        """Return by core the seconds that it was idle, our own loops included, and those that the hypervisor took."""
        found = _proc.idle((_PROC / "stat").read_text(), self._tick)
        for loops in keep_awake.STANDING:
            for core, (own, _) in loops.spent().items():
                rested, stolen = found.get(core, (0.0, 0.0))
                found[core] = rested + own, stolen
        return found


COLLECTOR = Collector("machine", "how full the whole machine was", METRICS, _Machine, every=EVERY, looks_at="machine")
