"""Answers questions about a lab's underlay: which address and interface a node has, and what its interfaces count."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from tunnelmark.lab.link_spec import LinkSpec, interface_of, six


class Underlay:
    """The links of a lab, as they were specified when they were made."""

    def __init__(self, links: Sequence[LinkSpec]) -> None:
        self._links = links

    def address(self, node: str) -> IPv4Address:
        """Return the node's first underlay address."""
        return next(spec for spec in self._links if node in spec.addresses).address(node)

    def address6(self, node: str) -> IPv6Address:
        """Return the node's IPv6 underlay address, which goes with `address`."""
        return six(self.address(node))

    def address_towards(self, node: str, other: str) -> IPv4Address:
        """Return the node's underlay address on the first link that it has in common with another node."""
        return next(spec for spec in self._links if {node, other} <= set(spec.addresses)).address(node)

    def interfaces(self, node: str) -> dict[str, dict[str, str]]:
        """Return, by underlay interface of a node or router, the other members of its link with their interfaces
        there.
        """
        found: dict[str, dict[str, str]] = {}
        for number, spec in enumerate(spec for spec in self._links if node in spec.addresses):
            others = (name for name in spec.addresses if name != node)
            found[f"eth{number}"] = {name: self._interface(name, spec) for name in others}
        return found

    def ports_to(self, node: str, interface: str = "") -> frozenset[str]:
        """Return the middle node's ports to a node, or only to one of its interfaces."""
        return frozenset(
            spec.ports(number)[node]
            for number, spec in enumerate(self._links)
            if node in spec.addresses and interface in ("", interface_of(node, self._links, number))
        )

    def on_link(self, member: str, number: int) -> tuple[str, IPv4Address]:
        """Return the interface and address of a node or router on the link with that number in the topology (from
        0).
        """
        link = self._links[number]
        return self._interface(member, link), link.address(member)

    def _interface(self, node: str, link: LinkSpec) -> str:
        own = [spec.name for spec in self._links if node in spec.addresses]
        return f"eth{own.index(link.name)}"

    def counted_headers(self, node: str) -> dict[str, tuple[int, int]]:
        """Return, by underlay interface of a node, two numbers of header bytes (see `LinkSpec.counted_headers`).

        The interface counts the first number in each packet that it receives, the second in each that it sends.
        """
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
