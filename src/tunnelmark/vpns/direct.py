"""The arm `direct`: the underlay without a VPN, described like an overlay. Every other arm is compared with it."""

from __future__ import annotations

from tunnelmark.model.options import Options
from tunnelmark.vpns.base import Deployment, Driver, Mesh, Overlay

UNDERLAY_INTERFACE = "eth0"  # the name that the lab gives to a node's interface on the underlay


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return a deployment that starts nothing: each node is reached at its underlay address."""
    overlays = {host.name: Overlay(UNDERLAY_INTERFACE, host.underlay) for host in mesh.hosts}
    return Deployment(overlays=overlays, encrypted=False)


DRIVER = Driver(
    name="direct",
    title="Direct (no VPN)",
    homepage="https://docs.kernel.org/networking/",
    packages=("iproute2",),
    programs=("ip",),
    version=("uname", "-r"),
    version_pattern=r"(\S+)",
    deploy=deploy,
    ipv6=True,
)
