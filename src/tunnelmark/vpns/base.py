"""What a VPN driver is: a pure function from a `Mesh` to a `Deployment`.

A driver starts nothing. It says which files are on which node, which commands set them up, which
daemons are kept running and how the overlay is reached. The run stage carries that out, whichever
backend made the nodes. Wherever a step must wait for another, it waits for a `Condition`, never for
a time. What else is known of a VPN is in `data/matrix/NAME.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address
from pathlib import PurePosixPath
from typing import Generic

from tunnelmark.host.programs import Requirement
from tunnelmark.model.options import Options, OptionsT
from tunnelmark.model.steps import Command, CommandSucceeds, Condition, Daemon, File, Step

LONGEST_INTERFACE = 15  # bytes of an interface's name: IFNAMSIZ in <linux/if.h> less the final zero
OVERLAY = "10.60.0.0/24"  # the overlay's IPv4 prefix wherever a VPN lets us choose; no underlay uses it


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the overlay is on a node: its interface, and its address (None: read it from the interface)."""

    interface: str
    address: IPv4Address | IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A node as a driver sees it: its name, underlay address, and a folder of its own.

    `dir` is an empty folder on the node that no one else uses and that ends with the node.
    `overlay` is the overlay address the driver should give it where the VPN lets us choose. On a node with several tunnels each
    has another `instance`, from 0 on, and networks `behind` the node are reached through its tunnel (a cascade).
    """

    name: str
    underlay: IPv4Address | IPv6Address
    dir: PurePosixPath
    overlay: IPv4Interface
    instance: int = 0
    behind: tuple[IPv4Network, ...] = ()

    def interface(self, name: str) -> str:
        """The name of the interface of this instance: `wg0` is wg1 for the next."""
        return name.removesuffix("0") + str(self.instance) if self.instance else name

    def port(self, number: int) -> int:
        """The port of this instance: that number for the first, and one more for each further."""
        return number + self.instance

    def endpoint(self, port: int) -> str:
        """The node's underlay address with a port, as programs read it: `10.50.0.1:655` or `[fd50::1]:655`."""
        return f"[{self.underlay}]:{port}" if self.underlay.version == 6 else f"{self.underlay}:{port}"

    def path(self, name: str) -> str:
        """Where the file `name` of its folder is."""
        return str(self.dir / name)

    def file(self, name: str, content: str = "", *, from_staging: str = "", mode: int = 0o600) -> File:
        """A file in its folder, with that content or with that of a file of the staging folder."""
        return File(self.name, self.dir / name, content, from_staging, mode)

    def command(self, *argv: str, timeout: float = 20.0) -> Command:
        """A command that must end with 0, on this node."""
        return Command(self.name, argv, timeout=timeout)

    def succeeds(self, *argv: str) -> CommandSucceeds:
        """A command that is asked again and again, on this node, until it ends with 0."""
        return CommandSucceeds(self.name, argv)

    def daemon(
        self,
        name: str,
        *argv: str,
        ready: Condition | None = None,
        env: Mapping[str, str] | None = None,
        control: bool = False,
    ) -> Daemon:
        """A daemon on this node (see `Daemon`)."""
        return Daemon(self.name, name, argv, ready, env or {}, control)


@dataclass(frozen=True, slots=True)
class Mesh:
    """The nodes that a VPN is to join, in order; the first is the hub where a VPN needs one.

    `hub_relays`: a relay is on the hub, too, which is not an end of the traffic then. `mtu` in bytes that overlay interfaces must
    have, because the tunnel runs inside another; None: as shipped, or as the VPN's options say. `translated`: a node is behind a
    router that translates its address.
    """

    hosts: tuple[MeshNode, ...]
    staging: PurePosixPath  # the operator's staging folder: without a network, for CAs and certificates
    _: KW_ONLY
    hub_relays: bool = False
    mtu: int | None = None
    translated: bool = False

    @property
    def hub(self) -> MeshNode:
        return self.hosts[0]

    @property
    def spokes(self) -> tuple[MeshNode, ...]:
        return self.hosts[1:]

    @property
    def relay(self) -> MeshNode:
        """The node of a relay that serves the others: between the first and the last node, if there is one."""
        return self.hosts[1] if len(self.hosts) > 2 and not self.hub_relays else self.hub

    def overlays(self, interface: str, *, own_addresses: bool = False) -> dict[str, Overlay]:
        """The overlay at an interface of that name on each node, with the nodes' `overlay` addresses or the VPN's own choice."""
        return {
            host.name: Overlay(host.interface(interface), None if own_addresses else host.overlay.ip)
            for host in self.hosts
        }

    def others(self, host: MeshNode) -> tuple[MeshNode, ...]:
        return tuple(other for other in self.hosts if other != host)


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
class Deployment:
    """A VPN on a mesh, as plain data: what is written and started where, in which order."""

    overlays: Mapping[str, Overlay]
    """The overlay interface and address of each node, by node name."""

    staging: tuple[tuple[str, ...], ...] = ()
    """Commands that run first, one after the other, in the staging folder: a place without a network, for CAs and keys."""

    files: tuple[File, ...] = ()
    """Files that are written after the staging commands and before the first phase."""

    phases: tuple[tuple[Step, ...], ...] = ()
    """Steps by phase: phases run one after the other, the steps of a phase at the same time."""

    converged: tuple[Converged | CommandSucceeds, ...] = ()
    """What must hold before anything is measured, for a VPN that starts on another path than the one it keeps (a relay, TCP)."""

    encrypted: bool = True
    """False if the contract suite must find a marker, sent inside, on the link."""

    relayed: bool = False
    """True if all traffic between two nodes goes through `mesh.relay`; the contract suite checks that on the link."""

    arrives_from: Mapping[str, IPv4Address | IPv6Address] = field(default_factory=dict)
    """By node: the underlay address from which the other end's packets reach it, where that is not the other end's own (a cascade)."""

    recovery_time: float = 0.0
    """Seconds beyond `Driver.recovery_time` that nodes of this arm alone may need to find one that crashed and came back."""


@dataclass(frozen=True, slots=True)
class Build:
    """One version of a VPN's programs."""

    programs: tuple[str, ...]
    """Programs that must be installed, such as `("nebula", "nebula-cert")`."""

    version: tuple[str, ...]
    """The command that prints the version; its exit code is ignored."""

    version_pattern: str
    """A regular expression whose first group is the version."""

    packages: tuple[str, ...] = ()
    """Debian packages that bring the programs."""

    recipe: str = ""
    """The recipe in `data/recipes/` that installs them into a folder of its own, which then comes first on PATH."""


@dataclass(frozen=True, slots=True)
class Driver(Generic[OptionsT]):
    """A VPN that the lab can deploy, with options of its own."""

    name: str
    """Its name on the command line and in studies, such as `nebula`."""

    title: str
    """One line for people, such as `Nebula: certificates, UDP, a lighthouse`."""

    homepage: str
    """The address of its makers' page."""

    programs: tuple[str, ...]
    """Programs of its usual build (see `Build`)."""

    version: tuple[str, ...]
    """The command that prints the version of its usual build."""

    version_pattern: str
    """A regular expression whose first group is that version."""

    deploy: Callable[[Mesh, OptionsT], Deployment]
    """Makes the deployment for a mesh; pure, but for the randomness of fresh keys."""

    options: type[OptionsT] = Options  # type: ignore[assignment] # a driver that names none has none
    """The model of its options."""

    packages: tuple[str, ...] = ()
    """Debian packages that bring its programs, in its usual build."""

    startup_time: float = 0.0
    """Seconds until it usually answers, where that is more than a few: a run starts it that much earlier."""

    convergence_time: float = 0.0
    """Seconds that it then usually needs to converge (`Deployment.converged`)."""

    startup_per_node: float = 0.0
    """Further seconds for each node beyond three, where nodes are admitted one after the other."""

    recovery_time: float = 0.0
    """Seconds that other nodes may ignore one that crashed and came back, where that is more than a few."""

    known_restart_bug: str = ""
    """The known upstream bug that can keep nodes from finding their hub again after it restarts; empty if there is none."""

    recipe: str = ""
    """The recipe of its usual build (see `Build`)."""

    builds: Mapping[str, Build] = field(default_factory=dict)
    """Further builds, by the value of its option `build`."""

    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Options that get a name of their own: each is an arm in addition to the VPN itself, and the contract suite tests each."""

    ipv6: bool = False
    """Whether it can use an IPv6 underlay."""

    cascades: bool = False
    """Whether a node can have several tunnels of it, with others' networks behind them: it minds `MeshNode.instance` and `behind`, and `Mesh.mtu`."""

    overhead: Callable[[OptionsT], int] | None = None
    """Bytes that it adds to an IP packet over IPv4, outer headers included, and 0 where it sends a stream; needed with `cascades`."""

    also_needs: Callable[[OptionsT], tuple[str, ...]] | None = None
    """Programs that these options need in addition to those of the build."""

    kernel: tuple[str, ...] = ()
    """Kernel features that it needs, by the names in `host.kernel_features`."""

    def start_of(self, nodes: int) -> float:
        """Seconds until a mesh of so many nodes usually answers."""
        return self.startup_time + self.startup_per_node * max(nodes - 3, 0)

    def build(self, options: Options) -> Build:
        """The build that these options ask for."""
        usual = Build(self.programs, self.version, self.version_pattern, self.packages, self.recipe)
        build = self.builds.get(_chosen(options), usual)
        further = self.also_needs(options) if self.also_needs else ()  # type: ignore[arg-type] # of its own model
        return replace(build, programs=(*build.programs, *further)) if further else build

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
