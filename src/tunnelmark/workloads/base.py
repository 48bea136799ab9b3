"""What a workload is: the programs it starts on the nodes, and a reader of their output.

Like a VPN driver, a workload starts nothing itself: `traffic` says what to start, `read` turns the
kept output into a `Reading`. It declares its metrics, so that statistics, tables and charts need no
edit when a workload is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path, PurePosixPath
from typing import Generic, Literal

from tunnelmark.host.programs import Requirement
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options, OptionsT
from tunnelmark.model.steps import Command, CommandSucceeds, Condition, CopyFile, File

FOLDER = PurePosixPath("/run/workload")

EVENTS = "events"
"""The name under which `read` finds what was done to the deployment during the trial, one JSON object a line."""


ANSWERED = "answered"
"""The `kind` of a line among them that says when a `node` carried traffic again after all nodes were rebooted: no event."""

PATH_LOOKS = "path-looks"
"""The name under which `read` finds which way the traffic went when (see `run.collectors.traffic_path`), where that was watched."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """From which node to which node a workload runs, over which inner addresses.

    `socket_buffer` is the largest socket buffer in bytes that the host lets a program ask for. `nodes` are the inner
    addresses of all nodes in the topology's order, `interfaces` their overlay interfaces. `folder` is a place on every
    node for the workload's own files, another on each. `assets` are the folders of the workload's assets by name. `relay` is
    the node on which a VPN's relay is, if it has one.
    """

    source: str
    target: str
    source_address: IPv4Address | IPv6Address
    target_address: IPv4Address | IPv6Address
    socket_buffer: int = 212992  # Linux's own default of net.core.rmem_max, in bytes
    nodes: Mapping[str, IPv4Address | IPv6Address] = field(default_factory=dict)
    interfaces: Mapping[str, str] = field(default_factory=dict)
    assets: Mapping[str, Path] = field(default_factory=dict)
    folder: PurePosixPath = FOLDER
    relay: str = ""

    @classmethod
    def between(cls, source: str, target: str) -> Endpoints:
        """Endpoints without a path yet, to ask a workload what it would do and how long."""
        nothing = IPv4Address(0)
        return cls(source, target, nothing, nothing, nodes={source: nothing, target: nothing}, assets=_Anywhere())


def check_warmup(warmup: float, duration: float) -> None:
    """ValueError if a warm-up leaves less than half of the duration to measure; for the validators of options."""
    if warmup > duration / 2:
        raise ValueError("should have a warmup of at most half its duration")


class _Anywhere(Mapping[str, Path]):
    """A folder for every asset that might be asked for, where none has been made yet."""

    def __getitem__(self, name: str) -> Path:
        return Path("/nonexistent", name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is started on a node."""

    name: str
    """Its name: `read` finds its output under it."""

    node: str
    """The node that it runs on."""

    argv: tuple[str, ...]
    """The command and its arguments."""

    ready: Condition | CommandSucceeds | None = None
    """What must hold before the next program is started, such as a port that listens; `LogMatch` reads its output."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to those of the node."""

    long_running: bool = False
    """True if it does not end by itself: it gets SIGTERM when the client has ended."""

    grace: float = 0.0
    """Seconds that a long-running program has for its own end before it gets SIGTERM: it serves one client, which may not have come."""

    ready_timeout: float = 10.0
    """Seconds that it may take to become ready, and again to end."""


EventKind = Literal[
    "restart",
    "restart-fresh",
    "restart-control",
    "stop",
    "start",
    "start-fresh",
    "stop-control",
    "start-control",
    "power-off",
    "power-on",
    "link-down",
    "link-up",
    "partition",
    "partition-heal",
    "udp-cut",
    "udp-heal",
    "udp-blocked",
    "udp-open",
    "nat-rebinding",
    "change-address",
    "restore-address",
    "count-holdings",
]
ENDINGS: frozenset[EventKind] = frozenset(
    {
        "start",
        "start-fresh",
        "start-control",
        "power-on",
        "link-up",
        "partition-heal",
        "udp-heal",
        "udp-open",
        "restore-address",
    }
)
"""What ends an event that has begun on the same node. It comes as late as that did, so that an outage has the length that was asked."""
EVERY_NODE = "*"
"""The node of an event that happens to all nodes at once (`power-off`, `power-on`); no node has that name."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that is done to the deployment while the client runs, `at` seconds after its start (see `run.events`).

    `restart`: the daemons of the node are killed and started again, with what they keep; `restart-fresh`: without;
    `restart-control`: those daemons of the VPN that are its control service; `stop...` and `start...`: the two halves of
    each. `power-off`, `power-on`: a reboot of the node. `link-down`, `link-up`: the node's first underlay interface.
    `partition`: packets between the node and all others vanish; `udp-cut`: UDP between the node and all but the relay does;
    `udp-blocked`: UDP to and from the node does; `...-heal`, `udp-open`: they pass again. `nat-rebinding`: routers that translate the node's address forget their mappings.
    `change-address`: that interface has another address of the link's network; `restore-address`: its own again.
    `count-holdings`: nothing is done, but what the VPN's programs hold on every node is counted; its node is the empty name.
    """

    at: float
    kind: EventKind
    node: str


@dataclass(frozen=True, slots=True)
class Asset:
    """Something that takes long to make and is the same for every trial: a clip, a set of files, certificates.

    It is made once on a machine, in a folder of its own in the user's cache: `files` are written there by name, then
    `commands` run there one after the other, without a network, and `programs` (from Debian's `packages`) are what they
    need. Trials must only read it.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 300.0  # seconds that each command may take


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a workload starts, and for how long it measures."""

    servers: tuple[Program, ...]
    """Started one after the other, before the client; a load may be among them, which then runs when the client starts."""

    client: Program
    """Drives the measurement: the trial is over when it has ended, and the servers after it."""

    window: float
    """Seconds that a good run measures."""

    warmup: float
    """Seconds before the window that are left out."""

    timeout: float
    """Seconds within which the client must end."""

    files: tuple[File, ...] = ()
    """Files that are written before anything is started."""

    setup: tuple[Command | CopyFile, ...] = ()
    """Commands that are carried out before the first server is started."""

    events: tuple[Event, ...] = ()
    """What is done to the deployment while the client runs."""

    extra_clients: tuple[Program, ...] = ()
    """Further clients, which start at the same moment as the client."""

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes on which a program of it runs."""
        return frozenset(program.node for program in (*self.servers, self.client, *self.extra_clients))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a workload's output says: samples, seconds inside the measuring window and in warm-up.

    `congestion_control` lists the TCP congestion control that the sockets themselves reported. `starved` says, in words,
    that the sender did not keep to what was asked of it: the run voids the trial if something outside of its nodes explains
    that, and else it is what the VPN did to its sender, a result.
    """

    samples: tuple[Sample, ...]
    window: float
    warmup: float
    congestion_control: tuple[str, ...] = ()
    starved: str = ""


@dataclass(frozen=True, slots=True)
class Workload(Generic[OptionsT]):
    """A kind of traffic: what it starts, and how its output is read."""

    name: str
    """Its name on the command line and in studies, such as `tcp`."""

    title: str
    """One line for people."""

    metrics: tuple[Metric, ...]
    """Its metrics with default options; a metric may be a series only."""

    traffic: Callable[[Endpoints, OptionsT], Traffic]
    """Says what to start, for two ends and these options; pure."""

    read: Callable[[dict[str, str], OptionsT], Reading]
    """Reads the output of each program, by name (that of events under EVENTS, paths under PATH_LOOKS).

    It raises OutputUnreadable, or WorkloadFailed where the output itself reports an error.
    """

    programs: tuple[str, ...]
    """Programs that must be installed."""

    packages: tuple[str, ...]
    """Debian packages that bring them."""

    options: type[OptionsT] = Options  # type: ignore[assignment] # a workload that names none has none
    """The model of its options."""

    metrics_of: Callable[[OptionsT], tuple[Metric, ...]] | None = None
    """Its metrics with these options, where options decide which there are."""

    assets: Callable[[OptionsT], tuple[Asset, ...]] | None = None
    """What must be made once on a machine before it can run with these options."""

    recipe: str = ""
    """The recipe in `data/recipes/` that brings its programs, where no Debian package does."""

    watch: tuple[str, ...] = ()
    """Collectors (`run.collectors`) that each trial must have; a metric that both declare is the collector's to report."""

    at_once: bool = False
    """True if it begins as soon as the nodes answer each other, while the VPN still looks for the path that it will keep."""

    offered: Callable[[OptionsT], float | None] = lambda _: None
    """The load in bit/s that it offers with these options; None if it takes all that it gets."""

    searches: Callable[[OptionsT], bool] = lambda _: False
    """Whether it searches for the highest rate that the path carries, whatever is lost on the way."""

    def metrics_with(self, options: OptionsT) -> tuple[Metric, ...]:
        """The metrics that a reading with these options has."""
        return self.metrics if self.metrics_of is None else self.metrics_of(options)

    @property
    def part(self) -> Requirement:
        """What must be installed for it."""
        return Requirement(self.name, self.programs, self.packages, recipe=self.recipe)

    def assets_with(self, options: OptionsT) -> tuple[Asset, ...]:
        """What must have been made before a trial with these options."""
        return () if self.assets is None else self.assets(options)
