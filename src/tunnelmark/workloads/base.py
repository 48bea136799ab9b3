"""Defines what a workload is: the programs that run on the nodes, and a reader of their output.

Like a VPN driver, a workload starts nothing itself. Its function `traffic` returns which programs the run must
start. Its function `read` turns the stored output of these programs into a `Reading`. A workload declares its
metrics, so statistics, tables and charts need no edit when a workload is added.
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
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, File, ReadyWhen

FOLDER = PurePosixPath("/run/workload")

EVENTS = "events"
"""The key of `read`'s outputs under which it finds the events of the trial: one JSON object on each line."""


ANSWERED = "answered"
"""The `kind` of a line among the events that is not an event.

It says when a `node` carried traffic again after all nodes were rebooted.
"""

PATH_LOOKS = "path-looks"
"""The key of `read`'s outputs under which it finds the path of the traffic over time, if that was watched.

`run.collectors.traffic_path` writes it.
"""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The two nodes between which a workload runs, with their overlay addresses; traffic flows from source to target.

    `socket_buffer`: the largest socket buffer, in bytes, that the host lets a program ask for.
    `nodes`: the overlay address of every node by its name, in the topology's order.
    `interfaces`: the overlay interface of every node by its name.
    `assets`: the folder of each asset of the workload, by the asset's name.
    `folder`: a folder for the workload's own files. It has the same path on every node; nodes do not share its content.
    `relay`: the node on which the VPN's relay runs; "" if there is none.
    `bare`: no VPN is in between, so what a program sends goes to the network card as it is.
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
    bare: bool = False

    @classmethod
    def between(cls, source: str, target: str) -> Endpoints:
        """Return endpoints with placeholder addresses, to ask a workload what it would start, and for how long."""
        nothing = IPv4Address(0)
        return cls(source, target, nothing, nothing, nodes={source: nothing, target: nothing}, assets=_Anywhere())


def check_warmup(warmup: float, duration: float) -> None:
    """Raise ValueError if the warm-up is longer than half of the duration (in seconds); for validators of options."""
    if warmup > duration / 2:
        raise ValueError("should have a warmup of at most half its duration")


class _Anywhere(Mapping[str, Path]):
    """Gives a placeholder folder for any asset name, for use before assets are made."""

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
    """The program's name: the key under which `read` finds its output."""

    node: str
    """The node that it runs on."""

    argv: tuple[str, ...]
    """The command and its arguments."""

    ready: ReadyWhen | CommandSucceeds | None = None
    """The condition that must hold before the next program starts, such as a port that listens.

    `LogMatch` searches the program's own output. None: the next program starts at once.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables in addition to those of the node."""

    long_running: bool = False
    """True if the program does not end by itself. It then gets SIGTERM when the client has ended."""

    grace: float = 0.0
    """Seconds that a long-running program gets to end by itself before it gets SIGTERM.

    It is for a server that ends after one client and still prints its report then. It may wait long for a client that
    never comes, so it gets no more time than that.
    """

    ready_timeout: float = 10.0
    """The longest time in seconds that the program may take to become ready; it may take the same time again to end."""


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
"""Events that end an earlier event on the same node.

If the earlier event was late, its ending is delayed by the same time. So an outage has the planned length.
"""
EVERY_NODE = "*"
"""The node of an event that happens to all nodes at once (`power-off`, `power-on`); no node has that name."""


@dataclass(frozen=True, slots=True)
class Event:
    """One action on the deployment while the client runs, `at` seconds after the client's start (see `run.events`).

    `restart`: the VPN's daemons on the node are killed and started again, and find the files that they wrote.
    `restart-fresh`: the same, but the files that they wrote are gone.
    `restart-control`: the same as `restart`, for the daemons of the VPN's control service.
    `stop...` and `start...`: the two halves of each restart.
    `power-off`, `power-on`: the two halves of a reboot of the node.
    `link-down`, `link-up`: the node's first underlay interface goes down, or up again.
    `partition`: all packets between the node and all others are dropped; `partition-heal` ends it.
    `udp-cut`: UDP packets between the node and all others but the relay are dropped; `udp-heal` ends it.
    `udp-blocked`: all UDP packets to and from the node are dropped; `udp-open` ends it.
    `nat-rebinding`: routers that translate the node's address forget their mappings.
    `change-address`: the node's first underlay interface gets another address of its network.
    `restore-address`: the interface gets its own address back.
    `count-holdings`: counts what the VPN's programs hold on every node and changes nothing; its `node` is "".
    """

    at: float
    kind: EventKind
    node: str


@dataclass(frozen=True, slots=True)
class Asset:
    """Files that take long to make and are the same for every trial: a video clip, a set of files, certificates.

    An asset is made once on each machine, in its own folder in the user's cache. First its `files` (contents by name)
    are written there. Then its `commands` run there one after the other, without a network. The commands need the
    `programs`, which come from the Debian `packages`. Trials may only read the asset.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 300.0  # seconds that each command may take


@dataclass(frozen=True, slots=True)
class Traffic:
    """The programs that a workload starts, the events during the trial, and the times in seconds."""

    servers: tuple[Program, ...]
    """Programs that are started one after the other, before the client. A background load may be one of them."""

    client: Program
    """The program that drives the measurement: the trial is over when the client and then the servers have ended."""

    window: float
    """Seconds that are measured if all goes well."""

    warmup: float
    """Seconds of traffic before the window, which are not measured."""

    timeout: float
    """Seconds within which the client must end."""

    files: tuple[File, ...] = ()
    """Files that are written before anything is started."""

    setup: tuple[Command | CopyFile, ...] = ()
    """Commands that are carried out before the first server is started."""

    events: tuple[Event, ...] = ()
    """Events, such as restarts or link cuts, that happen while the client runs."""

    extra_clients: tuple[Program, ...] = ()
    """Further clients, which start at the same moment as the client."""

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes on which at least one of the programs runs."""
        return frozenset(program.node for program in (*self.servers, self.client, *self.extra_clients))


@dataclass(frozen=True, slots=True)
class Reading:
    """The samples that were read from a workload's output, and how many seconds `window` and `warmup` really lasted.

    `congestion_control`: the names of the TCP congestion controls that the sockets reported.
    `starved`: a sentence if the sender did not send as it was asked to, else "". The run voids the trial if other work
    on the machine explains that. Otherwise the VPN slowed its sender down, and the trial counts as a result.
    """

    samples: tuple[Sample, ...]
    window: float
    warmup: float
    congestion_control: tuple[str, ...] = ()
    starved: str = ""


@dataclass(frozen=True, slots=True)
class Workload(Generic[OptionsT]):
    """A kind of traffic: its programs, its metrics, and the function that reads its output."""

    name: str
    """The workload's name on the command line and in studies, such as `tcp`."""

    title: str
    """A short title for tables and reports."""

    metrics: tuple[Metric, ...]
    """The metrics with default options. A metric may have only a series of values over time, without a single value."""

    traffic: Callable[[Endpoints, OptionsT], Traffic]
    """Returns the programs to start for the given endpoints and options; a pure function."""

    read: Callable[[dict[str, str], OptionsT], Reading]
    """Turns the programs' outputs, by program name, into a `Reading`.

    The outputs also hold the events (EVENTS) and the path over time (PATH_LOOKS), where there are any. It raises
    OutputUnreadable if it cannot parse an output, and WorkloadFailed if the output itself reports an error.
    """

    programs: tuple[str, ...]
    """Programs that must be installed."""

    packages: tuple[str, ...]
    """Debian packages that contain these programs."""

    options: type[OptionsT] = Options  # type: ignore[assignment] # a workload that names none has none
    """The class of the workload's options."""

    metrics_of: Callable[[OptionsT], tuple[Metric, ...]] | None = None
    """Returns the metrics with the given options. None if they do not depend on the options."""

    assets: Callable[[OptionsT], tuple[Asset, ...]] | None = None
    """Returns the assets that must be made before a trial with the given options. None if there are none."""

    serves: str = ""
    """What people do whose traffic is like this one's, such as `downloads and backups`; "" if there is nothing such."""

    recipe: str = ""
    """The recipe in `data/recipes/` that installs the programs, if no Debian package contains them; else ""."""

    watch: tuple[str, ...] = ()
    """Collectors (`run.collectors`) that every trial needs. If both declare a metric, it is the collector's."""

    at_once: bool = False
    """True if the traffic begins once the nodes answer each other, without waiting for the VPN to converge."""

    one_machine: str = ""
    """Why all nodes must be on one machine, as a clause such as `it counts processes`; "" if they need not be."""

    offered: Callable[[OptionsT], float | None] = lambda _: None
    """Returns the offered load in bit/s with the given options; None if the path alone limits the rate."""

    searches: Callable[[OptionsT], bool] = lambda _: False
    """Returns whether the workload searches for the highest rate that the path carries, whatever is lost meanwhile."""

    def metrics_with(self, options: OptionsT) -> tuple[Metric, ...]:
        """Return the metrics reported with these options: `metrics`, unless `metrics_of` chooses them."""
        return self.metrics if self.metrics_of is None else self.metrics_of(options)

    @property
    def part(self) -> Requirement:
        """The programs, packages and recipe that must be installed for the workload."""
        return Requirement(self.name, self.programs, self.packages, recipe=self.recipe)

    def assets_with(self, options: OptionsT) -> tuple[Asset, ...]:
        """Return the assets that must be made before a trial with these options."""
        return () if self.assets is None else self.assets(options)
