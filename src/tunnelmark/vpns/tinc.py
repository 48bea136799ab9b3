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
"""What tincd says of a peer once it knows the path MTU; until then larger packets go through TCP."""

DIRECT = r"^ (\w+) at (?!MYSELF).* nexthop \1 via"
"""What tincd says of a peer that it reaches by a connection of its own, and not along those of others."""


class TincOptions(Options):
    """`path` of the data: None as shipped (UDP, direct), `tcp` (TCPOnly) or `indirect` (IndirectData, over the relay)."""

    path: Literal["tcp", "indirect"] | None = None


def _dials(mesh: Mesh, host: MeshNode, options: TincOptions) -> tuple[MeshNode, ...]:
    """Whom a node connects to.

    TCPOnly sends data along the connections, so only with one for each pair does it go directly; with IndirectData
    it goes through the nodes that are connected, so with the relay as the only such node through the relay.
    """
    if options.path == "tcp":
        return mesh.hosts[: mesh.hosts.index(host)]
    middle = mesh.relay if options.path == "indirect" else mesh.hub
    return () if host == middle else (middle,)


def _name(mesh: Mesh, host: MeshNode) -> str:
    """tinc's own name of a node; it allows letters, digits and underscores only (tinc.conf(5), Name)."""
    return f"node{mesh.hosts.index(host)}"


def _files(mesh: Mesh, host: MeshNode, keys: dict[str, rsa.RSAPrivateKey], options: TincOptions) -> list[File]:
    family = f"AddressFamily = ipv{host.underlay.version}"
    config = [f"Name = {_name(mesh, host)}", f"Interface = {INTERFACE}", family]
    config += [f"ConnectTo = {_name(mesh, other)}" for other in _dials(mesh, host, options)]
    path = {"tcp": "TCPOnly = yes\n", "indirect": "IndirectData = yes\n"}.get(options.path or "", "")
    # tinc 1.0 reads keys in the PKCS #1 form only; `tincd -K` would make the same, one second slower.
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
    """Nodes start once those listen whom they dial; a refused dial is repeated after 5 s only."""
    if options.path == "tcp":
        return tuple((_daemon(host),) for host in mesh.hosts)
    dialled = [host for host in mesh.hosts if not _dials(mesh, host, options)]
    return tuple(_daemon(host) for host in dialled), tuple(_daemon(host) for host in mesh.hosts if host not in dialled)


def _settled(mesh: Mesh, host: MeshNode, options: TincOptions) -> Converged:
    """Knows the path MTU to every peer that it sends UDP to, or has a connection with every peer that it sends TCP to."""
    peers = [mesh.relay] if options.path == "indirect" and host != mesh.relay else mesh.others(host)
    pattern = DIRECT if options.path == "tcp" else KNOWN_MTU
    return Converged(host.name, "tincd", SIGUSR2, pattern, len(peers))


def deploy(mesh: Mesh, options: TincOptions) -> Deployment:
    """Spokes dial the hub. With the path `tcp` each node dials those before it, with `indirect` the relay."""
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
