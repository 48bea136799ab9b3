"""What a collector is: it reads counters of the nodes while a trial's traffic runs, and reports what the traffic cost.

A collector is one module of this package that defines `COLLECTOR`; it is registered by being there. It declares its metrics as
a workload does, and `watch` makes a `Sampler` for one trial:

    __init__  when the deployment is ready and nothing of the workload has been started: the mesh is idle
    begin     just before the traffic's client starts
    sample    every `every` seconds while it runs, if the collector asks for that
    end       when the client has ended, in whatever way

If the machine does not allow a measurement, raise LabError (or OSError) with the reason in `watch` or `begin`: the trial goes on
without the collector's metrics, and the reason is in the trial's notes. A collector never makes a trial fail.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from tunnelmark.model.metrics import Feels, Metric, Sample


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """What collectors know of a node under their own kernel; all of it is plain, so that it can be said to another host."""

    agent: int
    """The number of its first process."""

    group: Path | None = None
    """Its control group in the v2 hierarchy; None where there is no v2."""

    cores: Sequence[int] = ()
    """Where it runs; of the middle node, the cores that are the links' alone."""

    headers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By underlay interface: bytes of Ethernet header in what it counts of each packet that it receives, and that it sends."""

    interface: str = ""
    """The interface that workloads use."""

    address: str = ""
    """Its address there."""

    senders: Mapping[str, str] = field(default_factory=dict)
    """At an end, by underlay address: the node or router whose traffic comes from there."""


class LinkCounters(Protocol):
    """Counters of the links of a lab, as `lab.labs.Lab` has them."""

    async def link_counters(self) -> list[dict[str, dict[str, int]]]:
        """For each link, what the middle node sent towards each node on it."""

    async def link_reports(self) -> list[dict[str, Any]]:
        """What the emulator of each link says of itself."""


@dataclass(frozen=True)
class CollectorContext:
    """What a collector may look at, and where raw files go.

    Files that a collector leaves in `raw` begin with `watch.`.
    """

    nodes: Mapping[str, ObservedNode]
    """The nodes under this kernel: all of a lab, or those that it has on this host."""

    source: str
    target: str
    raw: Path

    middle: ObservedNode | None = None
    """The node that the links run through; None if it is on another host."""

    card: str = "none"
    """What the nodes' cards do, as the link's profile says: where they split super-packets, interfaces count these as one packet."""

    links: LinkCounters | None = None
    """Counters of the links; None on a host, where the command asks for them."""

    further_ways: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """See `plan.routes.further_ways`."""

    begun: float = 0.0
    """When the VPN was started, on the nodes' CLOCK_MONOTONIC."""

    clock: float = 0.0
    """Seconds that the nodes' CLOCK_MONOTONIC shows more than this process's."""

    @property
    def ends(self) -> dict[str, str]:
        """The nodes whose cost is reported, by the word that ends a metric's name: `source` and `target`, if they are here."""
        both = {"source": self.source, "target": self.target}
        return {end: node for end, node in both.items() if node in self.nodes}

    @cached_property
    def daemons(self) -> Mapping[str, tuple[int, ...]]:
        """The VPN's processes on each node, children included, by the host's process numbers.

        Everything but the agent that runs when this is first asked: ask while the mesh is at rest.
        """
        return {name: self.processes(name) for name in self.nodes}

    def processes(self, node: str) -> tuple[int, ...]:
        """Every process of a node but its agent, by the host's process numbers."""
        agent = self.nodes[node].agent
        try:
            own = os.readlink(f"/proc/{agent}/ns/pid")
        except OSError:
            return ()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != agent:
                try:
                    if os.readlink(f"/proc/{name}/ns/pid") == own:
                        found.append(int(name))
                except OSError:
                    continue  # it ended meanwhile
        return tuple(found)

    def proc(self, node: str, path: str) -> str:
        """A file below /proc as the node sees it itself, such as `net/dev`; OSError if it has none."""
        return Path(f"/proc/{self.nodes[node].agent}", path).read_text()

    def now(self) -> float:
        """The time on the nodes' CLOCK_MONOTONIC, in seconds."""
        return time.monotonic() + self.clock


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collector saw in one trial.

    A sample's `time` counts seconds from `begin`; None is for the whole of the traffic. `notes` say why a metric is absent, by
    the metric's name. `cpu` are CPU seconds of programs that it started; its own are measured by its caller. `limits` say
    what held the traffic back (see the module `limits`); arms are not compared by them. `sums` are added up over the hosts that have
    a part of the lab, and become metrics by the collector's `conclude`; `of_each_host` are values for it that are not to be added up,
    by name: one from each host that has it.
    """

    samples: tuple[Sample, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    cpu: float = 0.0
    limits: Mapping[str, float] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    of_each_host: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def joined(self, other: Collected) -> Collected:
        """What was seen on two hosts, each of which has nodes of its own."""
        sums = dict(self.sums)
        for name, value in other.sums.items():
            sums[name] = sums.get(name, 0.0) + value
        of_each_host = dict(self.of_each_host)
        for name, values in other.of_each_host.items():
            of_each_host[name] = (*of_each_host.get(name, ()), *values)
        return Collected(
            (*self.samples, *other.samples),
            {**self.notes, **other.notes},
            self.cpu + other.cpu,
            {**self.limits, **other.limits},
            sums,
            of_each_host,
        )


class Sampler(Protocol):
    """A collector at work in one trial."""

    async def begin(self) -> None:
        """The traffic's client is about to start."""

    async def sample(self) -> None:
        """Some of the traffic has passed."""

    async def end(self) -> Collected:
        """The traffic is over."""


class Turn(IntEnum):
    """The order in which collectors begin. They end in the reverse order: many divide by the time in between, in which nothing slow may be."""

    PERF = 0
    """It takes up to seconds to begin and to end."""

    SOCKETS = 1
    """It opens packet sockets; to close them takes tens of milliseconds, and its own figures have no time in them."""

    TIMED_SOCKETS = 2
    """The same of one that divides by time: that ends before others close theirs."""

    QUICK = 3
    """It takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Collector:
    """A way to observe a trial."""

    name: str
    """Its name on the command line and in studies, such as `cpu`."""

    title: str
    """What it reports, in a few words."""

    metrics: tuple[Metric, ...]
    """Its metrics; none is primary."""

    watch: Callable[[CollectorContext], Sampler]
    """Makes the sampler of one trial."""

    every: float | None = None
    """Seconds between two samples; None for no samples between begin and end."""

    light: bool = False
    """True if it is on unless a study says otherwise."""

    looks_at: Literal["all", "ends", "source", "machine"] = "ends"
    """What it looks at: where nodes are on several hosts, it works on each that has some of it; what looks at the whole machine, on none."""

    turn: Turn = Turn.QUICK
    """When it begins and ends among the collectors of a trial."""

    conclude: Callable[[Collected], Collected] | None = None
    """Makes samples and notes in addition from what was seen on all hosts, for metrics that need what several nodes counted."""


def both(
    name: str, unit: str, title: str, *, compare: str = "ratio", better: str = "lower", feels: Feels = "counts"
) -> tuple[Metric, ...]:
    """A metric of each end: `name_source` and `name_target`, titled after the sender and the receiver."""
    words = {"source": "sender", "target": "receiver"}
    return tuple(
        Metric(f"{name}_{end}", unit, f"{title}, {word}", better=better, compare=compare, feels=feels)  # type: ignore[arg-type]
        for end, word in words.items()
    )


class Stopwatch:
    """Seconds since it was made, on the clock of series."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self._start
