"""Measures the memory of the VPN's daemons: at rest, before the workload starts, and the largest value under load.

PSS divides shared memory: a page that n processes map counts as 1/n for each of them, so the PSS of several daemons can
be added up. RSS counts shared pages in full.
"""

from __future__ import annotations

from tunnelmark.errors import LabError
from tunnelmark.model.metrics import Sample
from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, both

METRICS = (
    *both("memory_rest", "MiB", "memory of the daemons at rest (PSS)"),
    *both("memory_load", "MiB", "memory of the daemons under load (PSS)"),
    *both("memory_rss", "MiB", "memory of the daemons under load (RSS)"),
)
EVERY = 0.5
NO_DAEMONS = "no daemon runs on the node: what the kernel holds for it is not counted apart"
_MIB = 1 << 20


class _Memory:
    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        try:
            self._rest = self._look()
        except PermissionError as error:
            raise LabError(f"the memory of other processes may not be read: {error}", hint="it needs root") from error
        self._most = {end: (memory.pss, memory.rss) for end, memory in self._rest.items()}
        self._series: list[Sample] = []

    async def begin(self) -> None:
        self._since = Stopwatch()

    async def sample(self) -> None:
        now = self._since()
        for end, memory in self._look().items():
            pss, rss = self._most[end]
            self._most[end] = max(pss, memory.pss), max(rss, memory.rss)
            if memory.pss:
                self._series.append(Sample(f"memory_load_{end}", memory.pss / _MIB, round(now, 3)))

    async def end(self) -> Collected:
        await self.sample()  # a trial may be shorter than the time between two
        samples, notes = list(self._series), dict[str, str]()
        for end, (pss, rss) in self._most.items():
            values = {"memory_rest": self._rest[end].pss, "memory_load": pss, "memory_rss": rss}
            for name, value in values.items():
                if value:
                    samples.append(Sample(f"{name}_{end}", value / _MIB))
                else:
                    notes[f"{name}_{end}"] = NO_DAEMONS
        return Collected(tuple(samples), notes)

    def _look(self) -> dict[str, _counts.Memory]:
        return {end: _counts.memory(self._context.daemons[node]) for end, node in self._context.ends.items()}


COLLECTOR = Collector("memory", "memory of the daemons", METRICS, _Memory, every=EVERY, light=True)
