"""Yggdrasil: an IPv6 overlay whose addresses come from keys and whose packets are routed along a tree."""

from __future__ import annotations

import json
from typing import Literal, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import model_validator

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, TcpPort, UdpPort
from tunnelmark.vpns.base import Build, Deployment, Driver, Mesh, MeshNode

INTERFACE = "ygg0"
PORT = 9001


class YggdrasilOptions(Options):
    """`build`: a version; None is Debian's. `transport` carries the packets between peers; `quic` needs build 0.5."""

    build: Literal["0.5"] | None = None
    transport: Literal["tcp", "tls", "quic"] = "tcp"

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.transport == "quic" and self.build is None:
            raise ValueError('Yggdrasil 0.4 has no QUIC; `build = "0.5"` has')
        return self


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _config(mesh: Mesh, host: MeshNode, key: Ed25519PrivateKey, options: YggdrasilOptions) -> str:
    """Return a node's configuration; what is not set here keeps the default of `yggdrasil -genconf`."""
    public = _public(key)
    hub = f"{options.transport}://{mesh.hub.endpoint(PORT)}"
    return json.dumps(
        {
            # Go's form of an ed25519 private key: the seed with the public key behind it.
            "PrivateKey": (key.private_bytes_raw() + public).hex(),
            "PublicKey": public.hex(),  # 0.4 requires it; 0.5 ignores it
            "Listen": [hub] if host == mesh.hub else [],
            "Peers": [] if host == mesh.hub else [hub],
            "MulticastInterfaces": [],
            "AdminListen": "none",
            "IfName": INTERFACE,
        },
        indent=1,
    )


def _daemon(host: MeshNode, ready: TcpPort | UdpPort | None = None) -> Daemon:
    return host.daemon("yggdrasil", "yggdrasil", "-useconffile", host.path("yggdrasil.conf"), ready=ready)


def deploy(mesh: Mesh, options: YggdrasilOptions) -> Deployment:
    """Return the deployment: the hub starts first, as Yggdrasil 0.4 repeats a refused peering only after a minute.

    Addresses are read from the interface, because the daemon derives them from its key.
    """
    keys = sorted((Ed25519PrivateKey.generate() for _ in mesh.hosts), key=_public)
    listens = UdpPort(PORT) if options.transport == "quic" else TcpPort(PORT)
    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        files=tuple(
            host.file("yggdrasil.conf", _config(mesh, host, key, options))
            for host, key in zip(mesh.hosts, keys, strict=True)
        ),
        phases=((_daemon(mesh.hub, listens),), tuple(_daemon(spoke) for spoke in mesh.spokes)),
    )


# Debian's build says that its version is unknown. Then dpkg is asked for the package that holds the file.
_VERSION = """
said=$(yggdrasil -version 2>&1)
case $said in
*"version: unknown"*)
    file=$(readlink -f "$(command -v yggdrasil)")
    package=$(dpkg-query -S "$file" 2>/dev/null) && dpkg-query -W -f 'version: ${Version}' "${package%%: *}" ;;
*)
    echo "$said" ;;
esac
"""
_PATTERN = r"version: (\d\S*)"

DRIVER = Driver(
    name="yggdrasil",
    title="Yggdrasil",
    homepage="https://yggdrasil-network.github.io/",
    packages=("yggdrasil",),
    programs=("yggdrasil",),
    version=("sh", "-c", _VERSION),
    version_pattern=_PATTERN,
    deploy=deploy,
    options=YggdrasilOptions,
    builds={"0.5": Build(("yggdrasil",), ("yggdrasil", "-version"), _PATTERN, recipe="yggdrasil-0.5")},
    variants={
        "yggdrasil-tls": {"transport": "tls"},
        "yggdrasil-0.5": {"build": "0.5"},
        "yggdrasil-0.5-tls": {"build": "0.5", "transport": "tls"},
        "yggdrasil-0.5-quic": {"build": "0.5", "transport": "quic"},
    },
    ipv6=True,
)
