"""The anchor: a tunnel of our own that does only what every user-space VPN must do. It is a reference, not a VPN.

Its program is in `crates/anchor`. It has one thread and a TUN device, sends by UDP, and handles one packet in each
system call. The cipher is ChaCha20-Poly1305 or none. Where the processor limits a VPN, the VPN's result is reported
as a multiple of the anchor's (`analyse.anchor_multiples`).
"""

from __future__ import annotations

import json
import secrets
from itertools import permutations
from typing import Literal

from pydantic import Field

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, Interface
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "anchor0"
PORT = 4700
MTU = 1420
"""The overlay's MTU in bytes: WireGuard's on Ethernet, because encrypted packets are as long as WireGuard's.

It is the same without a cipher, so that the two anchors differ in the cipher alone.
"""


class AnchorOptions(Options):
    """`cipher` encrypts the packets. `receive_buffer`: bytes of the socket's buffer; None: the kernel's default."""

    cipher: Literal["none", "chacha20-poly1305"] = "none"
    receive_buffer: int | None = Field(default=None, ge=1, le=1 << 30)


def _config(mesh: Mesh, host: MeshNode, keys: dict[tuple[str, str], str], options: AnchorOptions) -> str:
    number = {other.name: place for place, other in enumerate(mesh.hosts)}
    peers = []
    for other in mesh.others(host):
        peer = {"number": number[other.name], "overlay": str(other.overlay.ip), "endpoint": other.endpoint(PORT)}
        if options.cipher != "none":
            peer |= {"send": keys[host.name, other.name], "receive": keys[other.name, host.name]}
        peers.append(peer)
    return json.dumps(
        {
            "interface": INTERFACE,
            "listen": host.endpoint(PORT),
            "cipher": options.cipher,
            "number": number[host.name],
            "receive_buffer": options.receive_buffer,
            "peers": peers,
        },
        indent=1,
    )


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("anchor", "tunnelmark-anchor", host.path("anchor.json"), ready=Interface(INTERFACE))


def deploy(mesh: Mesh, options: AnchorOptions) -> Deployment:
    """Return the deployment: every node knows every other's address; each direction of each pair has its own key."""
    names = [host.name for host in mesh.hosts]
    keys = {pair: secrets.token_hex(32) for pair in permutations(names, 2)}
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(host.file("anchor.json", _config(mesh, host, keys, options)) for host in mesh.hosts),
        phases=(
            tuple(_daemon(host) for host in mesh.hosts),
            tuple(host.command("ip", "address", "add", str(host.overlay), "dev", INTERFACE) for host in mesh.hosts),
            tuple(host.command("ip", "link", "set", INTERFACE, "mtu", str(MTU), "up") for host in mesh.hosts),
        ),
        encrypted=options.cipher != "none",
    )


DRIVER = Driver(
    name="anchor",
    title="Anchor (no VPN: this laboratory's own yardstick)",
    homepage="https://www.rfc-editor.org/rfc/rfc8439",
    packages=("iproute2",),
    programs=("tunnelmark-anchor", "ip"),
    version=("tunnelmark-anchor", "--version"),
    version_pattern=r"tunnelmark-anchor (\S+)",
    deploy=deploy,
    options=AnchorOptions,
    variants={"anchor-chacha20": {"cipher": "chacha20-poly1305"}},
    ipv6=True,
)
