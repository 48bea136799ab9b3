"""Nebula: a mesh over UDP with certificates from an own CA; the hub is the lighthouse that knows where nodes are."""

from __future__ import annotations

import json

from tunnelmark.vpns.base import Daemon, Deployment, Driver, Fact, Features, File, Host, Mesh, Options, Overlay, UdpPort

INTERFACE = "nebula0"
PORT = 4242


def _config(mesh: Mesh, host: Host) -> str:
    """A node's configuration; JSON is YAML, which is what nebula reads."""
    anyone = [{"port": "any", "proto": "any", "host": "any"}]
    hub = str(mesh.hub.overlay.ip)
    is_hub = host == mesh.hub
    return json.dumps(
        {
            "pki": {
                "ca": str(host.dir / "ca.crt"),
                "cert": str(host.dir / "node.crt"),
                "key": str(host.dir / "node.key"),
            },
            "static_host_map": {} if is_hub else {hub: [f"{mesh.hub.underlay}:{PORT}"]},
            "lighthouse": {"am_lighthouse": is_hub, "hosts": [] if is_hub else [hub]},
            "listen": {"host": str(host.underlay), "port": PORT},
            "tun": {"dev": INTERFACE},
            "firewall": {"outbound": anyone, "inbound": anyone},
        },
        indent=1,
    )


def _files(mesh: Mesh, host: Host) -> list[File]:
    return [
        File(host.name, host.dir / "config.yml", _config(mesh, host)),
        File(host.name, host.dir / "ca.crt", from_desk="ca.crt"),
        File(host.name, host.dir / "node.crt", from_desk=f"{host.name}.crt"),
        File(host.name, host.dir / "node.key", from_desk=f"{host.name}.key"),
    ]


def _sign(host: Host) -> tuple[str, ...]:
    files = ("-out-crt", f"{host.name}.crt", "-out-key", f"{host.name}.key")
    return ("nebula-cert", "sign", "-name", host.name, "-ip", str(host.overlay), *files)


def _daemon(host: Host) -> Daemon:
    return Daemon(host.name, "nebula", ("nebula", "-config", str(host.dir / "config.yml")), ready=UdpPort(PORT))


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """The lighthouse listens before any node reports to it; a handshake that is lost costs 0.1 to 0.5 s."""
    return Deployment(
        overlays={host.name: Overlay(INTERFACE, host.overlay.ip) for host in mesh.hosts},
        desk=(("nebula-cert", "ca", "-name", "tunnelmark"), *(_sign(host) for host in mesh.hosts)),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host)),
        phases=((_daemon(mesh.hub),), tuple(_daemon(spoke) for spoke in mesh.spokes)),
    )


_EXAMPLE = "/usr/share/doc/nebula/examples/config.yml"
_SEEN = "2026-11-21"  # when the facts below were looked up

DRIVER = Driver(
    name="nebula",
    title="Nebula",
    homepage="https://nebula.defined.net/",
    packages=("nebula",),
    programs=("nebula", "nebula-cert"),
    version=("nebula", "-version"),
    version_pattern=r"Version: (\S+)",
    deploy=deploy,
    features=Features(
        transport=Fact("UDP", f"{_EXAMPLE}: listen", _SEEN),
        encryption=Fact("AES-256-GCM", f"{_EXAMPLE}: cipher; measured here, 1.6.1", _SEEN),
        handshake=Fact("Noise IX (X25519, SHA-256)", "nebula 1.6.1: handshake_ix.go, noise.go", _SEEN),
        routing=Fact("full mesh, peers found through a lighthouse", f"{_EXAMPLE}: lighthouse", _SEEN),
        inner=Fact("IPv4", "nebula-cert sign -help: -ip", _SEEN),
        mtu=Fact("1300", f"{_EXAMPLE}: tun.mtu; measured here, 1.6.1", _SEEN),
        datapath=Fact("user space over TUN, one routine a direction", f"{_EXAMPLE}: routines", _SEEN),
        licence=Fact("MIT", "/usr/share/doc/nebula/copyright", _SEEN),
    ),
)
