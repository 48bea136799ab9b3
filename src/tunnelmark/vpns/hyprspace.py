"""Hyprspace: a mesh over libp2p; nodes know each other's keys, and find each other through the hub or by mDNS."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, TcpPort
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "hypr0"
PORT = 8001
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58(data: bytes) -> str:
    """Return `data` in Base58 as libp2p writes it (base58btc of the multibase table)."""
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _secret(key: Ed25519PrivateKey) -> str:
    """Return a private key as `hyprspace init` writes it: libp2p's protobuf (type 1, 64 bytes), multibase z."""
    return "z" + _base58(b"\x08\x01\x12\x40" + key.private_bytes_raw() + _public(key))


def peer_id(key: Ed25519PrivateKey) -> str:
    """Return a node's name in libp2p: the identity multihash of its public key (libp2p specs: peer-ids.md)."""
    return _base58(b"\x00\x24\x08\x01\x12\x20" + _public(key))


def _config(mesh: Mesh, host: MeshNode, keys: dict[str, Ed25519PrivateKey]) -> str:
    hub = f"/ip4/{mesh.hub.underlay}/tcp/{PORT}/p2p/{peer_id(keys[mesh.hub.name])}"
    return json.dumps(
        {
            "privateKey": _secret(keys[host.name]),
            "listenAddresses": [f"/ip4/0.0.0.0/tcp/{PORT}", f"/ip4/0.0.0.0/udp/{PORT}/quic-v1"],
            "bootstrapPeers": [] if host == mesh.hub else [hub],
            "peers": [{"name": other.name, "id": peer_id(keys[other.name])} for other in mesh.others(host)],
        },
        indent=1,
    )


def _daemon(host: MeshNode) -> Daemon:
    argv = ("hyprspace", "up", "-i", INTERFACE, "-c", host.path("hyprspace.json"))
    return host.daemon("hyprspace", *argv, ready=TcpPort(PORT))


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: the hub starts before the spokes, which look for it. Overlay addresses come from keys."""
    keys = {host.name: Ed25519PrivateKey.generate() for host in mesh.hosts}
    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        files=tuple(host.file("hyprspace.json", _config(mesh, host, keys)) for host in mesh.hosts),
        phases=((_daemon(mesh.hub),), tuple(_daemon(spoke) for spoke in mesh.spokes)),
    )


DRIVER = Driver(
    name="hyprspace",
    title="Hyprspace",
    homepage="https://github.com/hyprspace/hyprspace",
    recipe="hyprspace",
    programs=("hyprspace",),
    version=("hyprspace", "version"),
    version_pattern=r"hyprspace v?(\S+)",
    deploy=deploy,
    startup_time=5.0,
)
