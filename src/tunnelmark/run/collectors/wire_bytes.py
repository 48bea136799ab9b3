"""Compares the traffic outside the tunnel with that inside: bytes, packets, fragments, and the sizes of sent packets.

Bytes are those of IP packets with their headers, but without Ethernet headers, so direct has 1 byte outside per byte
inside by construction. If an interface takes super-packets (a VPN's, or a card with offloads), the wire packets that
they represent are counted, with their repeated headers, as `linux.packet_sizes` sees them.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from tunnelmark.linux.packet_sizes import SizeCounts, Tap
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, Turn, both

CLASSES = (128, 256, 512, 1024, 1518)
"""Upper ends of size classes, in bytes of an Ethernet frame, as in RFC 2544; the last has full IP packets of 1,500."""

METRICS = (
    Metric("wire_bytes_per_byte", "", "bytes outside per byte inside", "lower"),
    Metric("wire_packets_per_packet", "", "packets outside per packet inside", "lower"),
    *both("wire_sent", "B/s", "bytes sent outside"),
    *both("wire_packets", "1/s", "packets sent outside"),
    *both("wire_size", "B", "mean size of the packets sent outside", better="higher"),
    *both("wire_fragments", "%", "packets sent outside that are IP fragments", compare="difference"),
    *both("wire_reassembled", "1/s", "packets put together from IP fragments", compare="difference"),
    *(
        Metric(f"wire_to_{top}", "%", f"packets sent outside of at most {top} B, sender", "lower", "difference")
        for top in CLASSES
    ),
    Metric("wire_bigger", "%", f"packets sent outside of more than {CLASSES[-1]} B, sender", "lower", "difference"),
)
FILE = "watch.wire.json"
TOO_LITTLE = "less than 10 packets a second passed the overlay"
FEW = 10
"""The least packets per second inside for which the overhead is reported: with fewer, most are the VPN's own."""

UNKNOWN, UNCOUNTED = "inner_unknown", "super_packets_uncounted"
"""Keys of `Collected.sums`: of how many ends the VPN's interface was created again during the traffic, so that what
passed inside before is missing; and on how many hosts the kernel refused to count the packets of which a tunnel's super-packets consist.
"""
NOT_COUNTED = "the kernel refused to count the packets that super-packets consist of"

EVERY, TURN, MANY = 0.1, 10, 10_000
"""`EVERY`: seconds between two looks at the number of sent packets. From `MANY` packets a second on, sizes are counted
only after one of `TURN` looks: that costs the sender about 0.1 us per packet, and direct needs 0.5 us for a packet."""

_FCS = 4  # bytes that end a frame on a real wire, and count in its size there


class _Wire:
    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        self._refused = ""
        self._outside: dict[
            str, list[Tap]
        ] = {}  # on underlay interfaces: of the sender, and of both ends where these split
        self._inside: dict[str, Tap] = {}  # on the overlay interfaces, by node
        self._asked = 0

    async def begin(self) -> None:
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            await asyncio.to_thread(self._close)
            self._refused = f"the kernel refused to count packets: {error}"
        self._since = Stopwatch()
        self._first = self._look()
        self._before = (self._since(), self._sent())

    def _open(self) -> None:
        context = self._context
        for end, node in context.ends.items():
            if end == "source" or context.card == "offloads":
                names = _counts.interface_counts(context.proc(node, "net/dev"))
                self._outside[node] = [Tap(context.nodes[node].agent, name) for name in names if name.startswith("eth")]
            if not context.nodes[node].interface.startswith("eth"):  # there are no super-packets
                self._inside[node] = Tap(context.nodes[node].agent, context.nodes[node].interface)

    async def sample(self) -> None:
        """Switch the counting of sizes on or off: if there are many packets, it runs only now and then."""
        self._asked += 1
        now, sent = self._since(), self._sent()
        (then, before), self._before = self._before, (now, sent)
        many = sent - before > MANY * (now - then)
        for tap in self._outside.get(self._context.source, ()):
            if self._asked % TURN == 0 and not tap.running:
                await asyncio.to_thread(tap.resume)
            elif many and tap.running:
                await asyncio.to_thread(tap.pause)

    async def end(self) -> Collected:
        took, last = self._since(), self._look()
        inside = [tap.read() for tap in self._inside.values()]
        outside = {node: [tap.read() for tap in taps] for node, taps in self._outside.items()}
        sizes = Counter[int]()
        for counted in outside.get(self._context.source, ()):
            sizes.update(counted.sizes)
        await asyncio.to_thread(self._close)
        passed = {node: last[node].since(before) for node, before in self._first.items()}
        bare = {node: self._context.nodes[node].interface.startswith("eth") for node in passed}
        if self._context.card == "offloads":
            passed = {node: split(counts, outside.get(node, ()), bare[node]) for node, counts in passed.items()}
        notes: dict[str, str] = {}
        samples = list[Sample]()
        for end, node in self._context.ends.items():
            counts = passed[node]
            samples.append(Sample(f"wire_reassembled_{end}", counts.reassembled / took))
            if self._refused and self._context.card == "offloads":  # the card's counters have super-packets
                notes |= {f"wire_{what}_{end}": self._refused for what in ("sent", "packets", "fragments", "size")}
                continue
            samples.append(Sample(f"wire_sent_{end}", counts.sent_bytes / took))
            samples.append(Sample(f"wire_packets_{end}", counts.sent_packets / took))
            if counts.sent_packets:
                samples.append(Sample(f"wire_fragments_{end}", 100 * counts.created / counts.sent_packets))
                samples.append(Sample(f"wire_size_{end}", counts.sent_bytes / counts.sent_packets))
        if "source" in self._context.ends:
            samples += self._by_size(sizes, notes)
        sums = totals(passed, inside, took) | {UNCOUNTED: float(bool(self._refused) and not all(bare.values()))}
        return Collected(tuple(samples), notes, sums=sums)

    def _by_size(self, sizes: Mapping[int, int], notes: dict[str, str]) -> list[Sample]:
        names = [*(f"wire_to_{top}" for top in CLASSES), "wire_bigger"]
        if self._refused:
            notes |= dict.fromkeys(names, self._refused)
            return []
        (self._context.raw / FILE).write_text(
            json.dumps({"sent by": self._context.source, "packets by bytes": dict(sorted(sizes.items()))}) + "\n"
        )
        if not sizes:
            notes |= dict.fromkeys(names, "nothing was sent")
            return []
        return [Sample(name, 100 * share) for name, share in zip(names, classes(sizes), strict=True)]

    def _sent(self) -> int:
        """Return how many packets the sender has sent outside up to now; 0 if the sender is on another host."""
        node = self._context.ends.get("source")
        return 0 if node is None else _counts.traffic(self._context, node).sent_packets

    def _look(self) -> dict[str, _counts.TrafficCounts]:
        return {node: _counts.traffic(self._context, node) for node in self._context.ends.values()}

    def _close(self) -> None:
        for tap in (*(tap for taps in self._outside.values() for tap in taps), *self._inside.values()):
            tap.close()
        self._outside, self._inside = {}, {}


def split(counts: _counts.TrafficCounts, counted: Iterable[SizeCounts], bare: bool) -> _counts.TrafficCounts:
    """Convert a node's counts to wire packets, if its card splits super-packets.

    `counted` covers all sent packets or a part of them, and is scaled up by its bytes: a byte makes nearly the same number
    of wire packets in a super-packet of any length, so it does not matter if that part has longer or shorter packets.
    `bare`: there is no tunnel, so the underlay's interface is the overlay's, too.
    """
    seen = tuple(counted)
    counted_bytes, split_off = sum(each.ip_bytes for each in seen), sum(each.segments for each in seen)
    sent = counts.sent_bytes * sum(each.packets for each in seen) / counted_bytes if counted_bytes else 0.0
    segments = max(0, round(sent) - counts.sent_packets)
    headers = round(segments * sum(each.headers for each in seen) / split_off) if split_off else 0
    found = replace(counts, sent_packets=counts.sent_packets + segments, sent_bytes=counts.sent_bytes + headers)
    return replace(found, inner_sent_packets=found.sent_packets, inner_sent_bytes=found.sent_bytes) if bare else found


def totals(passed: Mapping[str, _counts.TrafficCounts], counted: Iterable[SizeCounts], took: float) -> dict[str, float]:
    """Return the bytes and packets that the ends sent inside and outside the tunnel, as values of `Collected.sums`.

    `inner_bytes`, `inner_packets`: inside, where a super-packet counts as the wire packets into which it is split.
    `bytes`, `packets`: outside. `rate`: packets per second inside, where a super-packet counts as one. `UNKNOWN` is there, too.
    `passed`: what passed at each end in `took` seconds. `counted`: what was seen of the super-packets inside.
    """
    super_packets = tuple(counted)
    packets = sum(counts.inner_sent_packets for counts in passed.values())
    return {
        "rate": packets / took,
        "inner_bytes": sum(counts.inner_sent_bytes for counts in passed.values())
        + sum(each.headers for each in super_packets),
        "inner_packets": packets + sum(each.segments for each in super_packets),
        "bytes": sum(counts.sent_bytes for counts in passed.values()),
        "packets": sum(counts.sent_packets for counts in passed.values()),
        UNKNOWN: sum(bool(counts.overlay) for counts in passed.values()),
    }


def overhead(seen: Collected) -> Collected:
    """Return the bytes outside per byte inside, and the packets outside per packet inside, of both ends together."""
    sums = seen.sums
    reason = _counts.CREATED_AGAIN if sums[UNKNOWN] else NOT_COUNTED if sums.get(UNCOUNTED) else ""
    if reason := reason or (TOO_LITTLE if sums["rate"] < FEW else ""):
        return Collected(notes=dict.fromkeys(("wire_bytes_per_byte", "wire_packets_per_packet"), reason))
    return Collected(
        (
            Sample("wire_bytes_per_byte", sums["bytes"] / sums["inner_bytes"]),
            Sample("wire_packets_per_packet", sums["packets"] / sums["inner_packets"]),
        )
    )


def classes(sizes: Mapping[int, int]) -> list[float]:
    """Return the share (0 to 1) of the packets in each class of `CLASSES`, and last the share of all larger packets.

    `sizes`: the number of packets by their size in bytes, without the FCS.
    """
    total = sum(sizes.values())
    edges = [0, *CLASSES, 1 << 32]
    return [
        sum(count for size, count in sizes.items() if low < size + _FCS <= high) / total
        for low, high in pairwise(edges)
    ]


COLLECTOR = Collector(
    "wire",
    "bytes and packets on the wire",
    METRICS,
    _Wire,
    every=EVERY,
    light=True,
    turn=Turn.TIMED_SOCKETS,
    conclude=overhead,
)
