"""EasyTier: a peer-to-peer mesh over UDP, TCP, WireGuard or QUIC, or through a relay.

Behind address translation a node asks a STUN server on the hub how its address is mapped, instead of EasyTier's usual
servers on the Internet.
"""

from __future__ import annotations

import json
import secrets
from signal import SIGUSR1
from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, LogMatch
from tunnelmark.vpns import _coturn
from tunnelmark.vpns.base import Converged, Deployment, Driver, Mesh, MeshNode

INTERFACE = "easytier0"
PORT = 11010  # where the makers' own program listens; WireGuard and QUIC have ports of their own there, too
DIRECT = r"^reaches \S+ in 1$"  # what the daemon says of a node that it reaches in one hop
STUN = {4: ("stun_servers", "tcp_stun_servers"), 6: ("stun_servers_v6",)}  # by the version of IP
PORTS = {"tcp": PORT, "udp": PORT, "wg": PORT + 1, "quic": PORT + 2}


class EasyTierOptions(Options):
    """`transport` carries the packets between peers. `relay` forbids direct paths, so a relay forwards all packets."""

    transport: Literal["udp", "tcp", "wg", "quic"] = "udp"
    relay: bool = False


def _url(host: MeshNode, options: EasyTierOptions) -> str:
    return f"{options.transport}://{host.endpoint(PORTS[options.transport])}"


def _config(mesh: Mesh, host: MeshNode, secret: str, options: EasyTierOptions) -> str:
    """Return a node's configuration; settings that are not in it keep the defaults of EasyTier's core."""
    middle = mesh.relay if options.relay else mesh.hub
    flags: dict[str, object] = {"dev_name": INTERFACE, "default_protocol": options.transport}
    return json.dumps(
        {
            "instance_name": host.name,
            "hostname": host.name,
            "network_identity": {"network_name": "tunnelmark", "network_secret": secret},
            "ipv4": str(host.overlay),
            "listeners": [_url(host, options)],
            "peer": [] if host == middle else [{"uri": _url(middle, options)}],
            "flags": flags | ({"disable_p2p": True} if options.relay else {}),
            **(dict.fromkeys(STUN[mesh.hub.underlay.version], _coturn.endpoints(mesh.hub)) if mesh.translated else {}),
        },
        indent=1,
    )


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("easytier", "easytier", host.path("easytier.json"), ready=LogMatch("^ready$"))


def deploy(mesh: Mesh, options: EasyTierOptions) -> Deployment:
    """Return the deployment: the spokes start once the hub (with `relay`: the relay) listens, and find each other
    through it.

    Packets between two spokes go through the hub until the two have found a direct path, about 6 s later.
    """
    secret = secrets.token_urlsafe(24)
    middle = mesh.relay if options.relay else mesh.hub
    direct = () if options.relay else mesh.hosts
    stun = (mesh.hub,) if mesh.translated else ()
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=(
            *(host.file("easytier.json", _config(mesh, host, secret, options)) for host in mesh.hosts),
            *(_coturn.config(host) for host in stun),
        ),
        phases=(
            *((_coturn.daemon(host),) for host in stun),
            (_daemon(middle),),
            tuple(_daemon(host) for host in mesh.others(middle)),
        ),
        converged=tuple(Converged(host.name, "easytier", SIGUSR1, DIRECT, len(mesh.spokes)) for host in direct),
        relayed=options.relay,
    )


DRIVER = Driver(
    name="easytier",
    title="EasyTier",
    homepage="https://easytier.cn/",
    programs=("easytier", _coturn.PROGRAM),
    packages=(_coturn.PACKAGE,),
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
)
