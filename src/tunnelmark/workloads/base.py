"""What a workload is: the programs it starts on two nodes, and a reader of their output.

Like a VPN driver, a workload starts nothing itself: `traffic` says what to start, `read` turns the
kept output into a `Reading`. It declares its metrics, so that statistics, tables and charts need no
edit when a workload is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

from tunnelmark.vpns.base import Condition, Options


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a workload yields.

    `better` says which way is good; `compare` whether two arms are compared by their ratio or by
    their difference (for metrics that are often zero); `primary` metrics are ranked and judged,
    the others are shown as explanation.
    """

    name: str
    unit: str
    title: str
    better: Literal["higher", "lower"]
    compare: Literal["ratio", "difference"] = "ratio"
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Endpoints:
    """From which node to which node a workload runs, over which inner addresses.

    `socket_buffer` is the largest socket buffer in bytes that the host lets a program ask for.
    """

    source: str
    target: str
    source_address: IPv4Address | IPv6Address
    target_address: IPv4Address | IPv6Address
    socket_buffer: int = 212992  # Linux's own default of net.core.rmem_max, in bytes

    @classmethod
    def between(cls, source: str, target: str) -> Endpoints:
        """Endpoints without a path yet, to ask a workload what it would do and how long."""
        return cls(source, target, IPv4Address(0), IPv4Address(0))


@dataclass(frozen=True, slots=True)
class Program:
    """A program on a node; `ready` must hold before programs that come later are started."""

    name: str
    node: str
    argv: tuple[str, ...]
    ready: Condition | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a workload starts: servers, then the client that drives the measurement.

    The trial is over when the client has ended and then each server has, all within `timeout`
    seconds. `window` and `warmup` are the seconds that a good run measures and leaves out; the plan
    estimates time with them.
    """

    servers: tuple[Program, ...]
    client: Program
    window: float
    warmup: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric; `time` is seconds since the window began for a series, None for the whole."""

    metric: str
    value: float
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a workload's output says: samples, seconds inside the measuring window and in warm-up.

    `congestion_control` lists the TCP congestion control that the sockets themselves reported.
    """

    samples: tuple[Sample, ...]
    window: float
    warmup: float
    congestion_control: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of traffic: its options, its metrics, what it starts and how its output is read.

    `read` gets the options and the output of each program by name, and raises `OutputUnreadable` or
    `WorkloadFailed` (when the output itself reports an error). A metric may be a series only. Where the
    options decide the metrics, `metrics_of` says which there are; `metrics` are those of the defaults.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    traffic: Callable[[Endpoints, Options], Traffic]
    read: Callable[[dict[str, str], Options], Reading]
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    options: type[Options] = field(default=Options)
    metrics_of: Callable[[Options], tuple[Metric, ...]] | None = None

    def metrics_with(self, options: Options) -> tuple[Metric, ...]:
        """The metrics that a reading with these options has."""
        return self.metrics if self.metrics_of is None else self.metrics_of(options)

    def metric(self, name: str) -> Metric:
        """The metric of that name among the defaults; KeyError if the workload does not declare it."""
        return {metric.name: metric for metric in self.metrics}[name]
