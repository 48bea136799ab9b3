"""NetBird with servers of its own: management and signal on the hub; its relay, STUN and TURN on the relay's node.

Clients reach management, signal and NetBird's relay through Caddy, a proxy that listens on port 443 with TLS, as in the
makers' getting-started-with-zitadel.sh. They reach STUN and TURN directly. With nginx in place of Caddy, NetBird takes
30 s longer to start (docs/findings/netbird-behind-nginx.md).
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from pathlib import PurePosixPath
from typing import Literal

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, Daemon, File, TcpPort, UnixSocket
from tunnelmark.vpns import _coturn
from tunnelmark.vpns._certificate import self_signed, trust
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "wt0"  # NetBird's default
HTTPS = 443  # where clients reach management, signal and relay
MANAGEMENT, SIGNAL, RELAY = 33073, 10000, 33080  # as in NetBird's infrastructure_files
KEYS = 8000  # where the identity provider's public keys are served
AUDIENCE = "tunnelmark"
SOCKET = UnixSocket(PurePosixPath("/var/run/netbird.sock"))  # through which the daemon takes commands
# Seconds. By then offers come up to 51 s apart (client/internal/peer/guard). An offer fails if its only candidate, that
# of TURN, comes before the agent: it is dropped ("ICE Agent is not initialized yet",
# client/internal/peer/worker_ice.go).
TURN_RECOVERY = 90.0
LIFE = 86400  # seconds that a setup key is valid; NetBird accepts no shorter life

_SETUP = """\
import json, os, sys, urllib.request
api, token, path, life = sys.argv[1:]

def ask(what, body=None):
    headers = {"Authorization": "Bearer " + open(token).read(), "Content-Type": "application/json"}
    request = urllib.request.Request(api + what, headers=headers, data=body and json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request, timeout=10))

if not os.path.exists(path):
    ask("/users")  # makes the account, of which the bearer of the token is the owner
    wanted = {"name": "lab", "type": "reusable", "expires_in": int(life), "auto_groups": [], "usage_limit": 0}
    os.umask(0o077)
    with open(path + ".new", "w") as file:
        file.write(ask("/setup-keys", wanted)["key"])
    os.rename(path + ".new", path)
"""


class NetBirdOptions(Options):
    """`path`: `direct` where possible, as shipped, or only through NetBird's own relay (`relay`) or TURN (`turn`).

    `wireguard`: the client's own WireGuard, in user space, or that of the node's kernel.
    """

    path: Literal["direct", "relay", "turn"] = "direct"
    wireguard: Literal["userspace", "kernel"] = "userspace"


FORCED = {
    "direct": {},
    "relay": {"NB_FORCE_RELAY": "true"},  # client/internal/peer/conn.go
    "turn": {"NB_ICE_FORCE_RELAY_CONN": "true"},  # client/internal/peer/ice/env.go
}
"""By `NetBirdOptions.path`: the environment variables that make a client use that path."""

# By itself NetBird would load WireGuard's kernel module, on the whole machine (client/iface/device/kernel_module_linux.go).
WIREGUARD = {"userspace": {"NB_WG_KERNEL_DISABLED": "true"}, "kernel": {}}
"""By `NetBirdOptions.wireguard`: the environment variables that make a client use that one."""


def _text(raw: bytes) -> str:
    """Return `raw` in base64 as JSON web tokens use it (RFC 7515 section 2)."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _identity(issuer: str) -> tuple[str, str]:
    """Return an identity provider's public keys, and its token for the network's owner (RFC 7517, RFC 7519).

    NetBird's management requires an identity provider, but only ever reads its keys.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    point = key.public_key().public_numbers()
    public = {"kty": "EC", "crv": "P-256", "kid": "lab", "use": "sig", "alg": "ES256"}
    public |= {"x": _text(point.x.to_bytes(32, "big")), "y": _text(point.y.to_bytes(32, "big"))}
    now = int(time.time())
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": "owner", "iat": now - 60, "exp": now + LIFE}
    head = {"alg": "ES256", "typ": "JWT", "kid": "lab"}
    signed = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return json.dumps({"keys": [public]}), f"{signed}.{_text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _management(mesh: Mesh, options: NetBirdOptions, issuer: str, secret: str, user: _coturn.TurnUser) -> str:
    """Return management.json as in NetBird's template; clients that know its relay never use TURN (worker_ice.go)."""
    hub, place = mesh.hub, mesh.relay.endpoint(_coturn.PORT)
    turn = {"Proto": "udp", "URI": f"turn:{place}", "Username": user.name, "Password": user.password}
    relay = {"Addresses": [_relay_url(mesh)], "CredentialsTTL": "24h", "Secret": secret}
    return json.dumps(
        {
            "Stuns": [{"Proto": "udp", "URI": f"stun:{place}"}],
            "TURNConfig": {"Turns": [turn], "CredentialsTTL": "12h", "Secret": "", "TimeBasedCredentials": False},
            **({} if options.path == "turn" else {"Relay": relay}),
            "Signal": {"Proto": "https", "URI": hub.endpoint(HTTPS)},
            "Datadir": hub.path("data"),
            "DataStoreEncryptionKey": b64encode(secrets.token_bytes(32)).decode(),
            "StoreConfig": {"Engine": "sqlite"},
            "HttpConfig": {
                "Address": hub.endpoint(MANAGEMENT),
                "AuthIssuer": issuer,
                "AuthAudience": AUDIENCE,
                "AuthKeysLocation": f"{issuer}/jwks.json",
            },
            "IdpManagerConfig": {"ManagerType": "none"},
        },
        indent=1,
    )


def _relay_url(mesh: Mesh) -> str:
    return f"rels://{mesh.relay.endpoint(HTTPS)}"


_CADDYFILE = """\
{{
    admin off
    auto_https off
    servers {{
        protocols h1 h2
    }}
}}
https://{address}:{port} {{
    bind {address}
    tls "{folder}/server.crt" "{folder}/server.key"
{ways}
}}
"""


def _ways(mesh: Mesh, options: NetBirdOptions) -> dict[MeshNode, dict[str, str]]:
    """Return for each node to which server Caddy forwards a request, by the path of its URL."""
    ways = {
        mesh.hub: {
            "/management.ManagementService/*": f"h2c://127.0.0.1:{MANAGEMENT}",
            "/signalexchange.SignalExchange/*": f"h2c://127.0.0.1:{SIGNAL}",
        }
    }
    if options.path != "turn":
        ways.setdefault(mesh.relay, {})["/relay*"] = f"127.0.0.1:{RELAY}"
    return ways


def _https(mesh: Mesh, options: NetBirdOptions) -> tuple[File, ...]:
    """Return the files of Caddy for each node on which it runs, and a certificate that all nodes trust."""
    ways = _ways(mesh, options)
    certificate, private = self_signed("tunnelmark", [host.underlay for host in ways])
    pem = certificate.public_bytes(Encoding.PEM).decode()

    def caddyfile(host: MeshNode) -> str:
        lines = "\n".join(f"    reverse_proxy {path} {to}" for path, to in ways[host].items())
        return _CADDYFILE.format(address=host.underlay, port=HTTPS, folder=host.dir, ways=lines)

    return (
        *(host.file("Caddyfile", caddyfile(host)) for host in ways),
        *(host.file("server.key", private) for host in ways),
        *(host.file("server.crt", pem) for host in mesh.hosts),
    )


def _caddy(host: MeshNode) -> Daemon:
    argv = ("caddy", "run", "--config", host.path("Caddyfile"), "--adapter", "caddyfile")
    folders = {"XDG_DATA_HOME": host.path("caddy"), "XDG_CONFIG_HOME": host.path("caddy")}
    return host.daemon("caddy", *argv, ready=TcpPort(HTTPS), env=folders)


def _servers(mesh: Mesh, options: NetBirdOptions) -> tuple[Daemon, ...]:
    """Return the servers that start before the management: it fetches the identity provider's keys at once."""
    hub, relay = mesh.hub, mesh.relay
    keys = (
        "python3",
        "-m",
        "http.server",
        str(KEYS),
        "--bind",
        str(hub.underlay),
        "--directory",
        hub.path("keys"),
    )
    signal = ("netbird-signal", "run", "--port", str(SIGNAL), "--log-file", "console", "--metrics-port", "9091")
    listen = ("netbird-relay", "-l", f"127.0.0.1:{RELAY}", "-e", _relay_url(mesh), "--metrics-port", "9092")
    from_file = 'NB_AUTH_SECRET=$(cat "$0") exec "$@"'  # otherwise the relay takes it only on the command line
    own = relay.daemon("relay", "sh", "-c", from_file, relay.path("secret"), *listen, ready=TcpPort(RELAY))
    return (
        hub.daemon("keys", *keys, ready=TcpPort(KEYS)),
        hub.daemon("signal", *signal, ready=TcpPort(SIGNAL), control=True),
        *(_caddy(host) for host in _ways(mesh, options)),
        _coturn.daemon(relay),
        *(() if options.path == "turn" else (own,)),
    )


def deploy(mesh: Mesh, options: NetBirdOptions) -> Deployment:
    """Return the deployment: servers start first; nodes try relay and direct path at once, and keep the direct one."""
    hub, relay = mesh.hub, mesh.relay
    issuer, secret, user = f"http://{hub.endpoint(KEYS)}", secrets.token_hex(16), _coturn.TurnUser.fresh()
    keys, token = _identity(issuer)
    env = {**WIREGUARD[options.wireguard], **FORCED[options.path]}
    flags = ("--config", hub.path("management.json"), "--port", str(MANAGEMENT), "--log-file", "console")
    management = ("netbird-management", "management", *flags, "--disable-anonymous-metrics")
    script = (
        "python3",
        hub.path("setup.py"),
        f"http://{hub.endpoint(MANAGEMENT)}/api",
        hub.path("token"),
        hub.path("key"),
        str(LIFE),
    )

    def client(host: MeshNode) -> Daemon:
        config = ("-c", host.path("client.json"), "--log-file", "console", "service", "run")
        state = {"NB_DNS_STATE_FILE": host.path("state.json")}  # the only variable that sets where it keeps its state
        return host.daemon("netbird", "netbird-client", *config, ready=SOCKET, env=env | state | trust(host))

    def up(host: MeshNode) -> Command:
        # Only once: a restarted daemon connects by itself, and the command would interrupt that.
        once = 'test -e "$0" || { "$@" && : > "$0"; }'
        words = ("netbird-client", "up", "-m", f"https://{hub.endpoint(HTTPS)}", "--setup-key-file", host.path("key"))
        return host.command("sh", "-c", once, host.path("joined"), *words, timeout=40)

    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        files=(
            hub.file("management.json", _management(mesh, options, issuer, secret, user)),
            *_https(mesh, options),
            hub.file("keys/jwks.json", keys),
            hub.file("token", token),
            hub.file("setup.py", _SETUP),
            *(() if options.path == "turn" else (relay.file("secret", secret),)),
            _coturn.config(relay, user),
        ),
        phases=(
            (*_servers(mesh, options), *(client(host) for host in mesh.hosts)),
            (hub.daemon("management", *management, ready=TcpPort(MANAGEMENT), control=True),),
            (
                hub.command(*script),
                *(CopyFile(hub.name, hub.dir / "key", one.name, one.dir / "key") for one in mesh.spokes),
            ),
            tuple(up(host) for host in mesh.hosts),
        ),
        converged=(
            *(_direct(mesh, host) for host in mesh.hosts if options.path == "direct"),
            *(_in_kernel(host) for host in mesh.hosts if options.wireguard == "kernel"),
        ),
        relayed=options.path != "direct",
        recovery_time=TURN_RECOVERY if options.path == "turn" else 0.0,
    )


def _direct(mesh: Mesh, host: MeshNode) -> CommandSucceeds:
    """Return the condition that the node reports a direct path to every other node."""
    script = 'test "$(netbird-client status --detail | grep -c "Connection type: P2P")" -eq "$0"'
    return host.succeeds("sh", "-c", script, str(len(mesh.hosts) - 1))


def _in_kernel(host: MeshNode) -> CommandSucceeds:
    """Return the condition that the node's WireGuard is the kernel's: without it NetBird takes its own and says nothing."""
    return host.succeeds("sh", "-c", 'netbird-client status --detail | grep -q "Interface type: Kernel"')


DRIVER = Driver(
    name="netbird",
    title="NetBird (own management, signal, relay, TURN)",
    homepage="https://netbird.io/",
    programs=(
        *("netbird-client", "netbird-management", "netbird-signal", "netbird-relay"),
        *("python3", "sh", "grep", "cat", _coturn.PROGRAM, "caddy"),
    ),
    packages=(_coturn.PACKAGE, "caddy"),
    recipe="netbird",
    version=("netbird-client", "version"),
    version_pattern=r"(\d+\.\d+\.\d+)",
    deploy=deploy,
    options=NetBirdOptions,
    variants={
        "netbird-relay": {"path": "relay"},
        "netbird-turn": {"path": "turn"},
        "netbird-kernel": {"wireguard": "kernel"},
        "netbird-kernel-turn": {"wireguard": "kernel", "path": "turn"},
    },
    also_kernel=lambda options: ("wireguard",) if options.wireguard == "kernel" else (),
    startup_time=10.0,
    convergence_time=2.0,
)
