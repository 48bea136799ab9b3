"""fastd: Ethernet over UDP between peers that know each other's keys; here every node knows all others."""

from __future__ import annotations

from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, File, UdpPort
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "fastd0"
PORT = 10000  # fastd has no usual port; the manual's examples use it
KEYS = (
    'umask 077; secret=$(fastd --generate-key --machine-readable) && printf \'secret "%s";\\n\' "$secret" > "$0.secret"'
    ' && public=$(fastd --config "$0.secret" --show-key --machine-readable) && printf \'key "%s";\\n\' "$public" > "$0.pub"'
)
"""A script that makes a node's key pair in the staging folder, as two pieces of configuration."""


class FastdOptions(Options):
    """`method` protects the data: the method that the manual recommends, or `null`, which does not encrypt."""

    method: Literal["salsa2012+umac", "null"] = "salsa2012+umac"


def _config(mesh: Mesh, host: MeshNode, options: FastdOptions) -> str:
    """Return a node's configuration. Its mode is TAP, as shipped, because with TUN it can have only one peer.

    Of two peers only one names the other's address. If both did and started together, each would drop what the other
    sends.
    """
    lines = [
        f'interface "{INTERFACE}";',
        f"bind {host.endpoint(PORT)};",
        f'method "{options.method}";',
        f'include "{host.dir}/own.secret";',
        f'on up "ip address add {host.overlay} dev $INTERFACE && ip link set $INTERFACE up";',
    ]
    for place, other in enumerate(mesh.hosts):
        remote = f" remote {other.endpoint(PORT)};" if place < mesh.hosts.index(host) else ""
        if other != host:
            lines.append(f'peer "{other.name}" {{ include "{host.dir}/{other.name}.pub";{remote} }}')
    return "\n".join(lines) + "\n"


def _files(mesh: Mesh, host: MeshNode, options: FastdOptions) -> list[File]:
    return [
        host.file("fastd.conf", _config(mesh, host, options)),
        host.file("own.secret", from_staging=f"{host.name}.secret"),
        *(host.file(f"{peer.name}.pub", from_staging=f"{peer.name}.pub") for peer in mesh.others(host)),
    ]


def _daemon(host: MeshNode) -> Daemon:
    return host.daemon("fastd", "fastd", "--config", host.path("fastd.conf"), ready=UdpPort(PORT))


def deploy(mesh: Mesh, options: FastdOptions) -> Deployment:
    """Return the deployment: each node dials all earlier nodes, which already listen."""
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        staging=tuple(("sh", "-c", KEYS, host.name) for host in mesh.hosts),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host, options)),
        phases=tuple((_daemon(host),) for host in mesh.hosts),
        encrypted=options.method != "null",
    )


DRIVER = Driver(
    name="fastd",
    title="fastd",
    homepage="https://fastd.readthedocs.io/",
    packages=("fastd", "iproute2"),
    programs=("fastd", "ip", "sh"),
    version=("fastd", "--version"),
    version_pattern=r"fastd v(\S+)",
    deploy=deploy,
    options=FastdOptions,
    recovery_time=20.0,  # its timer for a peer that is gone fires about every 20 s (22 s in a measurement)
    variants={"fastd-null": {"method": "null"}},
    ipv6=True,
)
