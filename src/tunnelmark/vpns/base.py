"""Defines what a VPN driver is: a pure function from a `Mesh` to a `Deployment`.

A driver starts nothing. It says which files each node has, which commands set the VPN up, which daemons keep running,
and on which interface the overlay is. The run stage carries that out on the nodes of any backend. A step that must
wait for another one waits for a `ReadyWhen`, never for a fixed time. Further facts on a VPN are in
`data/matrix/NAME.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address
from pathlib import PurePosixPath
from typing import Generic

from tunnelmark.host.programs import Requirement
from tunnelmark.model.options import Options, OptionsT
from tunnelmark.model.steps import Command, CommandSucceeds, Daemon, File, ReadyWhen, Step

LONGEST_INTERFACE = 15  # bytes of an interface's name: IFNAMSIZ in <linux/if.h> less the final zero
OVERLAY = "10.60.0.0/24"  # the overlay's IPv4 prefix wherever a VPN lets us choose; no underlay uses it


@dataclass(frozen=True, slots=True)
class Overlay:
    """The overlay's interface and address on a node. If the address is None, the run reads it from the interface."""

    interface: str
    address: IPv4Address | IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class MeshNode:
    """A node as a driver sees it.

    `underlay`: the node's address on the underlay.
    `dir`: an empty folder on the node for this driver alone; it is deleted with the node.
    `overlay`: the overlay address that the driver should give to the node, if the VPN lets us choose.
    `instance`: the number of this tunnel on the node, from 0 on; a node of a cascade can have several tunnels.
    `behind`: networks that other nodes reach through this node's tunnel (in a cascade).
    """

    name: str
    underlay: IPv4Address | IPv6Address
    dir: PurePosixPath
    overlay: IPv4Interface
    instance: int = 0
    behind: tuple[IPv4Network, ...] = ()

    def interface(self, name: str) -> str:
        """Return this instance's interface name. `name` is that of instance 0: from `wg0`, instance 1 gets `wg1`."""
        return name.removesuffix("0") + str(self.instance) if self.instance else name

    def port(self, number: int) -> int:
        """Return the port of this instance: `number` for instance 0, `number + 1` for instance 1, and so on."""
        return number + self.instance

    def endpoint(self, port: int) -> str:
        """Return the node's underlay address with a port, as programs read it: `10.50.0.1:655` or `[fd50::1]:655`."""
        return f"[{self.underlay}]:{port}" if self.underlay.version == 6 else f"{self.underlay}:{port}"

    def path(self, name: str) -> str:
        """Return the path of the file `name` in the node's folder."""
        return str(self.dir / name)

    def file(self, name: str, content: str = "", *, from_staging: str = "", mode: int = 0o600) -> File:
        """Return a file in the node's folder: with the text `content`, or as a copy of the file `from_staging`.

        `from_staging`: the path of a file in the staging folder, where the commands of `Deployment.staging` made it.
        `mode`: the permissions of the file.
        """
        return File(self.name, self.dir / name, content, from_staging, mode)

    def command(self, *argv: str, timeout: float = 20.0) -> Command:
        """Return a command on this node that must end with exit code 0 within `timeout` seconds."""
        return Command(self.name, argv, timeout=timeout)

    def succeeds(self, *argv: str) -> CommandSucceeds:
        """Return the condition that the command `argv`, which is repeated on this node, ends with exit code 0.

        The command must change nothing. As a step, the condition has 20 s when a deployment starts; in
        `Deployment.converged` it has the study's `ready_timeout`.
        """
        return CommandSucceeds(self.name, argv)

    def daemon(
        self,
        name: str,
        *argv: str,
        ready: ReadyWhen | None = None,
        env: Mapping[str, str] | None = None,
        control: bool = False,
    ) -> Daemon:
        """Return a daemon on this node: the command `argv`, which keeps running (`Daemon` explains the parameters)."""
        return Daemon(self.name, name, argv, ready, env or {}, control)


@dataclass(frozen=True, slots=True)
class Mesh:
    """The nodes that a VPN joins, in order. The first node is the hub, if the VPN needs one.

    `hub_relays`: the hub also runs the relay, and is then not an end of the traffic.
    `mtu`: the MTU in bytes that overlay interfaces must have because the tunnel runs inside another one. None: the
    VPN's default, or the value of its options.
    `translated`: at least one node is behind a router that translates its address.
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
        """The node that runs the relay: the second node; the hub if there are only two nodes, or with `hub_relays`."""
        return self.hosts[1] if len(self.hosts) > 2 and not self.hub_relays else self.hub

    def overlays(self, interface: str, *, own_addresses: bool = False) -> dict[str, Overlay]:
        """Return the overlay of each node at the interface of that name.

        The addresses are the nodes' `overlay` addresses. With `own_addresses` the VPN chooses them, and they are None.
        """
        return {
            host.name: Overlay(host.interface(interface), None if own_addresses else host.overlay.ip)
            for host in self.hosts
        }

    def others(self, host: MeshNode) -> tuple[MeshNode, ...]:
        return tuple(other for other in self.hosts if other != host)


def interface_fault(name: str) -> str:
    """Return in words why Linux refuses an interface name; "" if it accepts the name (dev_valid_name())."""
    if not name or name in (".", ".."):
        return "is none"
    if len(name.encode()) > LONGEST_INTERFACE:
        return f"has {len(name.encode())} bytes, and Linux takes {LONGEST_INTERFACE}"
    if any(letter in "/:" or letter.isspace() for letter in name):
        return "holds a slash, a colon or a space"
    return ""


@dataclass(frozen=True, slots=True)
class Converged:
    """How a daemon's log shows that the VPN has converged: it uses the path that it will keep.

    The run sends `signal` to the daemon again and again, each time to make it write its state to its log. The VPN has
    converged when the log after a signal has `count` matches of `pattern` (a regular expression, MULTILINE).
    """

    node: str
    daemon: str
    signal: int
    pattern: str
    count: int


@dataclass(frozen=True, slots=True)
class Deployment:
    """A VPN on a mesh, as plain data: the files and programs on each node, and the order in which they start."""

    overlays: Mapping[str, Overlay]
    """The overlay interface and address of each node, by node name."""

    staging: tuple[tuple[str, ...], ...] = ()
    """Commands that run first, one by one, in the staging folder, which has no network; they make CAs and keys."""

    files: tuple[File, ...] = ()
    """Files that are written after the staging commands and before the first phase."""

    phases: tuple[tuple[Step, ...], ...] = ()
    """Steps by phase: phases run one after the other, the steps of a phase at the same time."""

    converged: tuple[Converged | CommandSucceeds, ...] = ()
    """What must hold before the measurement, if the VPN starts on a path that it does not keep (a relay, TCP)."""

    encrypted: bool = True
    """False if the VPN does not encrypt: the contract suite then must find a marker of the payload on the link."""

    relayed: bool = False
    """True if all traffic between two nodes goes through `mesh.relay`; the contract suite checks that on the link."""

    arrives_from: Mapping[str, IPv4Address | IPv6Address] = field(default_factory=dict)
    """By node: from which underlay address packets of the other end arrive, if it is a third node's (in a cascade)."""

    recovery_time: float = 0.0
    """Seconds to add to `Driver.recovery_time` for this arm alone."""


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
    """Debian packages that contain the programs."""

    recipe: str = ""
    """The recipe in `data/recipes/` that installs the programs into their own folder, which comes first on PATH."""


@dataclass(frozen=True, slots=True)
class Driver(Generic[OptionsT]):
    """A VPN that the lab can deploy, with options of its own."""

    name: str
    """The VPN's name on the command line and in studies, such as `nebula`."""

    title: str
    """A short title for tables and reports, such as `Nebula: certificates, UDP, a lighthouse`."""

    homepage: str
    """The URL of the VPN's home page."""

    programs: tuple[str, ...]
    """Programs of the default build (see `Build`)."""

    version: tuple[str, ...]
    """The command that prints the version of the default build."""

    version_pattern: str
    """A regular expression whose first group is that version."""

    deploy: Callable[[Mesh, OptionsT], Deployment]
    """Returns the deployment for a mesh. It is a pure function, except that it may draw fresh random keys."""

    options: type[OptionsT] = Options  # type: ignore[assignment] # a driver that names none has none
    """The class of the VPN's options."""

    packages: tuple[str, ...] = ()
    """Debian packages that contain the programs of the default build."""

    startup_time: float = 0.0
    """Seconds until nodes usually answer each other, if more than a few. A run waits that much longer for them."""

    convergence_time: float = 0.0
    """Seconds from the nodes' first answers until the VPN has usually converged (see `Deployment.converged`)."""

    startup_per_node: float = 0.0
    """Seconds to add to `startup_time` for each node beyond three, if nodes are admitted one after the other."""

    recovery_time: float = 0.0
    """Seconds for which other nodes may ignore a node that crashed and came back; 0 if it is only a few seconds."""

    known_restart_bug: str = ""
    """A known upstream bug that can keep nodes from finding their hub again after it restarts; "" if none is known."""

    recipe: str = ""
    """The recipe of the default build (see `Build`)."""

    builds: Mapping[str, Build] = field(default_factory=dict)
    """Further builds, by the value of the option `build` that selects each."""

    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Sets of options by name. Each is an arm in addition to the VPN itself, and the contract suite tests each."""

    ipv6: bool = False
    """Whether the VPN can use an IPv6 underlay."""

    cascades: bool = False
    """Whether the VPN can be in a cascade: `deploy` respects `MeshNode.instance`, `MeshNode.behind` and `Mesh.mtu`."""

    overhead: Callable[[OptionsT], int] | None = None
    """Returns the bytes that the VPN adds to an inner packet over IPv4, outer headers included; 0 if it sends a stream.

    A driver with `cascades` must have it.
    """

    also_needs: Callable[[OptionsT], tuple[str, ...]] | None = None
    """Returns programs that the given options need in addition to those of the build."""

    kernel: tuple[str, ...] = ()
    """Kernel features that the VPN needs, by their names in `host.kernel_features`."""

    also_kernel: Callable[[OptionsT], tuple[str, ...]] | None = None
    """Returns kernel features that the given options need in addition."""

    def start_of(self, nodes: int) -> float:
        """Return after how many seconds a mesh of `nodes` nodes usually answers."""
        return self.startup_time + self.startup_per_node * max(nodes - 3, 0)

    def build(self, options: Options) -> Build:
        """Return the build that these options select, with the programs that the options need in addition."""
        usual = Build(self.programs, self.version, self.version_pattern, self.packages, self.recipe)
        build = self.builds.get(_chosen(options), usual)
        further = self.also_needs(options) if self.also_needs else ()  # type: ignore[arg-type] # of its own model
        return replace(build, programs=(*build.programs, *further)) if further else build

    def part(self, options: Options) -> Requirement:
        """Return what must be installed for these options.

        If the options select one of `builds`, that version alone will do. Of the default build, any version will do.
        """
        build, chosen = self.build(options), _chosen(options)
        named = chosen in self.builds
        further = self.also_kernel(options) if self.also_kernel else ()  # type: ignore[arg-type] # of its own model
        return Requirement(
            f"{self.name} {chosen}" if named else self.name,
            build.programs,
            build.packages,
            build.version,
            build.version_pattern,
            recipe=build.recipe,
            strict=named,
            kernel=(*self.kernel, *further),
        )


def _chosen(options: Options) -> str:
    """Return the value of the option `build` as text; "" if the VPN has no such option."""
    return str(getattr(options, "build", ""))
