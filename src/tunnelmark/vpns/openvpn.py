"""OpenVPN over UDP with AES-256-GCM: the hub is the server, the other nodes are its clients."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tunnelmark.vpns.base import Daemon, Deployment, Driver, Fact, Features, File, Host, Mesh, Options, Overlay, UdpPort

INTERFACE = "ovpn0"
PORT = 1194
_COMMON = f"""\
dev {INTERFACE}
dev-type tun
topology subnet
proto udp4
data-ciphers AES-256-GCM
persist-key
persist-tun
verb 3
"""


def _identity(host: Host) -> tuple[str, str]:
    """A fresh self-signed certificate with its key, as a config's inline blocks, and its SHA-256 fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host.name)])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    certificate = builder.sign(key, hashes.SHA256())
    public = certificate.public_bytes(Encoding.PEM).decode()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return f"<cert>\n{public}</cert>\n<key>\n{private}</key>\n", certificate.fingerprint(hashes.SHA256()).hex(":")


def _server(mesh: Mesh, fingerprints: tuple[str, ...]) -> str:
    hub = mesh.hub
    config = f"mode server\ntls-server\ndh none\nlocal {hub.underlay}\nport {PORT}\n"
    config += f'ifconfig {hub.overlay.ip} {hub.overlay.netmask}\npush "topology subnet"\n'
    config += f"client-config-dir {hub.dir / 'clients'}\nccd-exclusive\n"
    config += "keepalive 10 120\nexplicit-exit-notify 1\n"  # as OpenVPN's own sample server.conf has them
    config += "client-to-client\n" if len(mesh.hosts) > 2 else ""
    return config + "<peer-fingerprint>\n" + "\n".join(fingerprints) + "\n</peer-fingerprint>\n"


def _daemon(host: Host, ready: UdpPort | None = None) -> Daemon:
    return Daemon(host.name, "openvpn", ("openvpn", "--config", str(host.dir / "openvpn.conf")), ready)


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Clients start once the server's port is bound: a lost first packet is sent again after 2 s only."""
    hub = mesh.hub
    blocks, fingerprints = zip(*(_identity(host) for host in mesh.hosts), strict=True)
    client = f"client\nnobind\nremote {hub.underlay} {PORT}\npeer-fingerprint {fingerprints[0]}\n"
    configs = [_server(mesh, fingerprints[1:]), *(client for _ in mesh.spokes)]
    files = [
        File(host.name, host.dir / "openvpn.conf", _COMMON + config + block)
        for host, config, block in zip(mesh.hosts, configs, blocks, strict=True)
    ]
    for spoke in mesh.spokes:
        address = f"ifconfig-push {spoke.overlay.ip} {spoke.overlay.netmask}\n"
        files.append(File(hub.name, hub.dir / "clients" / spoke.name, address))
    return Deployment(
        overlays={host.name: Overlay(INTERFACE, host.overlay.ip) for host in mesh.hosts},
        files=tuple(files),
        phases=((_daemon(hub, UdpPort(PORT)),), tuple(_daemon(spoke) for spoke in mesh.spokes)),
    )


_SEEN = "2026-11-21"  # when the facts below were looked up

DRIVER = Driver(
    name="openvpn",
    title="OpenVPN (UDP, AES-256-GCM)",
    homepage="https://openvpn.net/community/",
    packages=("openvpn",),
    programs=("openvpn",),
    version=("openvpn", "--version"),
    version_pattern=r"OpenVPN (\S+)",
    deploy=deploy,
    features=Features(
        transport=Fact("UDP (TCP is an option)", "openvpn(8): --proto", _SEEN),
        encryption=Fact("AES-256-GCM", "openvpn(8): --data-ciphers, its first choice as shipped", _SEEN),
        handshake=Fact("TLS 1.3, here with pinned certificates", "openvpn(8): --peer-fingerprint; log", _SEEN),
        routing=Fact("hub and spoke", "openvpn(8): --client-to-client", _SEEN),
        inner=Fact("IPv4 and IPv6 (Ethernet over TAP)", "openvpn(8): --dev-type, --ifconfig-ipv6", _SEEN),
        mtu=Fact("1500, TCP segments cut to fit 1492", "openvpn(8): --tun-mtu, --mssfix", _SEEN),
        datapath=Fact("user space over TUN, one thread (no DCO module)", "measured here, 2.6.14: log", _SEEN),
        licence=Fact("GPL-2.0 with OpenSSL exception", "/usr/share/doc/openvpn/copyright", _SEEN),
    ),
)
