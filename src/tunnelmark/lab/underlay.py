"""The links of a lab: a bridge a link on the middle node, a shaper a direction, an address a node.

Rate and queue are shaped on the middle node's ports and never on an end host. Wire packets reach the
middle node, not super-packets: the end hosts' interfaces have no segmentation offload, so their
kernels split TSO and USO before a packet leaves. Receive offload (GRO) stays on, as on real
interfaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pyroute2 import Ethtool, IPRoute

from tunnelmark.lab import syscalls

OFFLOADS: Mapping[str, bool] = {
    "tx-tcp-segmentation": False,
    "tx-tcp-ecn-segmentation": False,
    "tx-tcp-mangleid-segmentation": False,
    "tx-tcp6-segmentation": False,
    "tx-tcp-accecn-segmentation": False,
    "tx-udp-segmentation": False,
    "rx-gro": True,
}
"""Offload features of the end hosts' interfaces by the kernel's names (netdev_features_strings)."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A link as the middle node builds it: address of each node on it, rate in bit/s, queue in bytes."""

    name: str
    addresses: Mapping[str, str]  # node -> address/prefix length
    rate: int | None
    queue: int | None

    @property
    def burst(self) -> int:
        """The shaper's bucket in bytes: 250 us of the rate, at least two full packets.

        A wake-up late by less than that costs no rate; a longer bucket would let bursts through.
        """
        return max(2 * 1600, (self.rate or 0) // 8 // 4000)

    def plain(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)


def build(middle: int, nodes: Mapping[str, int], wires: Sequence[Wire]) -> None:
    """Join nodes (PIDs of their agents) by wires that run through the middle node (its PID)."""
    joined: dict[str, list[tuple[str, str]]] = {name: [] for name in nodes}
    with _inside(middle) as route:
        for number, wire in enumerate(wires):
            route.link("add", ifname=f"link{number}", kind="bridge", br_mcast_snooping=0)
            bridge = _index(route, f"link{number}")
            for name, address in wire.addresses.items():
                interface, port = f"eth{len(joined[name])}", f"{name[:12]}.{number}"
                route.link("add", ifname=port, kind="veth", peer={"ifname": interface, "net_ns_pid": nodes[name]})
                index = _index(route, port)
                if wire.rate is not None:
                    route.tc("add", "tbf", index, 0x10000, rate=wire.rate // 8, burst=wire.burst, limit=wire.queue)
                route.link("set", index=index, master=bridge, state="up")
                joined[name].append((interface, address))
            route.link("set", index=bridge, state="up")
    for name, interfaces in joined.items():
        with _inside(nodes[name]) as route:
            route.link("set", index=_index(route, "lo"), state="up")
            for interface, address in interfaces:
                _set_offloads(interface)
                index = _index(route, interface)
                host, _, prefix = address.partition("/")
                route.addr("add", index=index, address=host, prefixlen=int(prefix))
                route.link("set", index=index, state="up")


def counters(middle: int) -> dict[str, dict[str, int]]:
    """What each port of the middle node sent towards its node: bytes, packets, and drops by its queue."""
    found: dict[str, dict[str, int]] = {}
    with _inside(middle) as route:
        drops = {q["index"]: _queue_drops(q) for q in route.get_qdiscs()}
        for link in route.get_links():
            port, stats = link.get("ifname"), link.get("stats64")
            if stats is not None and "." in port:
                found[port] = {
                    "bytes": stats["tx_bytes"],
                    "packets": stats["tx_packets"],
                    "dropped": drops.get(link["index"], 0),
                }
    return found


def _queue_drops(qdisc: Any) -> int:
    stats = qdisc.get("stats2")
    queue = stats.get("queue") if stats is not None else None
    return int(queue["drops"]) if queue is not None else 0


def _set_offloads(interface: str) -> None:
    with Ethtool() as ethtool:
        features = ethtool.get_features(interface)
        for name, on in OFFLOADS.items():
            if name in features.features:
                features.features[name].enable = on
        ethtool.set_features(interface, features)


def _index(route: IPRoute, name: str) -> int:
    found: list[int] = route.link_lookup(ifname=name)
    return found[0]


@contextmanager
def _inside(pid: int) -> Iterator[IPRoute]:
    """A netlink socket inside the network namespace of another process; we are back outside afterwards."""
    with open("/proc/self/ns/net") as back:
        syscalls.enter(pid, "net")
        try:
            with IPRoute() as route:
                yield route
        finally:
            syscalls.reenter(back.fileno())


