"""Tailscale with a control server (headscale, on the hub) and a relay (derper, on the relay's node) in the lab.

Both use port 443 with TLS, as on the Internet. If they are on the same node, headscale's built-in relay replaces
derper, because only one of them can have the port.
"""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import combinations
from pathlib import PurePosixPath
from typing import Literal

from cryptography.hazmat.primitives.serialization import Encoding

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, Daemon, TcpPort, UnixSocket
from tunnelmark.vpns._certificate import self_signed, trust
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "tailscale0"  # tailscaled's default
PORT = 41641  # as in its systemd unit; without that it takes any port
HTTPS, STUN = 443, 3478
SOCKET = UnixSocket(PurePosixPath("/var/run/tailscale/tailscaled.sock"))  # where tailscaled and tailscale expect it
REGION = 900  # of the relay: numbers from 900 on are free for private relays (tailcfg/derpmap.go)


class TailscaleOptions(Options):
    """`path`: `direct` goes directly between nodes where possible, as shipped; `derp` only through the relay."""

    path: Literal["direct", "derp"] = "direct"


def _certificate(mesh: Mesh) -> tuple[str, str, str]:
    """Return a certificate for control server and relay, its key, and the name by which clients pin it at the relay."""
    certificate, private = self_signed("tunnelmark", list(dict.fromkeys((mesh.hub.underlay, mesh.relay.underlay))))
    pin = f"sha256-raw:{sha256(certificate.public_bytes(Encoding.DER)).hexdigest()}"
    return certificate.public_bytes(Encoding.PEM).decode(), private, pin


def _headscale(mesh: Mesh) -> str:
    """Return headscale's config-example.yaml with our addresses, without Tailscale's relays and what is off there."""
    hub = mesh.hub
    own_relay = {
        "enabled": True,
        "region_id": REGION,
        "region_code": "lab",
        "region_name": "lab",
        "stun_listen_addr": hub.endpoint(STUN),
        "private_key_path": hub.path("derp.key"),
        "automatically_add_embedded_derp_region": False,
    }
    return json.dumps(
        {
            "server_url": _login_server(hub),
            "listen_addr": hub.endpoint(HTTPS),
            "tls_cert_path": hub.path("server.crt"),
            "tls_key_path": hub.path("server.key"),
            "noise": {"private_key_path": hub.path("noise.key")},
            "prefixes": {"v4": "100.64.0.0/10", "v6": "fd7a:115c:a1e0::/48"},
            "derp": {
                "urls": [],
                "paths": [hub.path("derp.yaml")],
                "auto_update_enabled": False,
                **({"server": own_relay} if mesh.relay is hub else {}),
            },
            "disable_check_updates": True,
            "database": {"type": "sqlite", "sqlite": {"path": hub.path("db.sqlite")}},
            "dns": {"magic_dns": False, "base_domain": "tunnelmark.test", "override_local_dns": False},
            "unix_socket": hub.path("headscale.sock"),
        },
        indent=1,
    )


def _login_server(hub: MeshNode) -> str:
    return f"https://{hub.underlay}"


def _derp_map(relay: MeshNode, pin: str) -> str:
    """Return the relay map, with the lab's relay only; it is JSON, except for the number that names the region."""
    address = str(relay.underlay)
    node = {"name": "1", "regionid": REGION, "hostname": address, "certname": pin, "ipv4": address, "ipv6": "none"}
    region = {"regionid": REGION, "regioncode": "lab", "regionname": "lab", "nodes": [node]}
    return f"regions:\n  {REGION}: {json.dumps(region)}\n"


def _key(hub: MeshNode) -> Command:
    """Return the command that makes the key by which nodes join; after a restart of the hub it keeps the old key."""
    script = (
        'umask 077; test -s "$1" || { headscale -c "$0" users create lab'
        ' && headscale -c "$0" preauthkeys create -u 1 --reusable -e 24h > "$1.new" && mv "$1.new" "$1"; }'
    )
    return hub.command("sh", "-c", script, hub.path("headscale.yaml"), hub.path("auth"))


def _up(mesh: Mesh, host: MeshNode) -> Command:
    """Return the command that joins the network; it ends once the node has joined."""
    server = f"--login-server={_login_server(mesh.hub)}"
    return host.command("tailscale", "up", server, f"--auth-key=file:{host.dir / 'auth'}", timeout=40)


def _meet(host: MeshNode, other: MeshNode) -> CommandSucceeds:
    """Return the condition that two nodes know of each other; this ping does not go through WireGuard.

    A node drops a handshake from a peer of which the control server has not informed it yet; the next one comes after
    5 s.
    """
    # It waits for one second, because a path may have a delay of several hundred milliseconds. It is in the background,
    # because after a relayed answer it runs for one second longer (cmd/tailscale/cli/ping.go).
    ask = '{ tailscale ping --c=1 --timeout=1s --until-direct=false "$0" & } | grep -q pong'
    return host.succeeds("sh", "-c", ask, other.name)


def _direct(host: MeshNode, other: MeshNode) -> CommandSucceeds:
    """Return a ping by Tailscale that succeeds only if the answer came directly (cmd/tailscale/cli/ping.go)."""
    return host.succeeds("tailscale", "ping", "--c=1", "--timeout=1s", "--until-direct", other.name)


def _relay(mesh: Mesh) -> tuple[Daemon, ...]:
    """Return the daemon derper, or () if headscale is on the same node and relays itself."""
    relay, address = mesh.relay, str(mesh.relay.underlay)
    argv = ("derper", "-hostname", address, "-certmode", "manual", "-certdir", relay.path("derp"))
    own = relay.daemon("derper", *argv, "-c", relay.path("derp/key.json"), ready=TcpPort(HTTPS))
    return () if relay is mesh.hub else (own,)


def deploy(mesh: Mesh, options: TailscaleOptions) -> Deployment:
    """Return the deployment: control server and relay start first; nodes begin over the relay and then go direct."""
    hub, relay = mesh.hub, mesh.relay
    certificate, private, pin = _certificate(mesh)
    address = str(relay.underlay)
    # "Disables the use of UDP, forcing all peer communication over DERP": wgengine/magicsock/debugknobs.go.
    env = {"TS_DEBUG_ALWAYS_USE_DERP": "true"} if options.path == "derp" else {}

    def daemon(host: MeshNode) -> Daemon:
        argv = ("tailscaled", "--no-logs-no-support", f"--statedir={host.dir / 'state'}", f"--port={PORT}")
        return host.daemon("tailscaled", *argv, ready=SOCKET, env=env | trust(host))

    control = ("headscale", "-c", hub.path("headscale.yaml"), "serve")
    # If headscale relays data, it is not a mere control service, and may not be stopped alone.
    serves_only = options.path == "direct" or relay is not hub
    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        files=(
            hub.file("headscale.yaml", _headscale(mesh)),
            hub.file("derp.yaml", _derp_map(relay, pin)),
            hub.file("server.key", private),
            *(host.file("server.crt", certificate) for host in mesh.hosts),
            relay.file(f"derp/{address}.crt", certificate),
            relay.file(f"derp/{address}.key", private),
        ),
        phases=(
            (
                hub.daemon("headscale", *control, ready=TcpPort(HTTPS), control=serves_only),
                *_relay(mesh),
                *(daemon(host) for host in mesh.hosts),
            ),
            (_key(hub), *(CopyFile(hub.name, hub.dir / "auth", one.name, one.dir / "auth") for one in mesh.spokes)),
            tuple(_up(mesh, host) for host in mesh.hosts),
            tuple(_meet(*pair) for pair in combinations(reversed(mesh.hosts), 2)),
        ),
        converged=()
        if options.path == "derp"
        else tuple(_direct(host, other) for host in mesh.hosts for other in mesh.others(host)),
        relayed=options.path == "derp",
    )


DRIVER = Driver(
    name="tailscale",
    title="Tailscale (headscale, derper)",
    homepage="https://tailscale.com/",
    programs=("tailscaled", "tailscale", "headscale", "derper", "sh", "grep"),
    recipe="tailscale",
    version=("tailscaled", "--version"),
    version_pattern=r"(\d+\.\d+\.\d+)",
    deploy=deploy,
    options=TailscaleOptions,
    variants={"tailscale-derp": {"path": "derp"}},
    startup_time=4.0,
    convergence_time=2.0,
)
