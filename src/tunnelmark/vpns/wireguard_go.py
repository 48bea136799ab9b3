"""wireguard-go, WireGuard in user space: a full mesh of peers over UDP, in Debian's build and three further ones."""

from __future__ import annotations

from typing import Literal

from tunnelmark.model.steps import Daemon
from tunnelmark.vpns import _wg
from tunnelmark.vpns.base import Build, Deployment, Driver, Mesh, MeshNode

_YEARS = ("2022", "2023", "2026")


class WireGuardOptions(_wg.WgOptions):
    """`build`: the build of a year: 2022 (before vectored I/O), 2023 (TSO, GRO), 2026 (the newest); None: Debian's."""

    build: Literal["2022", "2023", "2026"] | None = None


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("wireguard-go", "wireguard-go", "-f", host.interface(_wg.INTERFACE), ready=_wg.socket(host))


def deploy(mesh: Mesh, options: WireGuardOptions) -> Deployment:
    """Return a full mesh: every node is a peer of every other, and interfaces go up when all have their keys."""
    return _wg.full_mesh(mesh, _daemon, options.mtu)


_VERSION = (("wireguard-go", "--version"), r"wireguard-go v?(\S+)")  # its version.go is not changed at every commit

DRIVER = Driver(
    name="wireguard-go",
    title="WireGuard (wireguard-go)",
    homepage="https://git.zx2c4.com/wireguard-go/",
    packages=("wireguard-go", *_wg.PACKAGES),
    programs=("wireguard-go", *_wg.TOOLS),
    version=_VERSION[0],
    version_pattern=_VERSION[1],
    deploy=deploy,
    options=WireGuardOptions,
    builds={
        year: Build(("wireguard-go", *_wg.TOOLS), *_VERSION, _wg.PACKAGES, recipe=f"wireguard-go-{year}")
        for year in _YEARS
    },
    variants={f"wireguard-go-{year}": {"build": year} for year in _YEARS},
    ipv6=True,
    cascades=True,
    overhead=_wg.overhead,
)
