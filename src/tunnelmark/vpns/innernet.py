"""innernet: WireGuard whose peers learn of each other from a server on the hub, reached through the tunnel itself."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import PurePosixPath

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CopyFile, LogMatch, TcpPort, UnixSocket
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode, Overlay

NETWORK = "inner0"  # innernet names the interface after the network
PORT = 51820
OVERLAY = IPv4Network("10.60.0.0/16")  # its first address is the server's
MEMBERS = IPv4Network("10.60.1.0/24")  # the nodes that see each other; it may not contain the server
LEARNT = LogMatch(r"NAT traversal candidates")  # a line that is printed after it has asked the server for the peers
SOCKET = UnixSocket(PurePosixPath(f"/var/run/wireguard/{NETWORK}.sock"))


def _address(mesh: Mesh, host: MeshNode) -> IPv4Address:
    return OVERLAY[1] if host == mesh.hub else MEMBERS[mesh.hosts.index(host)]


def _innernet(program: str, host: MeshNode, *words: str) -> tuple[str, ...]:
    """Return a command line of one of innernet's programs, with configuration and data in the host's folder."""
    return (program, "-c", host.path("etc"), "-d", host.path("data"), *words)


def _flags(flags: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(word) for flag in flags.items() for word in flag)


def _setup(mesh: Mesh) -> str:
    """Return a script that makes the network and an invitation for every spoke; a second run does nothing."""
    hub = mesh.hub
    flags = {"--network-name": NETWORK, "--network-cidr": OVERLAY, "--listen-port": PORT}
    new = _flags(flags | {"--external-endpoint": hub.endpoint(PORT)})
    members = _flags({"--name": "members", "--cidr": MEMBERS, "--parent": NETWORK})
    server = [("--backend", "userspace", "new", *new), ("add-cidr", NETWORK, *members, "--yes")]
    for spoke in mesh.spokes:
        who = {"--name": spoke.name, "--ip": _address(mesh, spoke), "--cidr": "members", "--admin": "false"}
        invitation = {"--save-config": _invitation(hub, spoke), "--invite-expires": "1d"}
        server.append(("add-peer", NETWORK, *_flags(who | invitation), "--yes"))
    done = shlex.quote(hub.path("done"))
    lines = [f"test -e {done} && exit", *(shlex.join(_innernet("innernet-server", hub, *words)) for words in server)]
    return "\n".join(["set -e", *lines, f": > {done}"]) + "\n"


def _invitation(at: MeshNode, spoke: MeshNode) -> PurePosixPath:
    return at.dir / f"{spoke.name}.toml"


def _join(spoke: MeshNode) -> Command:
    """Return the command that redeems the invitation; after a restart of the node it does nothing."""
    words = ("--backend", "userspace", "install", str(_invitation(spoke, spoke)), "--default-name", "--delete-invite")
    once = 'test -e "$0" || exec "$@"'
    config = str(spoke.dir / "etc" / f"{NETWORK}.conf")
    return spoke.command("sh", "-c", once, config, *_innernet("innernet", spoke, *words), timeout=30)


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: the server starts, all spokes redeem their invitations, and learn of their peers in turn.

    If two spokes learned of each other at the same moment, both would begin a handshake. Each would discard the other's
    handshake, and WireGuard repeats it only after 5 s. A step of its own starts wireguard-go, and not innernet, so that
    wireguard-go ends and is restarted like any daemon.
    """
    hub = mesh.hub
    go = tuple(host.daemon("wireguard-go", "wireguard-go", "-f", NETWORK, ready=SOCKET) for host in mesh.hosts)
    serve = _innernet("innernet-server", hub, "serve", NETWORK, "--backend", "userspace")
    up = ("--backend", "userspace", "up", NETWORK, "--daemon", "--interval", "60")  # as its systemd unit
    return Deployment(
        overlays={host.name: Overlay(NETWORK, _address(mesh, host)) for host in mesh.hosts},
        files=(hub.file("setup.sh", _setup(mesh)),),
        phases=(
            (*go, hub.command("sh", hub.path("setup.sh"))),
            (
                hub.daemon("innernet-server", *serve, ready=TcpPort(PORT), control=True),
                *(CopyFile(hub.name, _invitation(hub, one), one.name, _invitation(one, one)) for one in mesh.spokes),
            ),
            tuple(_join(spoke) for spoke in mesh.spokes),
            *((one.daemon("innernet", *_innernet("innernet", one, *up), ready=LEARNT),) for one in mesh.spokes),
        ),
    )


DRIVER = Driver(
    name="innernet",
    title="innernet (over wireguard-go)",
    homepage="https://github.com/tonarino/innernet",
    packages=("wireguard-go",),
    programs=("innernet", "innernet-server", "wireguard-go", "sh"),
    recipe="innernet",
    version=("innernet", "--version"),
    version_pattern=r"innernet (\S+)",
    deploy=deploy,
    startup_time=12.0,  # its source fixes 5 s to redeem an invitation, and 5 s before it tries other endpoints
)
