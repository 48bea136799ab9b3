"""VpnCloud: a peer-to-peer mesh over UDP with a shared password, encrypted with the fastest cipher, or not at all."""

from __future__ import annotations

import json
import secrets
from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, Daemon, UdpPort
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "vpncloud0"
PORT = 3210


class VpnCloudOptions(Options):
    """`cipher`: if None, the peers choose by the speed test that they make at the start; `plain` encrypts no data."""

    cipher: Literal["plain", "aes128", "aes256", "chacha20"] | None = None
    device: Literal["tun", "tap"] = "tun"


def _named(host: MeshNode) -> str:
    """Return a node's address as peers name it; with IPv6 without port, as vpncloud always appends one (main.rs)."""
    return f"[{host.underlay}]" if host.underlay.version == 6 else host.endpoint(PORT)


def _config(mesh: Mesh, host: MeshNode, password: str, options: VpnCloudOptions) -> str:
    """Return a node's configuration as JSON; vpncloud reads YAML, which includes JSON."""
    crypto: dict[str, object] = {"password": password}
    if options.cipher is not None:
        crypto["algorithms"] = [options.cipher]
    tun = {"claims": [f"{host.overlay.ip}/32"]} if options.device == "tun" else {}
    return json.dumps(
        {
            "device": {"type": options.device, "name": INTERFACE},
            # If built by a new compiler (2.3.0, Rust 1.95), its option `ip` sets a wrong address. So the address is set
            # here, and with TUN claimed, because there addresses decide who gets a packet, and not switched frames.
            "ifup": f"ip address add {host.overlay} dev $IFNAME && ip link set $IFNAME up",
            "auto-claim": False,
            **tun,
            "crypto": crypto,
            "listen": host.endpoint(PORT),
            "peers": [_named(other) for other in mesh.others(host)],
            "port-forwarding": False,  # without a router to ask it would search for 10 s
        },
        indent=1,
    )


def _route(mesh: Mesh, host: MeshNode) -> Command:
    """Return the command that sets a default route into the underlay; it leads nowhere, but vpncloud 2.3 needs one.

    vpncloud looks up which of its addresses leads to 8.8.8.8, and panics if none does (net.rs, get_ip). It derives its
    MTU from that of the default route's device (device.rs, set_mtu). It sends nothing along that route.
    """
    script = 'ip route replace default dev "$(ip -o route get "$0" | sed \'s/.* dev \\([^ ]*\\).*/\\1/\')"'
    return host.command("sh", "-c", script, str(mesh.others(host)[0].underlay))


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("vpncloud", "vpncloud", "--config", host.path("vpncloud.yml"), ready=UdpPort(PORT))


def deploy(mesh: Mesh, options: VpnCloudOptions) -> Deployment:
    """Return the deployment: the hub starts first, and each node's configuration has all other nodes as its peers.

    A configuration could have one node only, which introduces all others to each other. But two nodes that join at the
    same moment would hear of each other only by that node's next message to its peers, 90 s later. And unless a
    restarted node dialled the others itself, they would notice its restart only after 300 s.
    """
    password = secrets.token_urlsafe(24)
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(host.file("vpncloud.yml", _config(mesh, host, password, options)) for host in mesh.hosts),
        phases=(
            tuple(_route(mesh, host) for host in mesh.hosts),
            (_daemon(mesh.hub),),
            tuple(_daemon(spoke) for spoke in mesh.spokes),
        ),
        encrypted=options.cipher != "plain",
    )


DRIVER = Driver(
    name="vpncloud",
    title="VpnCloud",
    homepage="https://vpncloud.ddswd.de/",
    packages=("iproute2",),
    programs=("vpncloud", "ip", "sh"),
    version=("vpncloud", "--version"),
    version_pattern=r"VpnCloud v(\S+)",
    deploy=deploy,
    options=VpnCloudOptions,
    recovery_time=120.0,  # so long peers take a restarted node for an echo (init.rs, MAX_FAILED_RETRIES)
    recipe="vpncloud",
    variants={
        "vpncloud-plain": {"cipher": "plain"},
        "vpncloud-aes128": {"cipher": "aes128"},
        "vpncloud-aes256": {"cipher": "aes256"},
        "vpncloud-chacha20": {"cipher": "chacha20"},
        "vpncloud-tap": {"device": "tap"},
    },
    ipv6=True,
)
