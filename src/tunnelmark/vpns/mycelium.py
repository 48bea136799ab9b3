"""Mycelium: an IPv6 overlay whose addresses follow from keys; nodes peer with each other, and Babel finds routes."""

from __future__ import annotations

from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, TcpPort
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "myc0"
PORT = 9651


class MyceliumOptions(Options):
    """`transport`: the protocol of the connections between peers; a peer's address begins with it, as in `tcp://`.

    With `quic`, version 0.7.10 sends packets as QUIC datagrams. On a path with an MTU of 1500 bytes these cannot hold
    packets of Mycelium's own MTU of 1400 bytes: pings of that size and all TCP fail. So the driver has no arm with
    `quic` among its `variants`.
    """

    transport: Literal["tcp", "quic"] = "tcp"


def _daemon(mesh: Mesh, host: MeshNode, transport: str) -> Daemon:
    peers = [f"{transport}://{other.endpoint(PORT)}" for other in mesh.hosts[: mesh.hosts.index(host)]]
    argv = ["mycelium", "-k", host.path("key.bin"), "--tun-name", INTERFACE, "--disable-peer-discovery"]
    return host.daemon("mycelium", *argv, *(["--peers", *peers] if peers else []), ready=TcpPort(PORT))


def deploy(mesh: Mesh, options: MyceliumOptions) -> Deployment:
    """Return the deployment: each node peers with all earlier nodes; it makes its key at its first start only."""
    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        phases=(
            tuple(host.command("mkdir", "-p", str(host.dir)) for host in mesh.hosts),  # mycelium makes no folder
            *((_daemon(mesh, host, options.transport),) for host in mesh.hosts),
        ),
    )


DRIVER = Driver(
    name="mycelium",
    title="Mycelium",
    homepage="https://github.com/threefoldtech/mycelium",
    recipe="mycelium",
    programs=("mycelium", "mkdir"),
    version=("mycelium", "--version"),
    version_pattern=r"mycelium v?(\S+)",
    deploy=deploy,
    options=MyceliumOptions,
    startup_time=5.0,
)
