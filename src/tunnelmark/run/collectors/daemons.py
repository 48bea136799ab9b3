"""Measures the CPU of the VPN's daemons, and separately that of the node's other programs: the workload's.

The daemons' CPU is what the kernel bills to their processes, in steps of a clock tick (10 ms). The others' is that of
the node's control group less the daemons and the agent. Kernel work outside of any process (ksoftirqd, workers, softirq
work on an idle core) is in neither figure, and softirq work is billed to the process that it interrupts; the collector
`cpu` counts all of it for the node.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.errors import LabError
from tunnelmark.linux import cgroups
from tunnelmark.model.metrics import Sample
from tunnelmark.run.collectors import _proc
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, both

METRICS = (
    *both("cpu_daemons", "ms/s", "CPU of the VPN's daemons", feels="processor"),
    *both("cpu_generator", "ms/s", "CPU of the workload's own programs", feels="processor"),
)
NO_DAEMONS = "no daemon runs on the node: what the kernel does for a VPN is billed to no process of its own"
ENDED = "a daemon that ran before the workload ended during it, and its CPU with it"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class NodeCpu:
    """CPU seconds of a node so far: of each daemon that still runs (by process), the agent, and the control group."""

    daemons: Mapping[int, float]
    agent: float
    group: float


def shares(first: NodeCpu, last: NodeCpu, took: float) -> tuple[float | None, float | None]:
    """Return the CPU of the daemons, and the CPU of the node's other programs without the agent, in ms per second.

    `took`: the seconds between the two looks. The first is None on a node without daemons. Both are None if a daemon
    has ended in between.
    """
    if set(first.daemons) - set(last.daemons):
        return None, None
    spent = sum(last.daemons[process] - before for process, before in first.daemons.items())
    others = last.group - first.group - spent - (last.agent - first.agent)
    return 1000 * spent / took if first.daemons else None, 1000 * max(0.0, others) / took


def billed(processes: Iterable[int], tick: int, proc: Path = _PROC, *, children: bool = True) -> dict[int, float]:
    """Return the CPU seconds of those processes that still run, by process number.

    With `children`, the children that a process has waited for count, too.
    """
    found = {}
    for process in processes:
        try:
            text = (proc / str(process) / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[process] = _proc.process_seconds(text, tick, children=children)
    return found


class _Daemons:
    def __init__(self, context: CollectorContext) -> None:
        if any(context.nodes[node].group is None for node in context.ends.values()):
            raise LabError("there is no cgroup v2 hierarchy to account CPU with", hint="mount cgroup2")
        self._context = context
        self._tick = os.sysconf("SC_CLK_TCK")
        self._known = {end: context.daemons[node] for end, node in context.ends.items()}  # now, while nothing else runs

    async def begin(self) -> None:
        self._since = Stopwatch()
        self._begun, self._first = self._since(), self._look()

    async def sample(self) -> None:
        """Do nothing: only the counters at begin and end matter."""

    async def end(self) -> Collected:
        took, last = max(self._since() - self._begun, 1e-9), self._look()
        samples, notes = list[Sample](), dict[str, str]()
        for end in self._context.ends:
            daemons, generator = shares(self._first[end], last[end], took)
            for name, value in ((f"cpu_daemons_{end}", daemons), (f"cpu_generator_{end}", generator)):
                if value is not None:
                    samples.append(Sample(name, value))
                else:
                    notes[name] = ENDED if self._known[end] else NO_DAEMONS
        return Collected(tuple(samples), notes)

    def _look(self) -> dict[str, NodeCpu]:
        found = {}
        for end, node in self._context.ends.items():
            group = self._context.nodes[node].group
            assert group is not None  # `__init__` has looked
            agent = self._context.nodes[node].agent
            own = billed((agent,), self._tick, children=False)  # whose children are the workload's programs
            daemons = billed(self._known[end], self._tick)
            found[end] = NodeCpu(daemons, own.get(agent, 0.0), cgroups.used(group).total)
        return found


COLLECTOR = Collector("daemons", "CPU of the VPN's daemons and of the generator", METRICS, _Daemons)
