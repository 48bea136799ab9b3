"""tinc 1.0: a mesh VPN whose daemons find each other through TCP connections and carry data over UDP, or TCP."""

from __future__ import annotations

from signal import SIGUSR2
from typing import Literal

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, File, TcpPort
from tunnelmark.vpns.base import Converged, Deployment, Driver, Mesh, MeshNode

INTERFACE = "tinc0"
PORT = 655
KNOWN_MTU = r"pmtu (\d+) \(min \1 max \1\)"
"""A line in which tincd says that it knows the path MTU to a peer; until then it sends larger packets through TCP."""

DIRECT = r"^ (\w+) at (?!MYSELF).* nexthop \1 via"
"""A line in which tincd says that it reaches a peer through its own connection, and not through other nodes."""


class TincOptions(Options):
    """`path`: how data travel.

    None: directly, by UDP, as shipped. `tcp`: by TCP (TCPOnly). `indirect`: over the relay (IndirectData).
    """

    path: Literal["tcp", "indirect"] | None = None


def _dials(mesh: Mesh, host: MeshNode, options: TincOptions) -> tuple[MeshNode, ...]:
    """Return the nodes to which a node opens connections.

    With TCPOnly data follow the connections, so they go directly only if each pair has a connection. With IndirectData
    they go through connected nodes, so all nodes connect to the relay only, and the data go through it.
    """
    if options.path == "tcp":
        return mesh.hosts[: mesh.hosts.index(host)]
    middle = mesh.relay if options.path == "indirect" else mesh.hub
    return () if host == middle else (middle,)


def _name(mesh: Mesh, host: MeshNode) -> str:
    """Return the node's name in tinc, which allows only letters, digits and underscores (tinc.conf(5), Name)."""
    return f"node{mesh.hosts.index(host)}"


def _files(mesh: Mesh, host: MeshNode, keys: dict[str, rsa.RSAPrivateKey], options: TincOptions) -> list[File]:
    family = f"AddressFamily = ipv{host.underlay.version}"
    config = [f"Name = {_name(mesh, host)}", f"Interface = {INTERFACE}", family]
    config += [f"ConnectTo = {_name(mesh, other)}" for other in _dials(mesh, host, options)]
    path = {"tcp": "TCPOnly = yes\n", "indirect": "IndirectData = yes\n"}.get(options.path or "", "")
    # tinc 1.0 reads keys only in the PKCS #1 form. `tincd -K` would make such keys, too, but takes one second longer.
    private = keys[host.name].private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    up = f"#!/bin/sh\nip address add {host.overlay} dev $INTERFACE && exec ip link set $INTERFACE up\n"
    files = [
        host.file("tinc.conf", "\n".join(config) + "\n"),
        host.file("rsa_key.priv", private),
        host.file("tinc-up", up, mode=0o700),
    ]
    for node in mesh.hosts:
        public = keys[node.name].public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()
        about = f"Address = {node.underlay}\nPort = {PORT}\nSubnet = {node.overlay.ip}/32\n{path}{public}"
        files.append(host.file(f"hosts/{_name(mesh, node)}", about))
    return files


def _daemon(host: MeshNode) -> Daemon:
    argv = ("tincd", "-c", str(host.dir), "-D", f"--pidfile={host.dir / 'tincd.pid'}")
    return host.daemon("tincd", *argv, ready=TcpPort(PORT))


def _phases(mesh: Mesh, options: TincOptions) -> tuple[tuple[Daemon, ...], ...]:
    """Return the phases: a node starts once the nodes that it dials listen; a refused dial costs it 5 s."""
    if options.path == "tcp":
        return tuple((_daemon(host),) for host in mesh.hosts)
    dialled = [host for host in mesh.hosts if not _dials(mesh, host, options)]
    return tuple(_daemon(host) for host in dialled), tuple(_daemon(host) for host in mesh.hosts if host not in dialled)


def _settled(mesh: Mesh, host: MeshNode, options: TincOptions) -> Converged:
    """Return how a node shows that it has converged.

    It knows the path MTU to every peer to which it sends UDP, or (with `tcp`) has a connection with every peer.
    """
    peers = [mesh.relay] if options.path == "indirect" and host != mesh.relay else mesh.others(host)
    pattern = DIRECT if options.path == "tcp" else KNOWN_MTU
    return Converged(host.name, "tincd", SIGUSR2, pattern, len(peers))


def deploy(mesh: Mesh, options: TincOptions) -> Deployment:
    """Return the deployment: spokes dial the hub (with `indirect`: the relay; with `tcp`: all earlier nodes)."""
    keys = {host.name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for host in mesh.hosts}
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host, keys, options)),
        phases=_phases(mesh, options),
        converged=tuple(_settled(mesh, host, options) for host in mesh.hosts),
        relayed=options.path == "indirect",
    )


DRIVER = Driver(
    name="tinc",
    title="tinc",
    homepage="https://www.tinc-vpn.org/",
    packages=("tinc", "iproute2"),
    programs=("tincd", "ip"),
    version=("tincd", "--version"),
    version_pattern=r"tinc version (\S+)",
    deploy=deploy,
    options=TincOptions,
    convergence_time=8.0,
    variants={"tinc-tcp": {"path": "tcp"}, "tinc-indirect": {"path": "indirect"}},
    ipv6=True,
)
