"""wireguard-go, WireGuard in user space: a full mesh of peers over UDP."""

from __future__ import annotations

from base64 import b64encode
from pathlib import PurePosixPath

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import Field

from tunnelmark.vpns.base import (
    Command,
    Daemon,
    Deployment,
    Driver,
    Fact,
    Features,
    File,
    Host,
    Mesh,
    Options,
    Overlay,
    UnixSocket,
)

INTERFACE = "wg0"
PORT = 51820
SOCKET = UnixSocket(PurePosixPath(f"/var/run/wireguard/{INTERFACE}.sock"))  # fixed in wireguard-go's ipc/uapi_unix.go


class WireGuardOptions(Options):
    """`mtu` of the overlay interface in bytes; None leaves it as shipped."""

    mtu: int | None = Field(default=None, ge=576, le=65535)


def _config(mesh: Mesh, host: Host, keys: dict[str, X25519PrivateKey]) -> str:
    """What `wg setconf` reads: wg(8), "CONFIGURATION FILE FORMAT"."""
    private = b64encode(keys[host.name].private_bytes_raw()).decode()
    text = f"[Interface]\nPrivateKey = {private}\nListenPort = {PORT}\n"
    for peer in mesh.others(host):
        public = b64encode(keys[peer.name].public_key().public_bytes_raw()).decode()
        text += f"[Peer]\nPublicKey = {public}\nAllowedIPs = {peer.overlay.ip}/32\nEndpoint = {peer.underlay}:{PORT}\n"
    return text


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Every node peers with every other; interfaces go up last, when all of them know their keys.

    A handshake that reaches a node without keys is lost, and WireGuard repeats it after 5 s only.
    """
    assert isinstance(options, WireGuardOptions)
    keys = {host.name: X25519PrivateKey.generate() for host in mesh.hosts}
    mtu = () if options.mtu is None else ("mtu", str(options.mtu))
    daemons, configure, up = [], [], []
    for host in mesh.hosts:
        daemons.append(Daemon(host.name, "wireguard-go", ("wireguard-go", "-f", INTERFACE), ready=SOCKET))
        configure.append(Command(host.name, ("wg", "setconf", INTERFACE, str(host.dir / "wg.conf"))))
        configure.append(Command(host.name, ("ip", "address", "add", str(host.overlay), "dev", INTERFACE)))
        up.append(Command(host.name, ("ip", "link", "set", INTERFACE, *mtu, "up")))
    return Deployment(
        overlays={host.name: Overlay(INTERFACE, host.overlay.ip) for host in mesh.hosts},
        files=tuple(File(host.name, host.dir / "wg.conf", _config(mesh, host, keys)) for host in mesh.hosts),
        phases=(tuple(daemons), tuple(configure), tuple(up)),
    )


_PAPER = "https://www.wireguard.com/papers/wireguard.pdf"
_SEEN = "2026-11-21"  # when the facts below were looked up

DRIVER = Driver(
    name="wireguard-go",
    title="WireGuard (wireguard-go)",
    homepage="https://git.zx2c4.com/wireguard-go/",
    packages=("wireguard-go", "wireguard-tools", "iproute2"),
    programs=("wireguard-go", "wg", "ip"),
    version=("wireguard-go", "--version"),
    version_pattern=r"wireguard-go v?(\S+)",
    deploy=deploy,
    options=WireGuardOptions,
    features=Features(
        transport=Fact("UDP", f"{_PAPER} section 3", _SEEN),
        encryption=Fact("ChaCha20-Poly1305", f"{_PAPER} section 5.4.6", _SEEN),
        handshake=Fact("Noise IKpsk2 (X25519, BLAKE2s), renewed every 120 s", f"{_PAPER} sections 5 and 6", _SEEN),
        routing=Fact("full mesh, one hop, by allowed IPs", "wg(8), AllowedIPs", _SEEN),
        inner=Fact("IPv4 and IPv6", "wg(8), AllowedIPs", _SEEN),
        mtu=Fact("1420", "measured here, 0.0.20220316: ip link on the new interface", _SEEN),
        datapath=Fact("user space over TUN, one packet a system call, all cores", "its device/send.go", _SEEN),
        licence=Fact("MIT", "/usr/share/doc/wireguard-go/copyright", _SEEN),
    ),
)
