"""Makes a VXLAN on top of an overlay, as a cluster's pod network is one: workloads then run inside it (RFC 7348)."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from tunnelmark.errors import SetupFailed
from tunnelmark.model.steps import Command
from tunnelmark.plan.model import InnerNetwork
from tunnelmark.plan.study_schema import LEAST_IPV6

INTERFACE = "vxlan0"
NETWORK = IPv4Network("10.61.0.0/16")
NETWORK6 = IPv6Network("fd61::/64")
"""Its addresses: those of no underlay and of no overlay."""

PORT = 4789
IDENTIFIER = 1  # VNI
HEADERS = {4: 50, 6: 70}
"""Bytes that VXLAN adds to an IP packet over IPv4 and IPv6: IP, UDP, VXLAN and an Ethernet header (RFC 7348, section 5)."""

_EVERYONE = "00:00:00:00:00:00"  # each whose Ethernet address is not known yet


def addresses(nodes: Mapping[str, object], *, ipv6: bool = False) -> dict[str, IPv4Address | IPv6Address]:
    """The address of each node in it, in the order of the nodes."""
    return {node: _network(ipv6=ipv6)[place] for place, node in enumerate(nodes, start=1)}


def _network(*, ipv6: bool) -> IPv4Network | IPv6Network:
    return NETWORK6 if ipv6 else NETWORK


def commands(
    node: str, overlay: Mapping[str, IPv4Address | IPv6Address], inner: InnerNetwork, mtu: int
) -> tuple[Command, ...]:
    """What makes it on a node, whose overlay interface has that MTU, in the words of ip(8) and bridge(8). SetupFailed if IPv6 has no room in it."""
    own = overlay[node]
    size = inner.mtu or mtu - HEADERS[own.version]
    if inner.ipv6 and size < LEAST_IPV6:
        raise SetupFailed(
            f"the overlay's MTU of {mtu} leaves {size} bytes inside a VXLAN, and IPv6 asks for {LEAST_IPV6}",
            hint=f"state a larger `mtu` of the inner network, such as {LEAST_IPV6}: what does not fit is fragmented below",
        )
    device = ("type", "vxlan", "id", str(IDENTIFIER), "local", str(own), "dstport", str(PORT))
    lines: list[tuple[str, ...]] = [("ip", "link", "add", INTERFACE, "mtu", str(size), *device)]
    lines += [
        ("bridge", "fdb", "append", _EVERYONE, "dev", INTERFACE, "dst", str(other))
        for name, other in overlay.items()
        if name != node
    ]
    inside, length = addresses(overlay, ipv6=inner.ipv6)[node], _network(ipv6=inner.ipv6).prefixlen
    at_once = ("nodad",) if inner.ipv6 else ()  # no second in which the address is only tried
    lines.append(("ip", "address", "add", f"{inside}/{length}", "dev", INTERFACE, *at_once))
    lines.append(("ip", "link", "set", INTERFACE, "up"))
    return tuple(Command(node, line) for line in lines)
