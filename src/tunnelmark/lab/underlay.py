"""A lab's underlay as the command knows it: who has which address, and what interfaces count."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from tunnelmark.lab.link_spec import LinkSpec, interface_of, six


class Underlay:
    """The links of a lab, by what was asked of them when they were made."""

    def __init__(self, links: Sequence[LinkSpec]) -> None:
        self._links = links

    def address(self, node: str) -> IPv4Address:
        """The node's first underlay address."""
        return next(spec for spec in self._links if node in spec.addresses).address(node)

    def address6(self, node: str) -> IPv6Address:
        """The node's IPv6 underlay address, which goes with `address`."""
        return six(self.address(node))

    def address_towards(self, node: str, other: str) -> IPv4Address:
        """The node's underlay address on the first link that it has in common with another."""
        return next(spec for spec in self._links if {node, other} <= set(spec.addresses)).address(node)

    def interfaces(self, node: str) -> dict[str, dict[str, str]]:
        """By underlay interface of a node or router: the others on its link, each with its own interface there."""
        found: dict[str, dict[str, str]] = {}
        for number, spec in enumerate(spec for spec in self._links if node in spec.addresses):
            others = (name for name in spec.addresses if name != node)
            found[f"eth{number}"] = {name: self._interface(name, spec) for name in others}
        return found

    def ports_to(self, node: str, interface: str = "") -> frozenset[str]:
        """The middle node's ports to a node, or to one interface of it."""
        return frozenset(
            spec.ports(number)[node]
            for number, spec in enumerate(self._links)
            if node in spec.addresses and interface in ("", interface_of(node, self._links, number))
        )

    def on_link(self, member: str, number: int) -> tuple[str, IPv4Address]:
        """The interface of a node or router on a link, by the link's place in the topology, and its address there."""
        link = self._links[number]
        return self._interface(member, link), link.address(member)

    def _interface(self, node: str, link: LinkSpec) -> str:
        own = [spec.name for spec in self._links if node in spec.addresses]
        return f"eth{own.index(link.name)}"

    def counted_headers(self, node: str) -> dict[str, tuple[int, int]]:
        """By underlay interface of a node: bytes of Ethernet header in what it counts as received and as sent."""
        own = (spec for spec in self._links if node in spec.addresses)
        return {f"eth{number}": spec.counted_headers for number, spec in enumerate(own)}

    @property
    def owners(self) -> dict[IPv4Address | IPv6Address, str]:
        """The node or router that has each underlay address."""
        found: dict[IPv4Address | IPv6Address, str] = {}
        for spec in self._links:
            for name in spec.addresses:
                address = spec.address(name)
                found |= {address: name, six(address): name}
        return found
