"""OpenVPN over UDP or TCP: the hub is the server, the other nodes are its clients."""

from __future__ import annotations

from typing import Literal

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, TcpPort, UdpPort
from tunnelmark.vpns._certificate import self_signed
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "ovpn0"
PORT = 1194


class OpenVpnOptions(Options):
    """`cipher` encrypts the data: by default AES-256-GCM, the first choice of OpenVPN. `proto` carries the data."""

    cipher: Literal["AES-256-GCM", "CHACHA20-POLY1305"] = "AES-256-GCM"
    proto: Literal["udp", "tcp"] = "udp"


def overhead(options: OpenVpnOptions) -> int:
    """Return the bytes that OpenVPN adds to each packet over IPv4.

    Over UDP: the headers of IPv4 and UDP, opcode with peer ID, packet number and tag (openvpn: doc/protocol overview,
    ssl.h, crypto.h). Over TCP it is 0: packets are a stream, which the kernel cuts into segments that fit.
    """
    return 20 + 8 + 4 + 4 + 16 if options.proto == "udp" else 0


def _common(mesh: Mesh, host: MeshNode, options: OpenVpnOptions, role: str) -> str:
    """Return the settings of server and client; `proto` has the underlay's IP version, and with TCP the role."""
    proto = f"{options.proto}{host.underlay.version}" + (f"-{role}" if options.proto == "tcp" else "")
    return f"""\
dev {host.interface(INTERFACE)}
dev-type tun
topology subnet
proto {proto}
data-ciphers {options.cipher}
persist-key
persist-tun
verb 3
""" + ("" if mesh.mtu is None else f"tun-mtu {mesh.mtu}\n")


def _identity(host: MeshNode) -> tuple[str, str]:
    """Return a new self-signed certificate with its key, as inline blocks of a config, and its SHA-256 fingerprint."""
    certificate, private = self_signed(host.name)
    public = certificate.public_bytes(Encoding.PEM).decode()
    return f"<cert>\n{public}</cert>\n<key>\n{private}</key>\n", certificate.fingerprint(hashes.SHA256()).hex(":")


def _server(mesh: Mesh, fingerprints: tuple[str, ...], options: OpenVpnOptions) -> str:
    hub = mesh.hub
    config = _common(mesh, hub, options, "server")
    config += f"mode server\ntls-server\ndh none\nlocal {hub.underlay}\nport {hub.port(PORT)}\n"
    config += f'ifconfig {hub.overlay.ip} {hub.overlay.netmask}\npush "topology subnet"\n'
    config += f"client-config-dir {hub.dir / 'clients'}\nccd-exclusive\n"
    # Both are from OpenVPN's sample server.conf, which says that the second is for UDP only.
    config += "keepalive 10 120\n" + ("explicit-exit-notify 1\n" if options.proto == "udp" else "")
    config += "client-to-client\n" if len(mesh.hosts) > 2 else ""
    return config + "<peer-fingerprint>\n" + "\n".join(fingerprints) + "\n</peer-fingerprint>\n"


def _daemon(host: MeshNode, ready: UdpPort | TcpPort | None = None) -> Daemon:
    return host.daemon("openvpn", "openvpn", "--config", host.path("openvpn.conf"), ready=ready)


def deploy(mesh: Mesh, options: OpenVpnOptions) -> Deployment:
    """Return the deployment: clients start once the server's port is bound, as a lost first packet costs 2 s."""
    hub = mesh.hub
    blocks, fingerprints = zip(*(_identity(host) for host in mesh.hosts), strict=True)
    client = f"client\nnobind\nremote {hub.underlay} {hub.port(PORT)}\npeer-fingerprint {fingerprints[0]}\n"
    clients = [_common(mesh, spoke, options, "client") + client for spoke in mesh.spokes]
    configs = [_server(mesh, fingerprints[1:], options), *clients]
    files = [
        host.file("openvpn.conf", config + block)
        for host, config, block in zip(mesh.hosts, configs, blocks, strict=True)
    ]
    for spoke in mesh.spokes:
        address = f"ifconfig-push {spoke.overlay.ip} {spoke.overlay.netmask}\n"
        address += "".join(f"iroute {network.network_address} {network.netmask}\n" for network in spoke.behind)
        files.append(hub.file(f"clients/{spoke.name}", address))
    bound = (TcpPort if options.proto == "tcp" else UdpPort)(hub.port(PORT))
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(files),
        phases=((_daemon(hub, bound),), tuple(_daemon(spoke) for spoke in mesh.spokes)),
    )


DRIVER = Driver(
    name="openvpn",
    title="OpenVPN",
    homepage="https://openvpn.net/community/",
    packages=("openvpn",),
    programs=("openvpn",),
    version=("openvpn", "--version"),
    version_pattern=r"OpenVPN (\S+)",
    deploy=deploy,
    options=OpenVpnOptions,
    variants={"openvpn-chacha20": {"cipher": "CHACHA20-POLY1305"}, "openvpn-tcp": {"proto": "tcp"}},
    ipv6=True,
    cascades=True,
    overhead=overhead,
)
