"""Runs ZeroTier's own TCP proxy, for nodes whose UDP packets are blocked, on the node of ZeroTier's root.

The root is the node at which all others first meet (the moon). A ZeroTier daemon uses the proxy only for global
addresses (InetAddress::ipScope), but the addresses of a lab are private. So the root's underlay interface gets a second
address, from a prefix that is not routed. Nodes that may send UDP as well translate this address into the root's
underlay address.
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
    """Return the proxy's settings in local.conf of the other nodes.

    `forced`: nodes use the proxy for everything, and never UDP. Otherwise they use it if they get no answer by UDP.
    """
    return {"tcpFallbackRelay": f"{root.underlay}/{PORT}", **({"forceTcpRelay": True} if forced else {})}


def phases(root: MeshNode) -> tuple[tuple[Step, ...], ...]:
    """Return the phases that give the root its second address, and then start the proxy.

    The proxy prints a line for each packet. A systemd unit would send them to the journal; here they are discarded.
    """
    daemon = root.daemon("tcp-proxy", "sh", "-c", f"exec {PROGRAM} > /dev/null", ready=TcpPort(PORT))
    return (root.command("sh", "-c", _ADD, "sh", str(root.underlay), PUBLIC),), (daemon,)


def translation(host: MeshNode, root: MeshNode) -> Step:
    """Return the step that lets another node reach the root at its second address (by destination NAT)."""
    return host.command("nft", _TRANSLATE.format(public=PUBLIC, underlay=root.underlay))
