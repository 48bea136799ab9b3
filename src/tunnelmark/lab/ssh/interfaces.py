"""Makes the interfaces that lead from a node here to other hosts. Called on a host, in its own network.

Each is made directly in the node's network, and ends with it. The host's network is not changed: a VXLAN sends by a UDP
socket of the host, and a VLAN's frames pass by the host's interface on which it is made.
"""

from __future__ import annotations

import asyncio
import errno
import time
from dataclasses import dataclass

from pyroute2 import IPRoute, NetlinkError

from tunnelmark.errors import LabError
from tunnelmark.lab.ssh.segments import VXLAN_HEADERS, Segment

_PATIENCE = 10.0  # seconds for the kernel to end an earlier interface of the same number
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Wanted:
    """One end of a segment, with the host's interface and address that it uses, and the address of the other host."""

    segment: Segment
    agent: int  # process of the node's agent
    kind: str  # `vxlan` or `vlan`
    interface: str
    address: str
    other: str
    port: int


def mtu_of(interface: str, address: str) -> int:
    """Return the MTU of an interface of this host in bytes. LabError if it is missing, down, or lacks that address."""
    with IPRoute() as route:
        found = route.link_lookup(ifname=interface)
        if not found:
            names = ", ".join(link.get("ifname") for link in route.get_links())
            raise LabError(f"there is no interface {interface}", hint=f"this host has {names}")
        (link,) = route.get_links(found[0])
        own = [each.get("address") for each in route.get_addr(index=found[0])]
        if address not in own:
            raise LabError(
                f"{interface} has not the address {address}", hint=f"it has {', '.join(map(str, own)) or 'none'}"
            )
        if link.get("operstate") == "DOWN":
            raise LabError(f"{interface} is down", hint=f"ip link set {interface} up")
        return int(link.get("mtu"))


async def make(wanted: Wanted) -> None:
    """Make the interface in the node's network. LabError if the kernel refuses it.

    The kernel also refuses a VXLAN or VLAN number while an earlier lab's interface of that number is not gone yet. Then
    try again for up to 10 seconds.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            await asyncio.to_thread(_make, wanted)  # pyroute2 runs an event loop of its own
            return
        except NetlinkError as error:
            # A VXLAN of an earlier lab ends a moment after its node; its number is free only then.
            if error.code != errno.EEXIST or time.monotonic() > until:
                raise LabError(
                    f"the kernel refuses {wanted.kind} {wanted.segment.number} on {wanted.interface}: {error}",
                    hint="other `numbers` in [network]; or another `kind`, where the kernel lacks this one",
                ) from None
        await asyncio.sleep(_POLL)


def _make(wanted: Wanted) -> None:
    segment = wanted.segment
    with IPRoute() as route:
        (below,) = route.link_lookup(ifname=wanted.interface)
        what: dict[str, object] = {"ifname": segment.interface, "kind": wanted.kind, "net_ns_pid": wanted.agent}
        what["mtu"] = segment.mtu
        if segment.mac is not None:
            what["address"] = segment.mac
        if wanted.kind == "vxlan":
            what |= {
                "vxlan_id": segment.number,
                "vxlan_link": below,
                "vxlan_local": wanted.address,
                "vxlan_group": wanted.other,
                "vxlan_port": wanted.port,
                "vxlan_learning": 0,
                "vxlan_ttl": 16,
            }
        else:
            what |= {"link": below, "vlan_id": segment.number}
        route.link("add", **what)


def fits(kind: str, mtu: int, wanted: int) -> bool:
    """Return whether a segment over an interface with this MTU carries IP packets of `wanted` bytes whole.

    `kind`: `vxlan`, which adds 50 bytes to each packet, or `vlan`.
    """
    return mtu >= wanted + (VXLAN_HEADERS if kind == "vxlan" else 0)
