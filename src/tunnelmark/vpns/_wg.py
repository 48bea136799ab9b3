"""Shared by the drivers of WireGuard implementations: keys, the configuration file, and a full mesh set up by wg(8)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import PurePosixPath

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import Field

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Step, UnixSocket
from tunnelmark.vpns.base import Deployment, Mesh, MeshNode

INTERFACE = "wg0"
PORT = 51820


def socket(host: MeshNode) -> UnixSocket:
    """Return the socket on which a user-space implementation takes its configuration.

    wg(8) connects only to this path (wireguard-tools: ipc-uapi-unix.h).
    """
    return UnixSocket(PurePosixPath(f"/var/run/wireguard/{host.interface(INTERFACE)}.sock"))


def overhead(options: WgOptions) -> int:
    """Return the bytes that WireGuard adds to a packet: IPv4 and UDP headers, its own header, and the tag.

    They are from WireGuard's paper, section 5.4.6. WireGuard's padding never makes a packet larger than the MTU.
    """
    return 20 + 8 + 16 + 16


TOOLS = ("wg", "ip")  # programs that `full_mesh` uses
PACKAGES = ("wireguard-tools", "iproute2")  # that bring them


class WgOptions(Options):
    """`mtu`: the MTU of the overlay interface in bytes; None leaves the default."""

    mtu: int | None = Field(default=None, ge=576, le=65535)


def secret(key: X25519PrivateKey) -> str:
    """Return a private key in the form that wg(8) reads (base64)."""
    return b64encode(key.private_bytes_raw()).decode()


def public(key: X25519PrivateKey) -> str:
    """Return the public key that belongs to a private key, in the form that wg(8) reads (base64)."""
    return b64encode(key.public_key().public_bytes_raw()).decode()


def config(mesh: Mesh, host: MeshNode, keys: dict[str, X25519PrivateKey]) -> str:
    """Return a node's configuration for `wg setconf` (see wg(8), "CONFIGURATION FILE FORMAT").

    `keys`: the private key of each node of the mesh, by node name.
    """
    text = f"[Interface]\nPrivateKey = {secret(keys[host.name])}\nListenPort = {host.port(PORT)}\n"
    for peer in mesh.others(host):
        allowed = ", ".join([f"{peer.overlay.ip}/32", *map(str, peer.behind)])
        text += f"[Peer]\nPublicKey = {public(keys[peer.name])}\nAllowedIPs = {allowed}\n"
        text += f"Endpoint = {peer.endpoint(peer.port(PORT))}\n"
    return text


def full_mesh(mesh: Mesh, begin: Callable[[MeshNode], Step], mtu: int | None) -> Deployment:
    """Return a deployment in which every node is a peer of every other.

    `begin` returns the step that creates a node's interface: a daemon or a command. `mtu` is in bytes; None leaves the
    default. `Mesh.mtu` takes precedence. Interfaces go up last, when all have their keys: a handshake that reaches a
    node without keys is lost, and WireGuard repeats it only after 5 s.
    """
    keys = {host.name: X25519PrivateKey.generate() for host in mesh.hosts}
    mtu = mtu if mesh.mtu is None else mesh.mtu
    size = () if mtu is None else ("mtu", str(mtu))
    configure, up = [], []
    for host in mesh.hosts:
        interface = host.interface(INTERFACE)
        configure.append(host.command("wg", "setconf", interface, host.path("wg.conf")))
        configure.append(host.command("ip", "address", "add", str(host.overlay), "dev", interface))
        up.append(host.command("ip", "link", "set", interface, *size, "up"))
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(host.file("wg.conf", config(mesh, host, keys)) for host in mesh.hosts),
        phases=(tuple(begin(host) for host in mesh.hosts), tuple(configure), tuple(up)),
    )
