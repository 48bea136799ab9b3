"""WireGuard in the kernel: a full mesh of peers over UDP, without any daemon."""

from __future__ import annotations

from tunnelmark.model.steps import Command
from tunnelmark.vpns import _wg
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode


def _interface(host: MeshNode) -> Command:
    """Return a command that creates the interface, and first deletes one that a crashed node left behind."""
    name = host.interface(_wg.INTERFACE)
    anew = f"ip link delete {name} 2>/dev/null; exec ip link add {name} type wireguard"
    return host.command("sh", "-c", anew)


def deploy(mesh: Mesh, options: _wg.WgOptions) -> Deployment:
    """Return a full mesh: every node is a peer of every other, and interfaces go up when all have their keys."""
    return _wg.full_mesh(mesh, _interface, options.mtu)


DRIVER = Driver(
    name="wireguard",
    title="WireGuard (kernel)",
    homepage="https://www.wireguard.com/",
    packages=_wg.PACKAGES,
    programs=(*_wg.TOOLS, "sh"),
    version=("uname", "-r"),  # the module has no version of its own since it is in the kernel
    version_pattern=r"(\S+)",
    deploy=deploy,
    options=_wg.WgOptions,
    ipv6=True,
    cascades=True,
    overhead=_wg.overhead,
    kernel=("wireguard",),
)
