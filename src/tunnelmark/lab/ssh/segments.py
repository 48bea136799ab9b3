"""Decides which interfaces join nodes with the middle node if these are on different hosts. Pure.

Each node's end of a link gets a network segment of its own if the node is on another host than the middle node: a VXLAN
or a VLAN with its own number. One end of the segment is the node's interface on the link, the other is the middle
node's port to that node. On one machine, `lab.server.veth` makes both as a veth pair.
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
    """One end of a segment: an interface of a node on a host, and the host of the other end."""

    node: str
    interface: str
    number: int  # of its VXLAN or VLAN
    other_host: str
    mtu: int  # bytes of IP packet
    mac: str | None = None  # its Ethernet address; None: any

    def plain(self) -> dict[str, Any]:
        """Return this end as a JSON object."""
        return asdict(self)


def segments(
    links: Sequence[LinkSpec], hosts: Mapping[str, str], middle: str, middle_node: str, numbers: Iterator[int]
) -> dict[str, list[Segment]]:
    """Return, by host, the ends of segments there; a host without any is left out.

    `hosts`: the host of each node and router, by its name. `middle`: the middle node's host. `middle_node`: the middle
    node's name. `numbers`: unused VXLAN or VLAN numbers.
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
