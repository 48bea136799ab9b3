"""Makes an inner network on top of an overlay, by VXLAN (RFC 7348) or Geneve (RFC 8926); workloads then run inside it.

Pod networks of clusters are made like this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from tunnelmark.errors import SetupFailed
from tunnelmark.model.steps import Command
from tunnelmark.plan.model import InnerNetwork
from tunnelmark.plan.study_schema import LEAST_IPV6

NETWORK = IPv4Network("10.61.0.0/16")
NETWORK6 = IPv6Network("fd61::/64")
"""The inner network's addresses; no underlay and no overlay uses them."""

INTERFACES = {"vxlan": "vxlan0", "geneve": "geneve0"}
"""The name of the inner network's interface on every node, by its kind."""

PORTS = {"vxlan": 4789, "geneve": 6081}
IDENTIFIER = 1  # VNI
HEADERS = {4: 50, 6: 70}
"""Bytes that VXLAN, or Geneve without options, adds to an IP packet, by the outer IP version.

They are the outer IP and UDP headers, the header of VXLAN or Geneve (8 bytes), and the inner Ethernet header.
"""

_EVERYONE = "00:00:00:00:00:00"  # bridge(8): the default entry, for Ethernet addresses that are not learnt yet
_Words = tuple[str, ...]
_Address = IPv4Address | IPv6Address


def addresses(nodes: Mapping[str, object], *, ipv6: bool = False) -> dict[str, _Address]:
    """Return the address of each node in the inner network, in the order of the nodes."""
    return {node: _network(ipv6=ipv6)[place] for place, node in enumerate(nodes, start=1)}


def _network(*, ipv6: bool) -> IPv4Network | IPv6Network:
    return NETWORK6 if ipv6 else NETWORK


def commands(node: str, overlay: Mapping[str, _Address], inner: InnerNetwork, mtu: int) -> tuple[Command, ...]:
    """Return the commands of ip(8) and bridge(8) that make the inner network on a node.

    `overlay`: the overlay address of each node. `mtu`: the MTU of the node's overlay interface. Raises SetupFailed if
    the inner network uses IPv6 and its MTU is smaller than IPv6 requires.
    """
    size = inner.mtu or mtu - HEADERS[overlay[node].version]
    if inner.ipv6 and size < LEAST_IPV6:
        raise SetupFailed(
            f"the overlay's MTU of {mtu} leaves {size} bytes inside a {inner.title}, and IPv6 asks for {LEAST_IPV6}",
            hint=f"state a larger `mtu` of the inner network, such as {LEAST_IPV6}: what does not fit is fragmented below",
        )
    made = {"vxlan": _vxlan, "geneve": _geneve}[inner.kind]
    return tuple(Command(node, line) for line in made(node, overlay, inner, size))


def _vxlan(node: str, overlay: Mapping[str, _Address], inner: InnerNetwork, size: int) -> Iterator[_Words]:
    """Make one VXLAN interface, which learns Ethernet addresses, and sends packets to unknown ones to all nodes."""
    device = ("id", str(IDENTIFIER), "local", str(overlay[node]), "dstport", str(PORTS["vxlan"]))
    yield ("ip", "link", "add", INTERFACES[inner.kind], "mtu", str(size), "type", "vxlan", *device)
    for name, other in overlay.items():
        if name != node:
            yield ("bridge", "fdb", "append", _EVERYONE, "dev", INTERFACES[inner.kind], "dst", str(other))
    yield from _up(node, overlay, inner)


def _geneve(node: str, overlay: Mapping[str, _Address], inner: InnerNetwork, size: int) -> Iterator[_Words]:
    """Make one Geneve interface and a route to each node: Linux's geneve has at most one remote, and learns nothing."""
    name, inside = INTERFACES[inner.kind], addresses(overlay, ipv6=inner.ipv6)
    places = {each: place for place, each in enumerate(overlay, start=1)}
    device = ("address", _ethernet(places[node]), "type", "geneve", "external", "dstport", str(PORTS["geneve"]))
    yield ("ip", "link", "add", name, "mtu", str(size), *device)
    yield from _up(node, overlay, inner)
    for other, address in overlay.items():
        if other == node:
            continue
        target = (str(inside[other]), "dev", name)
        # Over IPv6 a datagram without a checksum is dropped (RFC 8200, 8.1).
        family, checksum = ("ip", ()) if address.version == 4 else ("ip6", ("csum",))
        yield ("ip", "neighbour", "add", *target, "lladdr", _ethernet(places[other]), "nud", "permanent")
        way = ("encap", family, "id", str(IDENTIFIER), "dst", str(address), *checksum)
        yield ("ip", "route", "add", str(inside[other]), *way, "dev", name)


def _ethernet(place: int) -> str:
    """Return the locally administered Ethernet address (IEEE 802, 8.4) of the node with this number."""
    return f"02:61:00:00:{place >> 8:02x}:{place & 0xFF:02x}"


def _up(node: str, overlay: Mapping[str, _Address], inner: InnerNetwork) -> Iterator[_Words]:
    inside, length = addresses(overlay, ipv6=inner.ipv6)[node], _network(ipv6=inner.ipv6).prefixlen
    at_once = ("nodad",) if inner.ipv6 else ()  # without a second of duplicate address detection
    yield ("ip", "address", "add", f"{inside}/{length}", "dev", INTERFACES[inner.kind], *at_once)
    yield ("ip", "link", "set", INTERFACES[inner.kind], "up")
