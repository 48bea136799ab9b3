"""Quincy: IP packets as QUIC datagrams; the hub is the server, the other nodes are its clients."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tunnelmark.model.options import Options
from tunnelmark.model.steps import UdpPort
from tunnelmark.vpns._wg import public, secret
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode, Overlay

INTERFACE = "quincy0"
PORT = 55555
LOG = '[log]\nlevel = "info"\n'  # the setting is mandatory; this is its usual value
NOISE = '[protocol]\nmode = "noise"\nkey_exchange = "standard"\n'
VERSION = 'grep -aom1 "quincy-server-[0-9][0-9.]*[0-9]" "$(command -v quincy-server)"'
"""Reads the version: no option prints it, but the program's messages name the folder of the crate it was built from."""

CLIENT = 'while :; do quincy-client --config-path "$0"; done'
"""Restarts the client whenever it ends, as a service manager would; it ends when it loses its server."""


def _server(hub: MeshNode, key: X25519PrivateKey) -> str:
    # Clients reach each other only without isolation, and in this project every VPN makes a mesh.
    return f"""\
name = "tunnelmark"
interface_name = "{INTERFACE}"
bind_address = "{hub.underlay}"
bind_port = {PORT}
tunnel_network = "{hub.overlay}"
users_file = "{hub.dir / "users.toml"}"
isolate_clients = false
{NOISE}private_key = "{secret(key)}"
{LOG}"""


def _client(hub: MeshNode, key: X25519PrivateKey, server: X25519PrivateKey) -> str:
    return f"""\
connection_string = "{hub.endpoint(PORT)}"
{NOISE}server_public_key = "{public(server)}"
private_key = "{secret(key)}"
[network]
interface_name = "{INTERFACE}"
{LOG}"""


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: clients dial the server once its port is bound, and it assigns their addresses."""
    hub = mesh.hub
    server, *clients = (X25519PrivateKey.generate() for _ in mesh.hosts)
    users = "".join(
        f"[users.{json.dumps(host.name)}]\nauthorized_keys = [{json.dumps(public(key))}]\nauthorized_certs = []\n"
        for host, key in zip(mesh.spokes, clients, strict=True)
    )
    return Deployment(
        overlays={
            hub.name: Overlay(INTERFACE, hub.overlay.ip),
            **{spoke.name: Overlay(INTERFACE) for spoke in mesh.spokes},
        },
        files=(
            hub.file("quincy.toml", _server(hub, server)),
            hub.file("users.toml", users),
            *(
                host.file("quincy.toml", _client(hub, key, server))
                for host, key in zip(mesh.spokes, clients, strict=True)
            ),
        ),
        phases=(
            (hub.daemon("quincy", "quincy-server", "--config-path", hub.path("quincy.toml"), ready=UdpPort(PORT)),),
            tuple(spoke.daemon("quincy", "sh", "-c", CLIENT, spoke.path("quincy.toml")) for spoke in mesh.spokes),
        ),
    )


DRIVER = Driver(
    name="quincy",
    title="Quincy",
    homepage="https://github.com/quincy-rs/quincy",
    programs=("quincy-server", "quincy-client", "grep", "sh"),
    version=("sh", "-c", VERSION),
    version_pattern=r"quincy-server-(\S+)",
    deploy=deploy,
    recipe="quincy",
    ipv6=True,
)
