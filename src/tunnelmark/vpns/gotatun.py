"""GotaTun, Mullvad's WireGuard in user space, a descendant of BoringTun: a full mesh of peers over UDP."""

from __future__ import annotations

from pydantic import Field

from tunnelmark.model.steps import Daemon
from tunnelmark.vpns import _wg
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode


class GotaTunOptions(_wg.WgOptions):
    """`threads`: the number of threads that run its tasks; None is GotaTun's default, one for each core."""

    threads: int | None = Field(default=None, ge=1, le=256)


def deploy(mesh: Mesh, options: GotaTunOptions) -> Deployment:
    """Return a full mesh: every node is a peer of every other.

    The overlay's MTU is 1500 bytes unless an option sets it, so a full packet travels as two fragments on a link with
    an MTU of 1500.
    """
    # It has no flag for this; its runtime reads the variable (tokio: runtime::Builder::worker_threads).
    env = {} if options.threads is None else {"TOKIO_WORKER_THREADS": str(options.threads)}

    def daemon(host: MeshNode) -> Daemon:
        # A socket that an earlier daemon left behind accepts no connection, so it does not count as ready.
        argv = ("gotatun", "--foreground", "--disable-drop-privileges", host.interface(_wg.INTERFACE))
        return host.daemon("gotatun", *argv, ready=_wg.socket(host), env=env)

    return _wg.full_mesh(mesh, daemon, options.mtu)


DRIVER = Driver(
    name="gotatun",
    title="WireGuard (GotaTun)",
    homepage="https://github.com/mullvad/gotatun",
    packages=_wg.PACKAGES,
    programs=("gotatun", *_wg.TOOLS),
    recipe="gotatun",
    version=("gotatun", "--version"),
    version_pattern=r"gotatun\S* (\S+)",
    deploy=deploy,
    options=GotaTunOptions,
    ipv6=True,
)
