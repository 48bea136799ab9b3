"""What a VPN driver is: a pure function from a `Mesh` to a `Deployment`, and facts about the VPN.

A driver starts nothing. It says which files stand on which node, which commands set them up, which
daemons are kept running and how the overlay is reached; the run stage carries that out on whatever
backend made the nodes. Wherever a step must wait for another, it waits for a `Condition`, never for
a time. Facts about a VPN have a module of their own, `features`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address
from pathlib import PurePosixPath

from pydantic import BaseModel, ConfigDict

from tunnelmark.host.programs import Requirement
from tunnelmark.vpns.features import Fact, Features

__all__ = ["Fact", "Features"]  # a driver finds all it needs here

LONGEST_INTERFACE = 15  # bytes of an interface's name: IFNAMSIZ in <linux/if.h> less the final zero
OVERLAY = "10.60.0.0/24"  # the overlay's IPv4 prefix wherever a VPN lets us choose; no underlay uses it


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A node as a driver sees it: its name, underlay address, and a folder of its own.

    `dir` is an empty folder on the node that nobody else uses and that ends with the node.
    `overlay` is the overlay address the driver should give it where the VPN lets us choose.
    """

    name: str
    underlay: IPv4Address | IPv6Address
    dir: PurePosixPath
    overlay: IPv4Interface

    def endpoint(self, port: int) -> str:
        """Its underlay address with a port, as programs read it: `10.50.0.1:655` or `[fd50::1]:655`."""
        return f"[{self.underlay}]:{port}" if self.underlay.version == 6 else f"{self.underlay}:{port}"


@dataclass(frozen=True, slots=True)
class Mesh:
    """The nodes that a VPN is to join, in order; the first is the hub where a VPN needs one."""

    hosts: tuple[MeshNode, ...]
    desk: PurePosixPath  # the operator's desk: a folder without a network, for CAs and certificates

    @property
    def hub(self) -> MeshNode:
        return self.hosts[0]

    @property
    def spokes(self) -> tuple[MeshNode, ...]:
        return self.hosts[1:]

    @property
    def relay(self) -> MeshNode:
        """Where a relay stands that serves the others: between the first and the last node, if there is one."""
        return self.hosts[1] if len(self.hosts) > 2 else self.hub

    def others(self, host: MeshNode) -> tuple[MeshNode, ...]:
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


@dataclass(frozen=True, slots=True)
class LogMatch:
    """True as soon as the daemon's log holds a match of `pattern` (a regular expression, MULTILINE); of its own daemon only."""

    pattern: str


Condition = UdpPort | TcpPort | Interface | UnixSocket | LogMatch


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
    timeout: float = 20.0  # seconds that it may take


@dataclass(frozen=True, slots=True)
class CopyFile:
    """A text file that one node's steps made is handed to another: an invitation, a key, an address.

    It waits for the file. Whatever the operator would carry from machine to machine is carried like this.
    """

    source: str
    path: PurePosixPath
    node: str  # that gets it
    to: PurePosixPath
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process kept for the life of the deployment; it runs in the foreground and logs to stdout/stderr.

    `ready` is what the following phases may rely on; it is no proof that the VPN works. `control` says that nodes meet
    through it but that it carries none of their data: a control server, a supernode, a controller.
    """

    node: str
    name: str
    argv: tuple[str, ...]
    ready: Condition | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    control: bool = False


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the overlay is on a node: its interface, and its address (None: read it from the interface)."""

    interface: str
    address: IPv4Address | IPv6Address | None = None


def interface_fault(name: str) -> str:
    """What is wrong with the name of a network interface, in words; empty if Linux takes it (dev_valid_name())."""
    if not name or name in (".", ".."):
        return "is none"
    if len(name.encode()) > LONGEST_INTERFACE:
        return f"has {len(name.encode())} bytes, and Linux takes {LONGEST_INTERFACE}"
    if any(letter in "/:" or letter.isspace() for letter in name):
        return "holds a slash, a colon or a space"
    return ""


@dataclass(frozen=True, slots=True)
class Converged:
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
class CommandSucceeds:
    """A command of the VPN's own that ends with 0 once something is true: it is asked again and again until then.

    As `settled` it says that the path is the one that will be kept; as a step it holds the next phase up until then.
    It must only look.
    """

    node: str
    argv: tuple[str, ...]


Step = Command | Daemon | CopyFile | CommandSucceeds


@dataclass(frozen=True, slots=True)
class Deployment:
    """A VPN on a mesh as plain data.

    `desk` commands run first, in order, on the operator's desk; then all `files` are written; then the
    `phases` run one after the other, the steps within a phase at the same time. The deployment is ready
    when a ping over the overlay is answered in every direction, and settled when all of `settled` hold:
    a VPN that begins on another path than the one it keeps (a relay, TCP until a path MTU is known) must
    not be measured before. `encrypted` False means that the contract suite must find a marker on the wire.
    `relayed` True means that whatever two nodes other than `mesh.relay` send each other goes through it, which the
    contract suite then proves on the wire.
    """

    overlays: Mapping[str, Overlay]  # by node name
    desk: tuple[tuple[str, ...], ...] = ()
    files: tuple[File, ...] = ()
    phases: tuple[tuple[Step, ...], ...] = ()
    settled: tuple[Converged | CommandSucceeds, ...] = ()
    encrypted: bool = True
    relayed: bool = False


class Options(BaseModel):
    """Base of a driver's or workload's options: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class Build:
    """A VPN's programs in one version: which must be there, what brings them, and how they say their version.

    `packages` are Debian packages; `recipe` is the recipe in `data/recipes/` that installs them into a folder of
    its own, which then stands first on the PATH of every step. `version` is the command that prints the version
    (its exit code does not count) and `version_pattern` a regular expression whose first group is it.
    """

    programs: tuple[str, ...]
    version: tuple[str, ...]
    version_pattern: str
    packages: tuple[str, ...] = ()
    recipe: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """A VPN that the lab can deploy.

    `programs` to `recipe` are its usual `Build`. `builds` has further ones by the value of the option `build`.
    `variants` are sets of options worth a name of their own: they are arms beside the VPN itself, and the contract
    suite tests each. `deploy` is pure but for the randomness of fresh keys. `starting` and `settling` are
    how many seconds it usually takes to answer, where that is beyond a few, and then to settle: a run begins that
    much earlier.
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
    starting: float = 0.0
    settling: float = 0.0
    joining: float = 0.0  # seconds more for each node beyond three, where they are let in one after the other
    recovering: float = 0.0  # seconds that peers may ignore a node that crashed and came back, where beyond a few
    lost: str = ""  # the program's own fault by which a mesh may never find its restarted hub again, where it has one
    recipe: str = ""
    builds: Mapping[str, Build] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    ipv6: bool = False  # whether it can use an IPv6 underlay
    kernel: tuple[str, ...] = ()  # what the kernel must have, by the names of `host.kernel_features`

    def start_of(self, nodes: int) -> float:
        """`starting`, in seconds, for a mesh of so many nodes."""
        return self.starting + self.joining * max(nodes - 3, 0)

    def build(self, options: Options) -> Build:
        """The build that these options ask for."""
        usual = Build(self.programs, self.version, self.version_pattern, self.packages, self.recipe)
        return self.builds.get(_chosen(options), usual)

    def part(self, options: Options) -> Requirement:
        """What must be installed for it; a further build's own version is the only one that will do."""
        build, chosen = self.build(options), _chosen(options)
        named = chosen in self.builds
        return Requirement(
            f"{self.name} {chosen}" if named else self.name,
            build.programs,
            build.packages,
            build.version,
            build.version_pattern,
            recipe=build.recipe,
            strict=named,
            kernel=self.kernel,
        )


def _chosen(options: Options) -> str:
    """The value of the option `build`, where a VPN has one."""
    return str(getattr(options, "build", ""))
