"""Netmaker with its server on the hub: its API behind TLS, its broker (mosquitto), and sqlite."""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import b64encode

from cryptography.hazmat.primitives.serialization import Encoding

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CopyFile, Daemon, File, LogMatch, TcpPort
from tunnelmark.vpns._certificate import self_signed, trust
from tunnelmark.vpns.base import OVERLAY, Deployment, Driver, Mesh, MeshNode

INTERFACE = "netmaker"  # Netmaker's default
PORT = 51821  # likewise (config/config.go, DefaultListenPort)
API, TLS, BROKER = 8081, 443, 8883  # the first is that of its sample configuration
ASKED = 8082  # the port at which the server asks for its own address
NETWORK = "lab"
LIFE = 86400  # seconds that a key for joining is valid

_SETUP = (
    """\
import json, os, sys, time, urllib.request
config, nodes, *path = sys.argv[1:]
server = json.load(open(config))["server"]

def ask(what, body=None):
    headers = {"Authorization": "Bearer " + server["masterkey"], "Content-Type": "application/json"}
    url = "http://127.0.0.1:" + server["apiport"] + "/api/" + what
    request = urllib.request.Request(url, headers=headers, data=body and json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request, timeout=10))

if not path:  # have all joined?
    sys.exit(len(ask("nodes/NETWORK")) < int(nodes))
path = path[0]
if not os.path.exists(path):
    ask("networks", {"netid": "NETWORK", "addressrange": "OVERLAY"})
    wanted = {"tags": ["nodes"], "networks": ["NETWORK"], "expiration": int(time.time()) + LIFE}
    os.umask(0o077)
    with open(path + ".new", "w") as file:
        file.write(ask("v1/enrollment-keys", wanted)["token"])
    os.rename(path + ".new", path)
""".replace("NETWORK", NETWORK)
    .replace("OVERLAY", OVERLAY)
    .replace("LIFE", str(LIFE))
)

_NGINX = """\
daemon off;
user root;
error_log stderr warn;
pid "{folder}/nginx.pid";
events {{}}
http {{
    access_log off;
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxy";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
    server {{
        listen {tls} ssl;
        ssl_certificate "{folder}/server.crt";
        ssl_certificate_key "{folder}/server.key";
        location / {{ proxy_pass http://127.0.0.1:{api}; }}
    }}
    server {{
        listen 127.0.0.1:{asked};
        return 200 {address};
    }}
}}
"""

_MOSQUITTO = """\
user root
persistence false
log_dest stderr
allow_anonymous false
password_file {folder}/passwords
listener {broker} {address}
certfile {folder}/server.crt
keyfile {folder}/server.key
"""


# netclient uses the folder /etc/netclient only. The node's own folder is mounted there and hides the machine's.
# netclient would load WireGuard's kernel module, on the whole machine (wireguard/modprobe_linux.go).
_HOME = """set -e; cd "$1"; mkdir -p etc /etc/netclient; mount --bind etc /etc/netclient
limited() { exec setpriv --bounding-set=-sys_module --inh-caps=-sys_module netclient "$@"; }
"""

# netclient takes its key only on the command line, and exits with 0 even if the server refused it.
_REGISTER = """export SSL_CERT_FILE="$1/server.crt"
[ -s etc/servers.json ] || (limited register -t "$(cat key)" "$2" "$3" -p "$4" -j)
[ -s etc/servers.json ]"""

# Without a default route it ignores messages about peers (functions/mqhandlers.go). A `throw` route leads nowhere.
_DAEMON = """ip route replace throw default metric 4294967295
! grep -q '"NETWORK": true' etc/servers.json || echo joined before
limited daemon""".replace("NETWORK", NETWORK)

# The server's message to a new node makes it begin again, with a new interface (functions/mqhandlers.go).
_JOINED = r"^joined before|JoinHostToNetwork(.|\n)*adding addresses"


def _password(user: str, password: str) -> str:
    """Return a line of mosquitto's password file: PBKDF2 with SHA-512 and 101 rounds, as of mosquitto_passwd(1)."""
    salt = secrets.token_bytes(12)
    made = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
    return f"{user}:$7$101${b64encode(salt).decode()}${b64encode(made).decode()}\n"


def _server(hub: MeshNode, password: str) -> str:
    """Return the server's configuration, as in its scripts/netmaker.default.env; it reads YAML, which includes JSON."""
    broker = f"mqtts://{hub.endpoint(BROKER)}"
    return json.dumps(
        {
            "server": {
                "server": NETWORK,
                "apihost": hub.endpoint(TLS),  # it only writes this into keys, and listens at all addresses
                "apiconn": hub.endpoint(TLS),
                "apiport": str(API),
                "broker": broker,
                "mqusername": "netmaker",
                "mqpassword": password,
                "masterkey": secrets.token_hex(16),
                "publicipservice": f"http://127.0.0.1:{ASKED}/",  # asked each time; else it asks the Internet
                "telemetry": "off",
                "netclientautoupdate": "disabled",
            }
        },
        indent=1,
    )


def _files(mesh: Mesh) -> list[File]:
    """Return the hub's files, and its certificate as a file for every node."""
    hub = mesh.hub
    certificate, private = self_signed(str(hub.underlay), [hub.underlay])
    password = secrets.token_hex(16)
    nginx = _NGINX.format(folder=hub.dir, tls=hub.endpoint(TLS), api=API, asked=ASKED, address=hub.underlay)
    own = {
        "server.key": private,
        "nginx.conf": nginx,
        "mosquitto.conf": _MOSQUITTO.format(folder=hub.dir, broker=BROKER, address=hub.underlay),
        "passwords": _password("netmaker", password),
        "netmaker.json": _server(hub, password),
        "setup.py": _SETUP,
    }
    pem = certificate.public_bytes(Encoding.PEM).decode()
    return [
        *(hub.file(name, content) for name, content in own.items()),
        *(host.file("server.crt", pem) for host in mesh.hosts),
    ]


def _servers(hub: MeshNode) -> tuple[tuple[Daemon, ...], ...]:
    """Return the phases: nginx and the broker start before the server, which ends if it finds no broker."""
    # Nodes prefer a private address at which they reach a peer (functions/mqhandlers.go): IPv4, if there is any.
    detection = {"ENDPOINT_DETECTION": "false"} if hub.underlay.version == 6 else {}
    nginx = ("nginx", "-e", "stderr", "-p", str(hub.dir), "-c", hub.path("nginx.conf"))
    mosquitto = ("mosquitto", "-c", hub.path("mosquitto.conf"))
    # The server keeps its database in the folder `data` of its working directory.
    netmaker = ("env", "-C", str(hub.dir), "netmaker", "-c", hub.path("netmaker.json"))
    return (
        (
            hub.daemon("nginx", *nginx, ready=TcpPort(TLS), control=True),
            hub.daemon("mosquitto", *mosquitto, ready=TcpPort(BROKER), control=True),
        ),
        (hub.daemon("netmaker", *netmaker, ready=TcpPort(API), env=trust(hub) | detection, control=True),),
    )


def _netclient(host: MeshNode, script: str, *more: str) -> tuple[str, ...]:
    return ("unshare", "--mount", "sh", "-c", _HOME + script, "sh", str(host.dir), *more)


def _register(host: MeshNode) -> Command:
    """Return the command that joins the network once; it states the endpoint, else netclient would ask the Internet."""
    static = "-E" if host.underlay.version == 6 else "-e"
    return host.command(*_netclient(host, _REGISTER, static, str(host.underlay), str(PORT)), timeout=40)


def deploy(mesh: Mesh, options: Options) -> Deployment:
    """Return the deployment: the servers start, all nodes register, and their daemons ask the server for peers."""
    hub = mesh.hub
    setup = ("python3", hub.path("setup.py"), hub.path("netmaker.json"), str(len(mesh.hosts)))
    return Deployment(
        overlays=mesh.overlays(INTERFACE, own_addresses=True),
        files=tuple(_files(mesh)),
        phases=(
            *_servers(hub),
            (
                hub.command(*setup, hub.path("key")),
                *(CopyFile(hub.name, hub.dir / "key", one.name, one.dir / "key") for one in mesh.spokes),
            ),
            tuple(_register(host) for host in mesh.hosts),
            (hub.succeeds(*setup),),
            tuple(
                host.daemon("netclient", *_netclient(host, _DAEMON), ready=LogMatch(_JOINED), env=trust(host))
                for host in mesh.hosts
            ),
        ),
    )


# `netclient version` would first make an interface and write to /etc. So the version is read from the program file.
_VERSION = 'grep -a -o -m1 "github.com/gravitl/netmaker.v[0-9.]*" "$(command -v netclient)"'

DRIVER = Driver(
    name="netmaker",
    title="Netmaker (own server and broker)",
    homepage="https://www.netmaker.io/",
    packages=("mosquitto", "nginx"),
    programs=(
        *("netmaker", "netclient", "mosquitto", "nginx", "python3"),
        *("unshare", "mount", "setpriv", "ip", "env", "sh", "cat", "grep"),
    ),
    recipe="netmaker",
    version=("sh", "-c", _VERSION),
    version_pattern=r"v(\d+\.\d+\.\d+)",
    deploy=deploy,
    ipv6=True,
)
