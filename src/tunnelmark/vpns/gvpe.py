"""GNU VPE: an Ethernet mesh whose nodes share one configuration file and dial each other, over UDP, TCP, or IP itself."""

from __future__ import annotations

from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import File, Interface, ReadyWhen, TcpPort, UdpPort
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "gvpe0"
READY: dict[str, ReadyWhen] = {"udp": UdpPort(655), "tcp": TcpPort(655), "rawip": Interface(INTERFACE)}


class GvpeOptions(Options):
    """`transport` carries packets: `udp` (as in the makers' sample), `tcp`, or `rawip` (an IP protocol of its own)."""

    transport: Literal["udp", "tcp", "rawip"] = "udp"


def _config(mesh: Mesh, options: GvpeOptions) -> str:
    """Return the configuration file, which is the same on all nodes."""
    lines = [f"ifname = {INTERFACE}", "if-up = if-up", "enable-udp = no", f"enable-{options.transport} = yes"]
    for host in mesh.hosts:
        lines += [f"node = {host.name}", f"hostname = {host.underlay}"]
    return "\n".join(lines) + "\n"


def _files(mesh: Mesh, host: MeshNode, options: GvpeOptions) -> list[File]:
    up = f"#!/bin/sh\nip address add {host.overlay} dev $IFNAME && exec ip link set $IFNAME up\n"
    return [
        host.file("gvpe.conf", _config(mesh, options)),
        host.file("if-up", up, mode=0o700),
        host.file("hostkey", from_staging=f"{host.name}.privkey"),
        *(host.file(f"pubkey/{peer.name}", from_staging=peer.name) for peer in mesh.hosts),
    ]


def deploy(mesh: Mesh, options: GvpeOptions) -> Deployment:
    """Return the deployment: nodes start one after the other, so that each dial is answered.

    A dial without an answer is repeated at ever longer intervals.
    """
    argv, ready = ("gvpe", "-D", "-l", "info", "-c"), READY[options.transport]
    daemons = (host.daemon("gvpe", *argv, str(host.dir), host.name, ready=ready) for host in mesh.hosts)
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        staging=(("touch", "gvpe.conf"), *(("gvpectrl", "-c", ".", "-q", "-g", host.name) for host in mesh.hosts)),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host, options)),
        phases=tuple((daemon,) for daemon in daemons),
    )


DRIVER = Driver(
    name="gvpe",
    title="GNU VPE",
    homepage="https://software.schmorp.de/pkg/gvpe.html",
    packages=("gvpe", "net-tools", "iproute2"),
    programs=("gvpe", "gvpectrl", "touch", "ifconfig", "ip"),
    version=("gvpe", "--version"),
    version_pattern=r"gvpe version (\S+)",
    deploy=deploy,
    options=GvpeOptions,
    variants={"gvpe-tcp": {"transport": "tcp"}, "gvpe-rawip": {"transport": "rawip"}},
)
