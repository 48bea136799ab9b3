"""BoringTun, Cloudflare's WireGuard in user space, written in Rust: a full mesh of peers over UDP."""

from __future__ import annotations

from pydantic import Field

from tunnelmark.model.steps import Daemon
from tunnelmark.vpns import _wg
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode


class BoringTunOptions(_wg.WgOptions):
    """`threads`: the number of threads that handle packets; None is BoringTun's default, 4."""

    threads: int | None = Field(default=None, ge=1, le=256)


def deploy(mesh: Mesh, options: BoringTunOptions) -> Deployment:
    """Return a full mesh: every node is a peer of every other.

    The overlay's MTU is 1500 bytes unless an option sets it, so a full packet travels as two fragments on a link with
    an MTU of 1500.
    """
    threads = () if options.threads is None else ("--threads", str(options.threads))

    def daemon(host: MeshNode) -> Daemon:
        # With privileges dropped it would run as the user that called sudo, who may not set up the interface again.
        argv = ("boringtun-cli", "--foreground", "--disable-drop-privileges", *threads, host.interface(_wg.INTERFACE))
        return host.daemon("boringtun", *argv, ready=_wg.socket(host))

    return _wg.full_mesh(mesh, daemon, options.mtu)


DRIVER = Driver(
    name="boringtun",
    title="WireGuard (BoringTun)",
    homepage="https://github.com/cloudflare/boringtun",
    packages=_wg.PACKAGES,
    programs=("boringtun-cli", *_wg.TOOLS),
    recipe="boringtun",
    version=("boringtun-cli", "--version"),
    version_pattern=r"boringtun\S* (\S+)",
    deploy=deploy,
    options=BoringTunOptions,
    ipv6=True,
)
