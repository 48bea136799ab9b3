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
explicit-exit-notify 1
verb 3
"""


def _identity(host: Host) -> tuple[str, str]:
    """A fresh self-signed certificate with its key, as a config's inline blocks, and its SHA-256 fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host.name)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)  # a day of slack before, so that a clock that was set back does no harm
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + 365 * day)
    certificate = made.sign(key, hashes.SHA256())
    public = certificate.public_bytes(Encoding.PEM).decode()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return f"<cert>\n{public}</cert>\n<key>\n{private}</key>\n", certificate.fingerprint(hashes.SHA256()).hex(":")


def _server(mesh: Mesh, blocks: str, fingerprints: list[str]) -> list[File]:
    hub = mesh.hub
    folder = hub.dir / "clients"
    netmask = hub.overlay.netmask
    config = f"mode server\ntls-server\ndh none\nlocal {hub.underlay}\nport {PORT}\n"
    config += f'ifconfig {hub.overlay.ip} {netmask}\npush "topology subnet"\n'
    config += f"client-config-dir {folder}\nccd-exclusive\nkeepalive 10 120\n"
    if len(mesh.hosts) > 2:
        config += "client-to-client\n"
    config += "<peer-fingerprint>\n" + "\n".join(fingerprints) + "\n</peer-fingerprint>\n"
    files = [File(hub.name, hub.dir / "openvpn.conf", _COMMON + config + blocks)]
    for spoke in mesh.spokes:
        files.append(File(hub.name, folder / spoke.name, f"ifconfig-push {spoke.overlay.ip} {netmask}\n"))
    return files


def _client(mesh: Mesh, host: Host, blocks: str, fingerprint: str) -> File:
    config = f"client\nnobind\nremote {mesh.hub.underlay} {PORT}\npeer-fingerprint {fingerprint}\n"
    return File(host.name, host.dir / "openvpn.conf", _COMMON + config + blocks)


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Clients start once the server's port is bound: a lost first packet costs a TLS repetition of 2 s."""
    identity = {host.name: _identity(host) for host in mesh.hosts}
    blocks, fingerprint = identity[mesh.hub.name]
    files = _server(mesh, blocks, [identity[spoke.name][1] for spoke in mesh.spokes])
    files += [_client(mesh, spoke, identity[spoke.name][0], fingerprint) for spoke in mesh.spokes]
    daemons = {
        host.name: Daemon(host.name, "openvpn", ("openvpn", "--config", str(host.dir / "openvpn.conf")), ready)
        for host in mesh.hosts
        for ready in [UdpPort(PORT) if host == mesh.hub else None]
    }
    return Deployment(
        overlays={host.name: Overlay(INTERFACE, host.overlay.ip) for host in mesh.hosts},
        files=tuple(files),
        phases=((daemons[mesh.hub.name],), tuple(daemons[spoke.name] for spoke in mesh.spokes)),
    )


DRIVER = Driver(
    name="openvpn",
    title="OpenVPN (UDP, AES-256-GCM)",
    homepage="https://openvpn.net/community/",
    packages=("openvpn",),
    programs=("openvpn",),
    version=("sh", "-c", "openvpn --version || true"),
    version_pattern=r"OpenVPN (\S+)",
    deploy=deploy,
    features=Features(
        transport=Fact("UDP (TCP is an option)", "openvpn(8): --proto", "2026-11-21"),
        encryption=Fact("AES-256-GCM", "openvpn(8): --data-ciphers, its first choice as shipped", "2026-11-21"),
        handshake=Fact("TLS 1.3, here with pinned certificates", "openvpn(8): --peer-fingerprint; log", "2026-11-21"),
        routing=Fact("hub and spoke", "openvpn(8): --client-to-client", "2026-11-21"),
        inner=Fact("IPv4 and IPv6 (Ethernet over TAP)", "openvpn(8): --dev-type, --ifconfig-ipv6", "2026-11-21"),
        mtu=Fact("1500, TCP segments cut to fit 1492", "openvpn(8): --tun-mtu, --mssfix", "2026-11-21"),
        datapath=Fact("user space over TUN, one thread (no DCO module)", "measured here, 2.6.14: log", "2026-11-21"),
        licence=Fact("GPL-2.0 with OpenSSL exception", "/usr/share/doc/openvpn/copyright", "2026-11-21"),
    ),
)
