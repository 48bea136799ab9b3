"""What a VPN driver is: a pure function from a `Mesh` to a `Deployment`, and facts about the VPN.

A driver starts nothing. It says which files stand on which node, which commands set them up, which
daemons are kept running and how the overlay is reached; the run stage carries that out on whatever
backend made the nodes. Wherever a step must wait for another, it waits for a `Condition`, never for
a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

OVERLAY = "10.60.0.0/24"  # the overlay's IPv4 prefix wherever a VPN lets us choose; no underlay uses it


@dataclass(frozen=True, slots=True)
class Host:
    """A node as a driver sees it: its name, underlay address, and a folder of its own.

    `dir` is an empty folder on the node that nobody else uses and that ends with the node.
    `overlay` is the overlay address the driver should give it where the VPN lets us choose.
    """

    name: str
    underlay: IPv4Address
    dir: PurePosixPath
    overlay: IPv4Interface


@dataclass(frozen=True, slots=True)
class Mesh:
    """The nodes that a VPN is to join, in order; the first is the hub where a VPN needs one."""

    hosts: tuple[Host, ...]
    desk: PurePosixPath  # the operator's desk: a folder without a network, for CAs and certificates

    @property
    def hub(self) -> Host:
        return self.hosts[0]

    @property
    def spokes(self) -> tuple[Host, ...]:
        return self.hosts[1:]

    def others(self, host: Host) -> tuple[Host, ...]:
        return tuple(other for other in self.hosts if other != host)


@dataclass(frozen=True, slots=True)
class UdpPort:
    """True as soon as a UDP socket is bound to `port` on the node."""

    port: int


@dataclass(frozen=True, slots=True)
class TcpPort:
    """True as soon as a TCP socket listens on `port` on the node."""

    port: int


@dataclass(frozen=True, slots=True)
class Interface:
    """True as soon as the node has a network interface of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """True as soon as the Unix socket at `path` accepts a connection (its file alone proves nothing)."""

    path: PurePosixPath


Condition = UdpPort | TcpPort | Interface | UnixSocket


@dataclass(frozen=True, slots=True)
class File:
    """A file on a node, written with its folders before any step; private (0600) unless the driver says otherwise.

    Its content stands here, or is read from the operator's desk (`from_desk`, a path relative to it).
    """

    node: str
    path: PurePosixPath
    content: str = field(default="", repr=False)
    from_desk: str = ""
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Command:
    """A command that must end with exit code 0 before the next phase begins."""

    node: str
    argv: tuple[str, ...]
    stdin: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process kept for the life of the deployment; it runs in the foreground and logs to stdout/stderr.

    `ready` is what the following phases may rely on; it is no proof that the VPN works.
    """

    node: str
    name: str
    argv: tuple[str, ...]
    ready: Condition | None = None
    env: Mapping[str, str] = field(default_factory=dict)


Step = Command | Daemon


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the overlay is on a node: its interface, and its address (None: read it from the interface)."""

    interface: str
    address: IPv4Address | IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """How a daemon shows that the path it uses now is the one it will keep.

    Its log is looked at until `pattern` (a regular expression, MULTILINE) is found `count` times in
    what it says after `signal` was sent to it; the signal is sent again until then.
    """

    node: str
    daemon: str
    signal: int
    pattern: str
    count: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """A VPN on a mesh as plain data.

    `desk` commands run first, in order, on the operator's desk; then all `files` are written; then the
    `phases` run one after the other, the steps within a phase at the same time. The deployment is ready
    when a ping over the overlay is answered in every direction, and settled when all of `settled` hold:
    a VPN that begins on another path than the one it keeps (a relay, TCP until a path MTU is known) must
    not be measured before.
    """

    overlays: Mapping[str, Overlay]  # by node name
    desk: tuple[tuple[str, ...], ...] = ()
    files: tuple[File, ...] = ()
    phases: tuple[tuple[Step, ...], ...] = ()
    settled: tuple[Settled, ...] = ()


class Options(BaseModel):
    """Base of a driver's or workload's options: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class Fact:
    """One cell of the feature matrix: what is known, where it is said or how it was seen, and when."""

    value: str
    source: str
    date: str  # ISO 8601


@dataclass(frozen=True, slots=True)
class Features:
    """A VPN's row of the feature matrix (criteria of seeds 000 and 001 that a slice of the lab can show)."""

    transport: Fact  # what carries the outer packets: UDP, TCP, QUIC ...
    encryption: Fact  # data-channel cipher as shipped
    handshake: Fact
    routing: Fact  # mesh, hub and spoke, point to point
    inner: Fact  # what the overlay carries: IPv4, IPv6, Ethernet
    mtu: Fact  # default MTU of the overlay interface
    datapath: Fact  # kernel or user space, threads, offloads used
    licence: Fact


@dataclass(frozen=True, slots=True)
class Driver:
    """A VPN that the lab can deploy.

    `packages` are Debian packages that bring its programs; `programs` must be on PATH; `version` is
    the command that prints the version (its exit code does not count) and `version_pattern` a
    regular expression whose first group is it. `deploy` is pure but for the randomness of fresh keys.
    `settling` is how many seconds it usually takes to settle: a run begins that much earlier.
    `encrypted` False means that the contract suite must find a marker on the wire.
    """

    name: str
    title: str
    homepage: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    version: tuple[str, ...]
    version_pattern: str
    deploy: Callable[[Mesh, Options], Deployment]
    features: Features
    options: type[Options] = Options
    settling: float = 0.0
    encrypted: bool = True
