"""VpnCloud: a peer-to-peer mesh over UDP with a shared password, encrypted with what is fastest, or not at all."""

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
    """`cipher` None lets the peers choose by the speed test that they make at start; `plain` encrypts no data."""

    cipher: Literal["plain", "aes128", "aes256", "chacha20"] | None = None
    device: Literal["tun", "tap"] = "tun"


def _named(host: MeshNode) -> str:
    """A node as others name it: with IPv6 it adds the usual port itself, also to an address that has one (main.rs)."""
    return f"[{host.underlay}]" if host.underlay.version == 6 else host.endpoint(PORT)


def _config(mesh: Mesh, host: MeshNode, password: str, options: VpnCloudOptions) -> str:
    """A node's configuration; JSON is YAML, which is what vpncloud reads."""
    crypto: dict[str, object] = {"password": password}
    if options.cipher is not None:
        crypto["algorithms"] = [options.cipher]
    tun = {"claims": [f"{host.overlay.ip}/32"]} if options.device == "tun" else {}
    return json.dumps(
        {
            "device": {"type": options.device, "name": INTERFACE},
            # Its own `ip` sets another address when built by a new compiler (2.3.0, Rust 1.95), so the address is
            # set here, and claimed where addresses and not switched frames decide who gets a packet.
            "ifup": f"ip address add {host.overlay} dev $IFNAME && ip link set $IFNAME up",
            "auto-claim": False,
            **tun,
            "crypto": crypto,
            "listen": host.endpoint(PORT),
            "peers": [_named(other) for other in mesh.others(host)],
            "port-forwarding": False,  # there is no router to ask; it would look for one for 10 s
        },
        indent=1,
    )


def _route(mesh: Mesh, host: MeshNode) -> Command:
    """A default route into the underlay, which leads nowhere, for vpncloud 2.3 cannot do without.

    It asks which of its addresses leads to 8.8.8.8 and panics if none does (net.rs, get_ip), and makes its MTU
    from that of the default route's device (device.rs, set_mtu). It sends nothing there.
    """
    script = 'ip route replace default dev "$(ip -o route get "$0" | sed \'s/.* dev \\([^ ]*\\).*/\\1/\')"'
    return host.command("sh", "-c", script, str(mesh.others(host)[0].underlay))


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("vpncloud", "vpncloud", "--config", host.path("vpncloud.yml"), ready=UdpPort(PORT))


def deploy(mesh: Mesh, options: VpnCloudOptions) -> Deployment:
    """Every node names every other, and the hub listens before they do.

    One that all name could introduce them to each other, but tells two that join it at the same moment of each other
    only at its next message to its peers, after 90 s; and one that starts again is missed after 300 s only, unless it
    dials itself.
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
    recovery_time=120.0,  # for so long a peer that dialled a node takes its next start for an echo (init.rs, MAX_FAILED_RETRIES)
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
