"""EasyTier: a peer-to-peer mesh over UDP, TCP, WireGuard's or QUIC's packets, or through a node that relays."""

from __future__ import annotations

import json
import secrets
from signal import SIGUSR1
from typing import Literal

from tunnelmark.vpns.base import (
    Converged,
    Daemon,
    Deployment,
    Driver,
    Fact,
    Features,
    File,
    LogMatch,
    Mesh,
    MeshNode,
    Options,
    Overlay,
)

INTERFACE = "easytier0"
PORT = 11010  # where the makers' own program listens; WireGuard and QUIC have ports of their own there, too
DIRECT = r"^reaches \S+ in 1$"  # what the daemon says of a node that it reaches in one hop
PORTS = {"tcp": PORT, "udp": PORT, "wg": PORT + 1, "quic": PORT + 2}


class EasyTierOptions(Options):
    """`transport` carries the packets between peers; `relay` forbids direct ways, so that a node relays them."""

    transport: Literal["udp", "tcp", "wg", "quic"] = "udp"
    relay: bool = False


def _url(host: MeshNode, options: EasyTierOptions) -> str:
    return f"{options.transport}://{host.endpoint(PORTS[options.transport])}"


def _config(mesh: Mesh, host: MeshNode, secret: str, options: EasyTierOptions) -> str:
    """A node's configuration; whatever is not said here keeps the core's own value."""
    middle = mesh.relay if options.relay else mesh.hub
    return json.dumps(
        {
            "instance_name": host.name,
            "hostname": host.name,
            "network_identity": {"network_name": "tunnelmark", "network_secret": secret},
            "ipv4": str(host.overlay),
            "listeners": [_url(host, options)],
            "peer": [] if host == middle else [{"uri": _url(middle, options)}],
            "flags": {
                "dev_name": INTERFACE,
                "default_protocol": options.transport,
                **({"disable_p2p": True} if options.relay else {}),
            },
        },
        indent=1,
    )


def _daemon(host: MeshNode) -> Daemon:
    return Daemon(host.name, "easytier", ("easytier", str(host.dir / "easytier.json")), ready=LogMatch("^ready$"))


def deploy(mesh: Mesh, options: EasyTierOptions) -> Deployment:
    """Spokes dial the hub once it listens and find each other through it; with `relay` it is the relay.

    Packets between two spokes go over the hub until they have found a way of their own, about 6 s later.
    """
    secret = secrets.token_urlsafe(24)
    middle = mesh.relay if options.relay else mesh.hub
    direct = () if options.relay else mesh.hosts
    others = len(mesh.hosts) - 1
    return Deployment(
        overlays={host.name: Overlay(INTERFACE, host.overlay.ip) for host in mesh.hosts},
        files=tuple(
            File(host.name, host.dir / "easytier.json", _config(mesh, host, secret, options)) for host in mesh.hosts
        ),
        phases=((_daemon(middle),), tuple(_daemon(host) for host in mesh.others(middle))),
        converged=tuple(Converged(host.name, "easytier", SIGUSR1, DIRECT, others) for host in direct),
        relayed=options.relay,
    )


_DOCS = "its package easytier-pyo3 0.1.3, METADATA"
_SEEN = "2026-11-21"  # when the facts below were looked up

DRIVER = Driver(
    name="easytier",
    title="EasyTier",
    homepage="https://easytier.cn/",
    packages=(),
    programs=("easytier",),
    version=("easytier", "--version"),
    version_pattern=r"easytier-core (\S+)",
    deploy=deploy,
    options=EasyTierOptions,
    convergence_time=8.0,
    recipe="easytier",
    variants={
        "easytier-tcp": {"transport": "tcp"},
        "easytier-wg": {"transport": "wg"},
        "easytier-quic": {"transport": "quic"},
        "easytier-relay": {"relay": True},
    },
    ipv6=True,
    features=Features(
        transport=Fact("UDP, TCP, WireGuard, QUIC or WebSocket, by the peer's URL", f"{_DOCS}: listeners", _SEEN),
        encryption=Fact("AES-GCM", f"{_DOCS}: encryption_algorithm", _SEEN),
        handshake=Fact("a secret that all nodes share", f"{_DOCS}: network_identity", _SEEN),
        routing=Fact("full mesh where direct ways can be had, else relayed by peers", f"{_DOCS}: disable_p2p", _SEEN),
        inner=Fact("IPv4 and IPv6", f"{_DOCS}: ipv4, ipv6", _SEEN),
        mtu=Fact("1360", "measured here, 2.6.4: ip link on the new interface", _SEEN),
        datapath=Fact("user space over TUN, two threads as shipped", f"{_DOCS}: multi_thread_count", _SEEN),
        licence=Fact("LGPL-3.0", f"{_DOCS}: License-Expression", _SEEN),
    ),
)
