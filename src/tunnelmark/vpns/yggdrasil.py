"""Yggdrasil 0.4: an IPv6 overlay whose addresses come from keys and whose packets are routed along a tree."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tunnelmark.vpns.base import Daemon, Deployment, Driver, Fact, Features, File, Host, Mesh, Options, Overlay, TcpPort

INTERFACE = "ygg0"
PORT = 9001


def _config(mesh: Mesh, host: Host) -> str:
    """A node's configuration; whatever is not said here keeps the value of `yggdrasil -genconf`."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    hub = f"tcp://{mesh.hub.underlay}:{PORT}"
    return json.dumps(
        {
            # Go's form of an ed25519 private key: the seed with the public key behind it.
            "PrivateKey": (key.private_bytes_raw() + public).hex(),
            "PublicKey": public.hex(),
            "Listen": [hub] if host == mesh.hub else [],
            "Peers": [] if host == mesh.hub else [hub],
            "MulticastInterfaces": [],
            "AdminListen": "none",
            "IfName": INTERFACE,
        },
        indent=1,
    )


def _daemon(mesh: Mesh, host: Host) -> Daemon:
    argv = ("yggdrasil", "-useconffile", str(host.dir / "yggdrasil.conf"))
    return Daemon(host.name, "yggdrasil", argv, ready=TcpPort(PORT) if host == mesh.hub else None)


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Spokes peer with the hub once it listens: a refused peering is tried again after a minute only.

    Addresses are read from the interface, for the daemon itself derives them from its key.
    """
    return Deployment(
        overlays={host.name: Overlay(INTERFACE) for host in mesh.hosts},
        files=tuple(File(host.name, host.dir / "yggdrasil.conf", _config(mesh, host)) for host in mesh.hosts),
        phases=((_daemon(mesh, mesh.hub),), tuple(_daemon(mesh, spoke) for spoke in mesh.spokes)),
    )


_DOCS = "https://yggdrasil-network.github.io"
_SEEN = "2026-11-21"  # when the facts below were looked up

DRIVER = Driver(
    name="yggdrasil",
    title="Yggdrasil",
    homepage="https://yggdrasil-network.github.io/",
    packages=("yggdrasil",),
    programs=("yggdrasil",),
    # `yggdrasil -version` of Debian's build says "unknown".
    version=("dpkg-query", "-W", "-f", "${Version}", "yggdrasil"),
    version_pattern=r"(\S+)",
    deploy=deploy,
    features=Features(
        transport=Fact("TCP (TLS is an option)", f"{_DOCS}/configuration.html", _SEEN),
        encryption=Fact("XSalsa20-Poly1305 (NaCl box)", "its library ironwood: encrypted/crypto.go", _SEEN),
        handshake=Fact("X25519, signed by ed25519 identities", "its library ironwood: encrypted/session.go", _SEEN),
        routing=Fact("any graph of peerings, packets follow a spanning tree", f"{_DOCS}/about.html", _SEEN),
        inner=Fact("IPv6 (200::/7)", f"{_DOCS}/about.html", _SEEN),
        mtu=Fact("53049", "measured here, 0.4.7: ip link", _SEEN),
        datapath=Fact("user space over TUN, several threads, stream over TCP", "measured here, 0.4.7", _SEEN),
        licence=Fact("LGPL-3.0 with linking exception", "/usr/share/doc/yggdrasil/copyright", _SEEN),
    ),
)
