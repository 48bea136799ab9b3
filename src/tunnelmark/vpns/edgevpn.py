"""EdgeVPN: IP packets over libp2p streams; nodes with the same configuration find each other by multicast DNS."""

from __future__ import annotations

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "edgevpn0"  # as shipped
PORT = 4001  # libp2p's usual one


def _daemon(host: MeshNode) -> Daemon:
    """Return the daemon, which listens on TCP only: its QUIC (quic-go 0.49) panics if built by Go 1.25 or later."""
    listen = f"/ip4/{host.underlay}/tcp/{PORT}"
    argv = ("edgevpn", "--config", host.path("edgevpn.yaml"), "--address", str(host.overlay))
    return host.daemon("edgevpn", *argv, "--listen-maddrs", listen, env={"HOME": host.path("home")})


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: all nodes start at the same time; no configuration holds the address of another node."""
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        staging=(("sh", "-c", "umask 077; edgevpn -g > edgevpn.yaml"),),
        files=tuple(host.file("edgevpn.yaml", from_staging="edgevpn.yaml") for host in mesh.hosts),
        phases=(tuple(_daemon(host) for host in mesh.hosts),),
    )


DRIVER = Driver(
    name="edgevpn",
    title="EdgeVPN",
    homepage="https://github.com/mudler/edgevpn",
    programs=("edgevpn", "sh"),
    version=("edgevpn", "--version"),
    version_pattern=r"version v?(\d\S+)",
    deploy=deploy,
    startup_time=15.0,
    recipe="edgevpn",
)
