"""n2n 1: an Ethernet between edges (the nodes), which a supernode introduces to each other."""

from __future__ import annotations

import secrets

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, LogMatch, Step, UdpPort
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "n2n0"
PORT = 7654  # the supernode's port in all of the makers' examples
EDGE_PORT = 7655
REGISTERED = LogMatch("Received REGISTER_ACK")
EDGE = 'N2N_KEY=$(cat "$0") && export N2N_KEY && exec edge "$@"'
"""A script that starts an edge with its key from a file; on the command line every user could read it."""


def _mac(mesh: Mesh, host: MeshNode) -> str:
    """Return an edge's fixed MAC ("highly recommended" by edge(8)); else peers keep the one from before a restart."""
    return f"02:60:00:00:00:{mesh.hosts.index(host) + 1:02x}"


def _edge(mesh: Mesh, host: MeshNode) -> Daemon:
    # -p: peers do not find an edge that restarts on another port (edge(8) recommends -p for that purpose).
    # There is no -f, which means "go to the background" in this version.
    place = ("-d", INTERFACE, "-m", _mac(mesh, host), "-a", str(host.overlay.ip), "-s", str(host.overlay.netmask))
    network = ("-c", "tunnelmark", "-l", mesh.hub.endpoint(PORT), "-p", str(EDGE_PORT))
    return host.daemon("edge", "sh", "-c", EDGE, host.path("key"), *place, *network, ready=REGISTERED)


def _joins(mesh: Mesh, host: MeshNode) -> list[tuple[Step, ...]]:
    """Return the phases in which an edge registers, and then pings all earlier edges one after the other.

    If an edge meets two peers at the same moment, it sometimes sends neither of them anything from then on (see
    `DRIVER.known_restart_bug`).
    """
    before = mesh.hosts[: mesh.hosts.index(host)]
    meets = [host.succeeds("ping", "-n", "-q", "-c1", "-w1", str(peer.overlay.ip)) for peer in before]
    return [(_edge(mesh, host),), *((one,) for one in meets)]


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: the supernode is a separate program on the hub, in addition to the hub's edge."""
    key = secrets.token_urlsafe(24)
    supernode = mesh.hub.daemon("supernode", "supernode", "-l", str(PORT), ready=UdpPort(PORT), control=True)
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        files=tuple(host.file("key", key) for host in mesh.hosts),
        phases=((supernode,), *(phase for host in mesh.hosts for phase in _joins(mesh, host))),
    )


DRIVER = Driver(
    name="n2n",
    title="n2n 1.3",
    homepage="https://github.com/ntop/n2n",
    packages=("n2n", "iputils-ping"),
    programs=("edge", "supernode", "ping", "sh"),
    version=("edge", "-h"),
    version_pattern=r"n2n v\.(\S+)",
    deploy=deploy,
    # Seen with 1.3.2 in 1 of 8 starts: its list shows both peers as operational, but it does not answer their packets.
    known_restart_bug="an edge that meets two peers at the same moment, as one that comes back does, may send both nothing for good",
)
