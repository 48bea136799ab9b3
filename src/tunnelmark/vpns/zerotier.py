"""ZeroTier without its makers' servers: the hub is the network's controller; a moon is the root where nodes meet."""

from __future__ import annotations

import json
from typing import Literal

from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon, File, Step, TcpPort, UdpPort
from tunnelmark.vpns import _zerotier_proxy
from tunnelmark.vpns.base import Deployment, Driver, Mesh, MeshNode

INTERFACE = "zt0"
PORT = 9993

# A network's name is its controller's address and six more digits; moon and addresses follow from the identities.
_STAGE_MOON = """set -e
hub=$1 relay=$2 endpoint=$3; shift 3
net=$(cut -c1-10 "$hub.public")000001; echo "$net" > nwid
zerotier-idtool initmoon "$relay.public" | sed "s|\\"stableEndpoints\\": \\[\\]|\\"stableEndpoints\\": [\\"$endpoint\\"]|" > moon.json
zerotier-idtool genmoon moon.json; echo *.moon > moon.name; base64 *.moon > moon.b64
printf '{"id":"%s","nwid":"%s","objtype":"network","name":"lab","private":true,"enableBroadcast":true,"mtu":2800,
"multicastLimit":32,"routes":[{"target":"10.60.0.0/24","via":null}],"rules":[{"type":"ACTION_ACCEPT"}]}' "$net" "$net" > net.json
while [ $# -gt 0 ]; do
    id=$(cut -c1-10 "$1.public")
    printf '{"id":"%s","address":"%s","nwid":"%s","objtype":"member","authorized":true,"noAutoAssignIps":true,
"ipAssignments":["%s"]}' "$id" "$id" "$net" "$2" > "$1.json"; shift 2
done"""
_HOME = """set -e; cd "$1"; net=$(cat nwid); mkdir -p moons.d networks.d
base64 -d moon.b64 > "moons.d/$(cat moon.name)"; [ -e "networks.d/$net.conf" ] || : > "networks.d/$net.conf"
echo "$net=zt0" > devicemap"""
_CONTROLLER = """set -e; cd "$1"; net=$(cat nwid); all=controller.d/network; mkdir -p "$all/$net/member"; cp net.json "$all/$net.json"
for member in member.*; do cp "$member" "$all/$net/member/$(sed 's/^{"id":"\\([0-9a-f]*\\)".*/\\1/;q' "$member").json"; done"""
_DIRECT = """[ "$(zerotier-one -q -D"$1" peers | awk '$3 != "PLANET" && $5 == "DIRECT"' | wc -l)" -ge "$2" ]"""


PROXIED = {"tcp-proxy": (_zerotier_proxy.PROGRAM, "ip"), "tcp-fallback": (_zerotier_proxy.PROGRAM, "ip", "nft")}
"""The values of the option `path` that use a proxy, each with the programs that it needs."""


class ZeroTierOptions(Options):
    """`path`: how packets travel between nodes.

    `direct`: from node to node, as shipped.
    `root`: only through the moon, by UDP.
    `tcp-proxy`: only through ZeroTier's own TCP proxy.
    `tcp-fallback`: through that proxy where a node gets no answer by UDP.
    """

    path: Literal["direct", "root", "tcp-proxy", "tcp-fallback"] = "direct"


def _local(mesh: Mesh, host: MeshNode, options: ZeroTierOptions) -> str:
    """Return local.conf: the underlay addresses that a node may not use, and the settings for the proxy."""
    shut = [other for other in mesh.others(host) if mesh.relay not in (host, other)] if options.path == "root" else []
    width = host.underlay.max_prefixlen
    proxied = options.path in PROXIED and host != mesh.relay
    known = _zerotier_proxy.settings(mesh.relay, forced=options.path == "tcp-proxy") if proxied else {}
    return json.dumps(
        {"physical": {f"{other.underlay}/{width}": {"blacklist": True} for other in shut}, "settings": known}
    )


def _files(mesh: Mesh, host: MeshNode, options: ZeroTierOptions) -> list[File]:
    shared = [host.file(name, from_staging=name) for name in ("nwid", "moon.name", "moon.b64")]
    own = [host.file(f"identity.{part}", from_staging=f"{host.name}.{part}") for part in ("secret", "public")]
    control = [host.file("net.json", from_staging="net.json")]
    control += [host.file(f"member.{other.name}", from_staging=f"{other.name}.json") for other in mesh.hosts]
    local = host.file("local.conf", _local(mesh, host, options))
    return [*shared, *own, local, *(control if host == mesh.hub else [])]


def _before(mesh: Mesh, host: MeshNode) -> Step:
    script = _HOME + ("\n" + _CONTROLLER if host == mesh.hub else "")
    return host.command("sh", "-c", script, "sh", str(host.dir))


def _daemon(mesh: Mesh, host: MeshNode, options: ZeroTierOptions) -> Daemon:
    """Return the daemon. With `tcp-proxy` only the relay binds a UDP port; others first listen for commands by TCP."""
    ready = TcpPort(PORT) if options.path == "tcp-proxy" and host != mesh.relay else UdpPort(PORT)
    return host.daemon("zerotier-one", "zerotier-one", "-U", f"-p{PORT}", str(host.dir), ready=ready)


def deploy(mesh: Mesh, options: ZeroTierOptions) -> Deployment:
    """Return the deployment: moon and controller start first.

    Identities are made in the staging folder, because the network is named after one of them.
    """
    members = [word for host in mesh.hosts for word in (host.name, str(host.overlay.ip))]
    makes = [("zerotier-idtool", "generate", f"{host.name}.secret", f"{host.name}.public") for host in mesh.hosts]
    relay, found_at = mesh.relay, str(mesh.relay.underlay)
    first = {mesh.hub.name: mesh.hub, relay.name: relay}
    rest = [host for host in mesh.hosts if host.name not in first]
    before: tuple[tuple[Step, ...], ...] = ()
    if options.path in PROXIED:
        found_at, before = _zerotier_proxy.PUBLIC, _zerotier_proxy.phases(relay)
    if options.path == "tcp-fallback":
        before += (tuple(_zerotier_proxy.translation(host, relay) for host in mesh.others(relay)),)
    moon = (mesh.hub.name, relay.name, f"{found_at}/{PORT}")
    forced = options.path in ("root", "tcp-proxy")
    direct = tuple(
        host.succeeds("sh", "-c", _DIRECT, "sh", str(host.dir), str(len(mesh.hosts) - 1)) for host in mesh.hosts
    )
    return Deployment(
        overlays=mesh.overlays(INTERFACE),
        staging=(*makes, ("sh", "-c", _STAGE_MOON, "sh", *moon, *members)),
        files=tuple(file for host in mesh.hosts for file in _files(mesh, host, options)),
        phases=(
            *before,
            tuple(_before(mesh, host) for host in mesh.hosts),
            tuple(_daemon(mesh, host, options) for host in first.values()),
            tuple(_daemon(mesh, host, options) for host in rest),
        ),
        converged=() if forced else direct,
        relayed=forced,
    )


DRIVER = Driver(
    name="zerotier",
    title="ZeroTier",
    homepage="https://www.zerotier.com/",
    recipe="zerotier",
    programs=("zerotier-one", "zerotier-idtool", "sh"),
    version=("zerotier-one", "-v"),
    version_pattern=r"(\S+)",
    deploy=deploy,
    options=ZeroTierOptions,
    startup_time=12.0,
    startup_per_node=6.0,  # a daemon learns one node of a /24 in 2 s; nodes ask every 5 s (docs/findings/zerotier-on-a-lan.md)
    convergence_time=5.0,
    also_needs=lambda options: PROXIED.get(options.path, ()),
    variants={
        "zerotier-relay": {"path": "root"},
        "zerotier-tcp-proxy": {"path": "tcp-proxy"},
        "zerotier-tcp-fallback": {"path": "tcp-fallback"},
    },
)
