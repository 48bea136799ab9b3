"""Defines the interface of a collector: it reads counters of the nodes during a trial's traffic, and reports its cost.

A collector is one module of this package that defines `COLLECTOR`; it is registered by being there. It declares its
metrics as a workload does, and `watch` makes a `Sampler` for one trial:

    __init__  when the deployment is ready and nothing of the workload has been started: the mesh is idle
    begin     just before the traffic's client starts
    sample    every `every` seconds while it runs, if the collector asks for that
    end       when the client has ended, in whatever way

A look is one reading of the counters. If the machine does not allow a measurement, raise LabError (or OSError) with the
reason in `watch` or `begin`: the trial goes on without the collector's metrics, and the reason is in the trial's notes.
A collector fails no trial.
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
    """What collectors know of a node on their own host. It is plain data, so that it can be sent to another host."""

    agent: int
    """The process ID of its agent, the node's first process, in the /proc of its host."""

    group: Path | None = None
    """The folder of its control group in the v2 hierarchy; None if the machine has no v2 hierarchy."""

    cores: Sequence[int] = ()
    """The cores that it runs on. For the middle node: the cores that only the links use; () if there are none."""

    headers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By underlay interface: how many bytes of Ethernet header it counts for each received and each sent packet."""

    interface: str = ""
    """The interface that workloads use."""

    address: str = ""
    """Its address on that interface."""

    senders: Mapping[str, str] = field(default_factory=dict)
    """For an end of the traffic, by underlay address: the node or router to which traffic from there is attributed."""


class LinkCounters(Protocol):
    """Counters of the links of a lab, as `lab.labs.Lab` has them."""

    async def link_counters(self) -> list[dict[str, dict[str, int]]]:
        """Return for each link, by node on it, the kernel's counters of the packets to that node.

        `sent_dropped` and `sent_lost` are about the packets that the node sent (see `lab.link_counts.of_link`).
        """

    async def link_reports(self) -> list[dict[str, Any]]:
        """Return the report of each link's emulator up to now; [] if the kernel carries all links."""


@dataclass(frozen=True)
class CollectorContext:
    """What a collector may look at, and the folder `raw` for its raw files, whose names begin with `watch.`."""

    nodes: Mapping[str, ObservedNode]
    """The nodes on this host: all nodes of a lab, or a part of them if the lab is on several hosts."""

    source: str
    target: str
    raw: Path

    middle: ObservedNode | None = None
    """The node that the links run through; None if it is on another host."""

    card: str = "none"
    """`offloads` if the nodes' network cards split super-packets, else `none` (see `Profile.card`).

    With `offloads`, an interface counts each sent super-packet as one packet.
    """

    links: LinkCounters | None = None
    """Counters of the links; None on a host of an inventory, where the command reads them itself."""

    further_ways: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """For each link after the path's first one, by its sender and receiver: whose packets cross it in that direction.

    A value lists `source` or `target`, or both: the ends that sent these packets.
    """

    begun: float = 0.0
    """When the VPN was started, in seconds of the nodes' CLOCK_MONOTONIC."""

    clock: float = 0.0
    """By how many seconds the nodes' CLOCK_MONOTONIC is ahead of this process's."""

    @property
    def ends(self) -> dict[str, str]:
        """The traffic's ends that are on this host, as names of nodes, by `source` or `target`.

        The name of a metric that is about an end has one of these two words at its end.
        """
        both = {"source": self.source, "target": self.target}
        return {end: node for end, node in both.items() if node in self.nodes}

    @cached_property
    def daemons(self) -> Mapping[str, tuple[int, ...]]:
        """The process IDs of the VPN on each node, children included, in the /proc of this host.

        At the first access, all processes of a node but its agent are taken for the VPN's. So access it first while the
        mesh is idle.
        """
        return {name: self.processes(name) for name in self.nodes}

    def processes(self, node: str) -> tuple[int, ...]:
        """Return the process IDs, in this host's /proc, of a node's processes but its agent; () if the node is gone."""
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
        """Return the text of a file in the folder /proc/PID of a node's agent; OSError if it is missing.

        `path`: the file's path below that folder; `net/dev` has the node's own interfaces.
        """
        return Path(f"/proc/{self.nodes[node].agent}", path).read_text()

    def now(self) -> float:
        """Return the time on the nodes' CLOCK_MONOTONIC, in seconds."""
        return time.monotonic() + self.clock


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collector saw in one trial.

    `samples`: the metrics' values. Their `time` is in seconds from `begin`; None: the value of the whole traffic.
    `notes`: why a metric is absent, by the metric's name.
    `cpu`: CPU seconds of programs that the collector started; the caller measures the collector's own.
    `limits`: figures on what held the traffic back, by the names in the module `limits`; arms are not compared by them.
    `sums`: by name, values that are added up over all hosts of the lab, and of which `conclude` makes metrics.
    `of_each_host`: values for `conclude` that are not added up: by name, one value from each host that has it.
    """

    samples: tuple[Sample, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    cpu: float = 0.0
    limits: Mapping[str, float] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    of_each_host: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def joined(self, other: Collected) -> Collected:
        """Return what was seen on two hosts together; each of them has other nodes."""
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
        """Begin to collect; called when the traffic's client is about to start."""

    async def sample(self) -> None:
        """Take a look while the traffic runs; called every `Collector.every` seconds."""

    async def end(self) -> Collected:
        """Return what was seen; called when the traffic is over."""


class Turn(IntEnum):
    """The order in which collectors begin; they end in the reverse order.

    Many collectors divide by the time between their begin and end, so nothing slow may happen in that time.
    """

    PERF = 0
    """For collectors that take up to seconds to begin and to end."""

    SOCKETS = 1
    """For collectors whose figures do not depend on time, and whose packet sockets take tens of ms to close."""

    TIMED_SOCKETS = 2
    """For collectors with packet sockets that divide by time: they end before the others close their sockets."""

    QUICK = 3
    """For collectors that take a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Collector:
    """A kind of measurement that can be made during a trial."""

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
    """True if it is used by studies that name no collectors."""

    looks_at: Literal["all", "ends", "source", "machine"] = "ends"
    """What it measures: all nodes, the two ends, only the sender (`source`), or the machine as a whole.

    If the nodes are on several hosts, it runs on each host that has such a node. If it measures the machine, it then
    runs on no host.
    """

    turn: Turn = Turn.QUICK
    """Its place in the order in which a trial's collectors begin."""

    conclude: Callable[[Collected], Collected] | None = None
    """Makes more samples and notes from what was seen on all hosts, for metrics that need counters of several nodes.

    None if the collector has no such metrics.
    """


def both(
    name: str, unit: str, title: str, *, compare: str = "ratio", better: str = "lower", feels: Feels = "counts"
) -> tuple[Metric, ...]:
    """Return two metrics: for the sender, called `name` with `_source` after it, and for the receiver, with `_target`.

    `title` gets `, sender` or `, receiver` after it. The other parameters are fields of both `Metric`s.
    """
    words = {"source": "sender", "target": "receiver"}
    return tuple(
        Metric(f"{name}_{end}", unit, f"{title}, {word}", better=better, compare=compare, feels=feels)  # type: ignore[arg-type]
        for end, word in words.items()
    )


class Stopwatch:
    """Counts the seconds since it was made; they are the times of series."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self) -> float:
        """Return the seconds since it was made."""
        return time.monotonic() - self._start
