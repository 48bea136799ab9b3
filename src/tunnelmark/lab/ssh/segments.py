"""Decides which interfaces join nodes with the middle node where these are on different hosts. Pure.

Each end of a link that is on another host than the middle node has a network segment of its own between the two hosts: a VXLAN or a VLAN whose
number no other one has. At one end it is the node's interface on the link, at the other the middle node's port for it; both are what
`lab.server.veth` makes of a veth pair on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tunnelmark.lab.link_spec import LinkSpec, interface_of

VXLAN_HEADERS = 50
"""Bytes that VXLAN adds to an IP packet: Ethernet 14, VXLAN 8, UDP 8, IPv4 20 (RFC 7348)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One end of a segment: an interface of a node on a host, and where the other end is."""

    node: str
    interface: str
    number: int  # of its VXLAN or VLAN
    other_host: str
    mtu: int  # bytes of IP packet
    mac: str | None = None  # its Ethernet address; None: any

    def plain(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def segments(
    links: Sequence[LinkSpec], hosts: Mapping[str, str], middle: str, middle_node: str, numbers: Iterator[int]
) -> dict[str, list[Segment]]:
    """Return the ends of segments on each host; `hosts`: by node or router, its host; `middle`: the middle node's
    host.
    """
    found: dict[str, list[Segment]] = {}
    for place, spec in enumerate(links):
        ports, macs = spec.ports(place), spec.macs(place)
        for node in spec.addresses:
            if (host := hosts[node]) == middle:
                continue
            number = next(numbers)
            near = Segment(node, interface_of(node, links, place), number, middle, spec.mtu, macs[node])
            far = Segment(middle_node, ports[node], number, host, spec.mtu)
            found.setdefault(host, []).append(near)
            found.setdefault(middle, []).append(far)
    return found
