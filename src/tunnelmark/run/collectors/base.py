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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from tunnelmark.lab.labs import Lab
from tunnelmark.model.metrics import Feels, Metric, Sample
from tunnelmark.run.deploy import RunningDeployment


@dataclass(frozen=True)
class CollectorContext:
    """What a collector may look at: the lab, the deployment on it, the two ends of the traffic, and where raw files go.

    Files that a collector leaves in `raw` begin with `watch.`. `further_ends` are nodes between which the workload has
    traffic of its own, too, as in a ring.
    """

    lab: Lab
    tunnel: RunningDeployment
    source: str
    target: str
    raw: Path
    further_ends: frozenset[str] = frozenset()

    @property
    def ends(self) -> dict[str, str]:
        """The nodes whose cost is reported, by the word that ends a metric's name: `source` and `target`."""
        return {"source": self.source, "target": self.target}

    @cached_property
    def daemons(self) -> Mapping[str, tuple[int, ...]]:
        """The VPN's processes on each node, children included, by the host's process numbers.

        Everything but the agent that runs when this is first asked: ask while the mesh is at rest.
        """
        return {name: self.processes(name) for name in self.lab.nodes}

    def processes(self, node: str) -> tuple[int, ...]:
        """Every process of a node but its agent, by the host's process numbers."""
        agent = self.lab.nodes[node].pid
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

    def group(self, node: str) -> Path | None:
        """The node's control group in the v2 hierarchy; None where there is no v2."""
        return self.lab.group(node)

    def proc(self, node: str, path: str) -> str:
        """A file below /proc as the node sees it itself, such as `net/dev`; OSError if it has none."""
        return Path(f"/proc/{self.lab.nodes[node].pid}", path).read_text()


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collector saw in one trial.

    A sample's `time` counts seconds from `begin`; None is for the whole of the traffic. `notes` say why a metric is absent, by
    the metric's name. `cpu` are CPU seconds of programs that it started; its own are measured by its caller. `limits` say
    what held the traffic back (see the module `limits`); arms are not compared by them.
    """

    samples: tuple[Sample, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    cpu: float = 0.0
    limits: Mapping[str, float] = field(default_factory=dict)


class Sampler(Protocol):
    """A collector at work in one trial."""

    async def begin(self) -> None:
        """The traffic's client is about to start."""

    async def sample(self) -> None:
        """Some of the traffic has passed."""

    async def end(self) -> Collected:
        """The traffic is over."""


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
