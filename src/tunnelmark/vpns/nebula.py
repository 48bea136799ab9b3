"""Nebula: a mesh over UDP with certificates from its own CA; a lighthouse gives nodes the addresses of others."""

from __future__ import annotations

import json
from typing import Any, Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, File, UdpPort
from tunnelmark.vpns.base import Build, Deployment, Driver, Mesh, MeshNode

INTERFACE = "nebula0"
PORT = 4242
PROGRAMS = ("nebula", "nebula-cert")
VERSION = ("nebula", "-version")
VERSION_PATTERN = r"Version: v?(\S+)"


class NebulaOptions(Options):
    """`build`: a version of Nebula; None is that of Debian's package.

    `relay`: nodes reach each other only through the relay's node.
    `punch`: punches holes through address translation (it is off as shipped; the makers' example turns it on).
    """

    build: Literal["1.10"] | None = None
    relay: bool = False
    punch: bool = False


def _lighthouse(mesh: Mesh, options: NebulaOptions) -> MeshNode:
    """Return the lighthouse: the hub, or with `relay` the relay, so that nodes need only one reachable address."""
    return mesh.relay if options.relay else mesh.hub


def _ways(lighthouse: MeshNode, is_lighthouse: bool) -> dict[str, Any]:
    """Return the settings that make nodes use the relay: they accept no underlay address but the relay's.

    The makers' own `remote_allow_list` has the same effect on handshakes as a firewall between the nodes.
    """
    if is_lighthouse:
        return {"relay": {"am_relay": True}}
    everybody = "::/0" if lighthouse.underlay.version == 6 else "0.0.0.0/0"
    allowed = {everybody: False, f"{lighthouse.underlay}/{lighthouse.underlay.max_prefixlen}": True}
    return {"relay": {"relays": [str(lighthouse.overlay.ip)]}, "lighthouse": {"remote_allow_list": allowed}}


def _config(mesh: Mesh, host: MeshNode, options: NebulaOptions) -> str:
    """Return a node's configuration as JSON; nebula reads YAML, which includes JSON."""
    anyone = [{"port": "any", "proto": "any", "host": "any"}]
    lighthouse = _lighthouse(mesh, options)
    address = str(lighthouse.overlay.ip)
    here = host == lighthouse
    ways = _ways(lighthouse, here) if options.relay else {}
    return json.dumps(
        {
            "pki": {
                "ca": host.path("ca.crt"),
                "cert": host.path("node.crt"),
                "key": host.path("node.key"),
            },
            "static_host_map": {} if here else {address: [lighthouse.endpoint(PORT)]},
            "listen": {"port": PORT} | ({"host": "::"} if host.underlay.version == 6 else {}),
            "tun": {"dev": INTERFACE},
            "firewall": {"outbound": anyone, "inbound": anyone},
            **({"punchy": {"punch": True, "respond": True}} if options.punch else {}),
            **ways,
            "lighthouse": {"am_lighthouse": here, "hosts": [] if here else [address], **ways.get("lighthouse", {})},
        },
        indent=1,
    )


def _files(mesh: Mesh, host: MeshNode, options: NebulaOptions) -> list[File]:
    return [
        host.file("config.yml", _config(mesh, host, options)),
        host.file("ca.crt", from_staging="ca.crt"),
        host.file("node.crt", from_staging=f"{host.name}.crt"),
        host.file("node.key", from_staging=f"{host.name}.key"),
    ]


def _sign(host: MeshNode) -> tuple[str, ...]:
    files = ("-out-crt", f"{host.name}.crt", "-out-key", f"{host.name}.key")
    return ("nebula-cert", "sign", "-name", host.name, "-ip", str(host.overlay), *files)


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("nebula", "nebula", "-config", host.path("config.yml"), ready=UdpPort(PORT))


def deploy(mesh: Mesh, options: NebulaOptions) -> Deployment:
    """Return the deployment: the lighthouse starts first, because a lost handshake with it would cost 0.1 to 0.5 s."""
    lighthouse = _lighthouse(mesh, options)
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        staging=(("nebula-cert", "ca", "-name", "tunnelmark"), *(_sign(host) for host in mesh.hosts)),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host, options)),
        phases=((_daemon(lighthouse),), tuple(_daemon(host) for host in mesh.others(lighthouse))),
        relayed=options.relay,
    )


DRIVER = Driver(
    name="nebula",
    title="Nebula",
    homepage="https://nebula.defined.net/",
    packages=("nebula",),
    programs=PROGRAMS,
    version=VERSION,
    version_pattern=VERSION_PATTERN,
    deploy=deploy,
    options=NebulaOptions,
    builds={"1.10": Build(PROGRAMS, VERSION, VERSION_PATTERN, recipe="nebula-1.10")},
    variants={
        "nebula-1.10": {"build": "1.10"},
        "nebula-relay": {"relay": True},
        "nebula-punch": {"punch": True},
        "nebula-1.10-relay": {"build": "1.10", "relay": True},
    },
    ipv6=True,
)
