"""What a link of a lab is, as its middle node and its nodes build it: addresses, shapers, netem, offloads, names of interfaces. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any

ETHERNET = 14  # bytes of an Ethernet header

_NEVER = "1tbit"
"""A peak rate that holds nothing up (12 ns a packet). With one, a token bucket splits what is longer than its `minburst`
before it queues it (`tbf_segment`), so that rate, queue and drops are those of wire packets."""


@dataclass(frozen=True, slots=True)
class Shaper:
    """A token bucket in front of a node: rate in bit/s, and a tail-drop queue in bytes."""

    rate: int
    queue: int
    mtu: int = 1500
    overhead: int = 0  # bytes that each frame takes on the wire in addition to those in memory
    splits: bool = False  # super-packets become wire packets before the queue

    @property
    def burst(self) -> int:
        """The bucket in bytes: 250 us of the rate, at least two full packets.

        A wake-up late by less than that costs no rate; a longer bucket would let bursts through.
        """
        return max(2 * (self.mtu + 100), self.rate // 8 // 4000)

    @property
    def words(self) -> str:
        """As tc takes it."""
        more = f" overhead {self.overhead}" if self.overhead else ""
        if self.splits:
            more += f" peakrate {_NEVER} minburst {self.mtu + 100}"
        return f"tbf rate {self.rate}bit burst {self.burst} limit {self.queue}{more}"


XDP_MTU = 3500
"""Bytes of the largest IP packet that fits into a frame's chunk of AF_XDP's memory next to its headroom (crates/emulator/src/xsk.rs)."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """A link as the middle node builds it; mappings are by node, and say what lies on the way to it.

    `emulated`: a program on the middle node carries the packets, else they are copied from port to port.
    `ipv6`: each node has an IPv6 address in addition to the IPv4 one. `super_packets`: the nodes hand over super-packets if
    they have them, else wire packets. `card`: the link splits super-packets into wire packets, and the nodes merge what
    arrives. `netem` are tc's words, for the node's port on the middle node or, with `netem_on_sender`, for the node's own
    interface.
    """

    name: str
    addresses: Mapping[str, str]  # node -> address/prefix length, the link's first node first
    shapers: Mapping[str, Shaper] = field(default_factory=dict)
    netem: Mapping[str, Sequence[str]] = field(default_factory=dict)
    netem_on_sender: bool = False
    emulated: bool = False
    super_packets: bool = False
    card: bool = False
    ipv6: bool = False
    mtu: int = 1500  # bytes of IP packet

    def plain(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> LinkSpec:
        """What `plain` has written."""
        shapers = {node: Shaper(**shaper) for node, shaper in plain["shapers"].items()}
        return cls(**{**plain, "shapers": shapers})

    def address(self, node: str) -> IPv4Address:
        """The address of a node on it; KeyError if it is not on it."""
        return IPv4Address(self.addresses[node].partition("/")[0])

    @property
    def counted_headers(self) -> tuple[int, int]:
        """Bytes of Ethernet header in what a node's interface counts of each packet that it receives, and that it sends.

        A veth that is polled, for GRO or for XDP, counts packets without it, and counts what is sent to it for the sender as well
        (drivers/net/veth.c: veth_xdp_rcv(), veth_get_stats64()). XDP is on a node's own peer where the emulator takes packets there by
        AF_XDP: not of super-packets, not behind a shaper, and not of frames that its chunks of memory do not hold.
        """
        polled = self.emulated and not self.super_packets and not self.shapers and self.mtu <= XDP_MTU
        return 0 if self.card else ETHERNET, 0 if polled else ETHERNET

    def netem_here(self, node: str) -> bool:
        """Whether netem is on the middle node's port to a node."""
        return node in self.netem and not self.netem_on_sender

    def ports(self, number: int) -> dict[str, str]:
        """The middle node's port of each node on the link of that number."""
        return {name: f"{name[:12]}.{number}" for name in self.addresses}

    def doors(self, number: int) -> dict[str, str]:
        """The interface at which the emulator takes and gives each node's packets: its port, or the interface in front of its shaper."""
        if not self.shapers:
            return self.ports(number)
        return {name: f"{name[:9]}.{number}e" for name in self.addresses}

    def macs(self, number: int) -> dict[str, str]:
        """The Ethernet address of each node on the link of that number."""
        return {name: f"02:00:00:00:{number:02x}:{place:02x}" for place, name in enumerate(self.addresses, start=1)}


def interface_of(node: str, links: Sequence[LinkSpec], number: int) -> str:
    """A node's interface on the link of that number."""
    return f"eth{sum(node in spec.addresses for spec in links[:number])}"


def six(address: IPv4Address) -> IPv6Address:
    """The IPv6 underlay address that goes with an IPv4 one: 10.50.L.H has fd50:0:0:L::H (a unique local address, RFC 4193)."""
    return IPv6Address(f"fd50:0:0:{address.packed[2]:x}::{address.packed[3]:x}")
