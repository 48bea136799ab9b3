"""wesher: a WireGuard mesh whose members find each other by gossip; here over wireguard-go, not in the kernel."""

from __future__ import annotations

import secrets
from base64 import b64encode
from pathlib import PurePosixPath

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, TcpPort, UnixSocket
from tunnelmark.vpns import _wg
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "wgoverlay"  # wesher's default
GOSSIP = 7946
SOCKET = UnixSocket(PurePosixPath(f"/var/run/wireguard/{INTERFACE}.sock"))
NETWORK = "10.60.0.0/16"  # as shipped 10.0.0.0/8, which may contain underlays; addresses are hashes of host names


def _daemon(mesh: Mesh, host: MeshNode) -> Daemon:
    """Return the daemon: its first start discards what the machine's own wesher left, later ones resume the mesh."""
    # It gets its key by an environment variable, as in its systemd unit (dist/wesher.service: EnvironmentFile).
    script = '. "$0"; mark=$1; shift; test -e "$mark" || set -- "$@" --init; : > "$mark"; exec "$@"'
    words = ("wesher", "--bind-addr", str(host.underlay), "--overlay-net", NETWORK)
    earlier = mesh.hosts[: mesh.hosts.index(host)]
    join = ("--join", ",".join(str(one.underlay) for one in earlier)) if earlier else ()
    argv = ("sh", "-c", script, host.path("wesher.env"), host.path("begun"), *words, *join)
    return host.daemon("wesher", *argv, ready=TcpPort(GOSSIP))


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: wireguard-go starts first, and then each node, which joins all earlier ones.

    Without wireguard-go, wesher would ask the kernel for WireGuard. A node that joined only the hub would hear of the
    other nodes by gossip: sometimes only a minute later, if they joined at the same moment (memberlist's push and
    pull). At the end each spoke waits until it knows all its peers. A handshake with a spoke that does not know the
    sender yet is lost, and WireGuard repeats it only after 5 s.
    """
    key = f"export WESHER_CLUSTER_KEY={b64encode(secrets.token_bytes(32)).decode()}\n"
    go = tuple(host.daemon("wireguard-go", "wireguard-go", "-f", INTERFACE, ready=SOCKET) for host in mesh.hosts)
    all_peers = f'test "$(wg show {INTERFACE} peers | wc -l)" -eq "$0"'
    met = tuple(spoke.succeeds("sh", "-c", all_peers, str(len(mesh.spokes))) for spoke in mesh.spokes)
    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        files=tuple(host.file("wesher.env", key) for host in mesh.hosts),
        phases=(go, *((_daemon(mesh, host),) for host in mesh.hosts), met),
    )


DRIVER = Driver(
    name="wesher",
    title="wesher (over wireguard-go)",
    homepage="https://github.com/costela/wesher",
    packages=_wg.PACKAGES,
    programs=("wesher", "wireguard-go", "wg", "sh", "wc"),
    recipe="wesher",
    version=("wesher", "--version"),
    version_pattern=r"(\d+\.\d+\.\d+)",
    deploy=deploy,
)
