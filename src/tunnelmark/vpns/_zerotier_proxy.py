"""ZeroTier's own proxy over TCP, for nodes whose UDP does not get through, and a root that it can be used with in a lab.

A daemon gives its proxy only what goes to an address of the Internet (InetAddress::ipScope), and the addresses of a
lab are private. So the root has another address, which no one routes: it is at home on the root's own node, where the proxy is,
and other nodes translate it into the root's underlay address.
"""

from __future__ import annotations

from tunnelmark.model.steps import Step, TcpPort
from tunnelmark.vpns.base import MeshNode

PROGRAM = "tcp-proxy"  # as its makers' Makefile calls it
PORT = 443  # no option changes it
PUBLIC = "192.88.99.1"  # of a prefix that was given back and is not routed (RFC 7526)

# On the interface of the underlay: a daemon does not listen on the loopback's addresses (osdep/Binder.hpp).
_ADD = 'set -e; card=$(ip -o address show to "$1" | cut -d" " -f2); ip address replace "$2/32" dev "$card"'
_TRANSLATE = """add table ip zerotier; flush table ip zerotier
add chain ip zerotier out {{ type nat hook output priority -100; }}
add rule ip zerotier out ip daddr {public} dnat to {underlay}"""


def settings(root: MeshNode, *, forced: bool) -> dict[str, object]:
    """What local.conf says of it on other nodes; `forced`: nothing is sent by UDP, else only what gets no answer by UDP comes here."""
    return {"tcpFallbackRelay": f"{root.underlay}/{PORT}", **({"forceTcpRelay": True} if forced else {})}


def phases(root: MeshNode) -> tuple[tuple[Step, ...], ...]:
    """The phases that bring the root its address, and the proxy.

    The proxy prints a line for each packet, which a unit of systemd would send to the journal: that is left out.
    """
    daemon = root.daemon("tcp-proxy", "sh", "-c", f"exec {PROGRAM} > /dev/null", ready=TcpPort(PORT))
    return (root.command("sh", "-c", _ADD, "sh", str(root.underlay), PUBLIC),), (daemon,)


def translation(host: MeshNode, root: MeshNode) -> Step:
    """Have another node reach the root by UDP under that address."""
    return host.command("nft", _TRANSLATE.format(public=PUBLIC, underlay=root.underlay))
