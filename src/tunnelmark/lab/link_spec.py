"""Specifies a link of a lab: its addresses, shapers, netem, offloads and names of interfaces. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any

ETHERNET = 14  # bytes of an Ethernet header

_NEVER = "1tbit"
"""A peak rate that delays nothing (12 ns a packet). With a peak rate, a token bucket splits what is longer than its
`minburst` before it queues it (`tbf_segment`), so that rate, queue and drops are those of wire packets."""


@dataclass(frozen=True, slots=True)
class Shaper:
    """A token bucket for the packets to a node: its rate in bit/s, and its tail-drop queue in bytes."""

    rate: int
    queue: int
    mtu: int = 1500
    overhead: int = 0  # bytes that each frame takes on the wire in addition to those in memory
    splits: bool = False  # super-packets become wire packets before the queue

    @property
    def burst(self) -> int:
        """The size of the bucket in bytes: the bytes that pass in 250 us at the rate, and at least two full packets.

        A wake-up that is late by less than that costs no rate. A larger bucket would let bursts through.
        """
        return max(2 * (self.mtu + 100), self.rate // 8 // 4000)

    @property
    def words(self) -> str:
        """The shaper as arguments of `tc qdisc`."""
        more = f" overhead {self.overhead}" if self.overhead else ""
        if self.splits:
            more += f" peakrate {_NEVER} minburst {self.mtu + 100}"
        return f"tbf rate {self.rate}bit burst {self.burst} limit {self.queue}{more}"


XDP_MTU = 3500
"""The largest IP packet, in bytes, for which AF_XDP can be used: it fits into a chunk of its memory together with the
headroom (crates/emulator/src/xsk.rs)."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """A link as the middle node builds it.

    `shapers`: by node, the shaper of the packets that go to the node. `netem`: by node, the arguments of tc's netem on
    the middle node's port to the node, for packets that go to the node. With `netem_on_sender` they are for the node's
    own interface, and so for the packets that the node sends. `propagation`: by node, the arguments of a second netem
    on the middle node's port to the node, with what each packet takes in addition (an emulator has it by itself).
    `emulated`: an emulator on the middle node carries the packets; otherwise they are copied from port to port. `ipv6`:
    each node has an IPv6 address in addition to the IPv4 one. `super_packets`: the nodes may hand over super-packets;
    otherwise only wire packets. `card`: the link splits super-packets into wire packets, and the nodes merge packets
    that arrive.
    """

    name: str
    addresses: Mapping[str, str]  # node -> address/prefix length, the link's first node first
    shapers: Mapping[str, Shaper] = field(default_factory=dict)
    netem: Mapping[str, Sequence[str]] = field(default_factory=dict)
    netem_on_sender: bool = False
    propagation: Mapping[str, Sequence[str]] = field(default_factory=dict)
    emulated: bool = False
    super_packets: bool = False
    card: bool = False
    ipv6: bool = False
    mtu: int = 1500  # bytes of IP packet

    def plain(self) -> dict[str, Any]:
        """Return the link as a JSON object."""
        return asdict(self)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> LinkSpec:
        """Return the link from the JSON object that `plain` made."""
        shapers = {node: Shaper(**shaper) for node, shaper in plain["shapers"].items()}
        return cls(**{**plain, "shapers": shapers})

    def address(self, node: str) -> IPv4Address:
        """Return a node's IPv4 address on the link; KeyError if the node is not on it."""
        return IPv4Address(self.addresses[node].partition("/")[0])

    @property
    def counted_headers(self) -> tuple[int, int]:
        """Bytes of Ethernet header (14 or 0) that a node's interface counts in each packet received, and in each sent.

        An interface of a veth pair that is polled counts the packets that it receives without the header
        (drivers/net/veth.c: veth_xdp_rcv()). The other interface of the pair reports the same counts as those of the
        packets that it sent (veth_get_stats64()). A node's own interface is polled if it merges packets (`card`): then
        received packets count without the header. The middle node's port is polled if the emulator receives from it by
        AF_XDP: then the node's sent packets count without the header. The emulator receives by AF_XDP unless the link
        has super-packets, a shaper, or an MTU above `XDP_MTU`.
        """
        polled = self.emulated and not self.super_packets and not self.shapers and self.mtu <= XDP_MTU
        return 0 if self.card else ETHERNET, 0 if polled else ETHERNET

    def netem_here(self, node: str) -> bool:
        """Return whether netem is on the middle node's port to the node (not on the node's own interface)."""
        return node in self.netem and not self.netem_on_sender

    def ports(self, number: int) -> dict[str, str]:
        """Return, by node, the name of the middle node's port to it. `number`: the index of this link in the lab."""
        return {name: f"{name[:12]}.{number}" for name in self.addresses}

    def doors(self, number: int) -> dict[str, str]:
        """Return, by node, the interface on which the emulator sends and receives the node's packets.

        It is the middle node's port to the node, or the emulator's end of a veth pair to that port if the link has
        shapers.
        """
        if not self.shapers:
            return self.ports(number)
        return {name: f"{name[:9]}.{number}e" for name in self.addresses}

    def macs(self, number: int) -> dict[str, str]:
        """Return the Ethernet address of each node on this link. `number`: the index of the link in the lab."""
        return {name: f"02:00:00:00:{number:02x}:{place:02x}" for place, name in enumerate(self.addresses, start=1)}


def interface_of(node: str, links: Sequence[LinkSpec], number: int) -> str:
    """Return the name of a node's interface on link `number` (from 0) of all the lab's `links`."""
    return f"eth{sum(node in spec.addresses for spec in links[:number])}"


def six(address: IPv4Address) -> IPv6Address:
    """Return the IPv6 underlay address for an IPv4 one: fd50:0:0:L::H (unique local, RFC 4193) for 10.50.L.H."""
    return IPv6Address(f"fd50:0:0:{address.packed[2]:x}::{address.packed[3]:x}")
