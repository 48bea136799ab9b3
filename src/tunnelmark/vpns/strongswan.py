"""strongSwan: IPsec with IKEv2 between peers that all know each other; ESP packets are made in user space."""

from __future__ import annotations

import secrets
from pathlib import PurePosixPath
from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, File, UnixSocket
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "ipsec0"  # fixed in the plugin kernel-libipsec
VICI = UnixSocket(PurePosixPath("/run/charon.vici"))  # the daemon's control socket, as shipped
DAEMON = """\
charon-systemd {
    load_modular = yes
    plugins {
        include /etc/strongswan.d/charon/*.conf
        kernel-libipsec {
            load = yes
        }
    }
    filelog {
        standard {
            path = stderr
        }
    }
}
"""
"""The daemon's configuration: Debian's own, with the plugin that does IPsec in user space, and with a log."""

CONNECT = 'swanctl --list-sas --child "$0" | grep -q INSTALLED || exec swanctl --initiate --child "$0"'
"""A script that connects to a peer, unless the peer has already connected."""


class StrongSwanOptions(Options):
    """`esp` is the proposal for the data, as in swanctl.conf(5); None leaves it as shipped."""

    esp: Literal["aes256gcm16", "chacha20poly1305"] | None = None


def _connections(mesh: Mesh, host: MeshNode, secret: str, options: StrongSwanOptions) -> str:
    """Return the file for `swanctl --load-all`: one connection for each peer, and the secret that all nodes share."""
    esp = "" if options.esp is None else f"esp_proposals = {options.esp}\n"
    text = "connections {\n"
    for peer in mesh.others(host):
        text += f"""\
{peer.name} {{
    local_addrs = {host.underlay}
    remote_addrs = {peer.underlay}
    encap = yes
    local {{
        auth = psk
    }}
    remote {{
        auth = psk
    }}
    children {{
        {peer.name} {{
            local_ts = {host.overlay.ip}/32
            remote_ts = {peer.overlay.ip}/32
            {esp}
        }}
    }}
}}
"""
    return text + f'}}\nsecrets {{\nike {{\nsecret = "{secret}"\n}}\n}}\n'


def _files(mesh: Mesh, host: MeshNode, secret: str, options: StrongSwanOptions) -> list[File]:
    return [
        host.file("strongswan.conf", DAEMON),
        host.file("swanctl.conf", _connections(mesh, host, secret, options)),
    ]


def _connect(host: MeshNode, peer: MeshNode) -> Command:
    return host.command("sh", "-c", CONNECT, peer.name)


def deploy(mesh: Mesh, options: StrongSwanOptions) -> Deployment:
    """Return the deployment: every node connects to all earlier nodes, and then to the later ones.

    The later ones have usually connected by then; only a restarted node has to connect to them.
    """
    secret = secrets.token_urlsafe(32)
    daemons, configure, earlier, later = [], [], [], []
    for place, host in enumerate(mesh.hosts):
        env = {"STRONGSWAN_CONF": host.path("strongswan.conf")}
        daemons.append(host.daemon("charon", "charon-systemd", ready=VICI, env=env))
        configure.append(host.command("ip", "address", "add", str(host.overlay), "dev", INTERFACE))
        configure.append(host.command("swanctl", "--load-all", "--file", host.path("swanctl.conf")))
        earlier += [_connect(host, peer) for peer in mesh.hosts[:place]]
        later += [_connect(host, peer) for peer in mesh.hosts[place + 1 :]]
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host, secret, options)),
        phases=(tuple(daemons), tuple(configure), tuple(earlier), tuple(later)),
    )


DRIVER = Driver(
    name="strongswan",
    title="strongSwan (IPsec in user space)",
    homepage="https://strongswan.org/",
    packages=(
        "charon-systemd",
        "strongswan-swanctl",
        "libcharon-extra-plugins",
        "libstrongswan-extra-plugins",
        "libstrongswan-standard-plugins",
        "iproute2",
    ),
    programs=("charon-systemd", "swanctl", "ip", "sh"),
    version=("swanctl", "--help"),  # `charon-systemd --version` would start the daemon
    version_pattern=r"strongSwan (\S+) swanctl",
    deploy=deploy,
    options=StrongSwanOptions,
    ipv6=True,
    variants={"strongswan-aes256gcm": {"esp": "aes256gcm16"}, "strongswan-chacha20": {"esp": "chacha20poly1305"}},
)
