"""Counts the packets that a trial's two ends sent, received and dropped.

Drops are counted at interfaces and at socket buffers.
"""

from __future__ import annotations

import contextlib

from tunnelmark.lab.link_spec import ETHERNET
from tunnelmark.run.collectors import _counts, _proc
from tunnelmark.run.collectors.base import CollectorContext

_UNDERLAY = "eth"  # what the lab's names of underlay interfaces begin with


class EndCounts:
    """Reads the counters of both ends, under the names that the module `limits` lists.

    Three kinds of values are not yet what `limits` reports. `sent_size_` and `got_size_` are numbers of bytes, which
    `limits` divides by the number of packets. `bytes_` are the bytes sent on the underlay, from which `limits` gets the
    rate `wire_`. `overlay_` is the index of the overlay's interface, 0 while it is missing: it tells `limits` whether
    the interface was created again.
    """

    def __init__(self, context: CollectorContext) -> None:
        """Note which UDP sockets are the VPN's: make it while nothing but the VPN's daemons runs on the nodes."""
        self._context = context
        self._sockets = {end: set(self._udp(node)) for end, node in context.ends.items()}

    async def look(self) -> dict[str, float]:
        """Return all counters as they are now."""
        return self._of_nodes() | await self._in_wire_packets()

    def _of_nodes(self) -> dict[str, float]:
        """Return what the ends' own interfaces, cores and sockets counted."""
        context = self._context
        found: dict[str, float] = {}
        for end, node in context.ends.items():
            interfaces = _proc.devices(context.proc(node, "net/dev"))
            wires = [device for name, device in interfaces.items() if name.startswith(_UNDERLAY)]
            left_out = sum(
                (ETHERNET - sent) * interfaces[name].sent_packets
                for name, (_, sent) in context.nodes[node].headers.items()
                if name in interfaces
            )
            if not (inner := context.nodes[node].interface).startswith(_UNDERLAY):
                tunnels = (one for name, one in interfaces.items() if name != "lo" and not name.startswith(_UNDERLAY))
                found[f"drop_tun_{end}"] = sum(one.sent_dropped for one in tunnels)
                overlay = interfaces.get(inner, _proc.Device())
                found[f"sent_{end}"] = overlay.sent_packets
                found[f"got_{end}"] = overlay.received_packets
                found[f"sent_size_{end}"] = overlay.sent_bytes
                found[f"got_size_{end}"] = overlay.received_bytes
                found[f"overlay_{end}"] = _counts.interface_index(context, node, inner)
            found[f"bytes_{end}"] = sum(wire.sent_bytes for wire in wires) + left_out
            found[f"out_{end}"] = sum(wire.sent_packets for wire in wires)
            # Those that found a core's receive queue full are in `received_dropped` (`enqueue_to_backlog`, Linux 6.18).
            # /proc/net/softnet_stat has them by core: another lab's packets that found the same queue full, too.
            found[f"drop_card_{end}"] = sum(wire.sent_dropped + wire.received_dropped for wire in wires)
            received = sent = 0
            for file in ("net/snmp", "net/snmp6"):
                with contextlib.suppress(OSError):  # there is no IPv6
                    into, out = _proc.udp_errors(context.proc(node, file))
                    received, sent = received + into, sent + out
            own = sum(drops for inode, drops in self._udp(node).items() if inode in self._sockets[end])
            found[f"drop_rcvbuf_{end}"] = own
            found[f"drop_rcvbuf_app_{end}"] = max(received - own, 0)
            found[f"drop_sndbuf_{end}"] = sent
        return found

    async def _in_wire_packets(self) -> dict[str, float]:
        """Return what each end sent, in wire packets, from the links' counters; {} if cards do not split super-packets.

        If they do, the ends' own interfaces count super-packets.
        """
        if self._context.card == "none" or self._context.links is None:
            return {}
        found: dict[str, float] = {}
        links = await self._context.links.link_counters()
        for end, node in self._context.ends.items():
            first = self._first_hop(end)
            if (port := next((ports[first] for ports in links if {node, first} <= ports.keys()), None)) is not None:
                found |= {f"bytes_{end}": port["bytes"], f"out_{end}": port["packets"]}
        return found

    def _first_hop(self, end: str) -> str:
        """Return the node to which an end's packets go first: the other end, or the node that forwards to it."""
        further = (sender for (sender, _), ends in self._context.further_ways.items() if end in ends)
        return next(further, self._context.target if end == "source" else self._context.source)

    def _udp(self, node: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for file in ("net/udp", "net/udp6"):
            with contextlib.suppress(OSError):
                found |= _proc.udp_drops(self._context.proc(node, file))
        return found
