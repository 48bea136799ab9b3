"""What stands on the wire for what is inside: bytes, packets, fragments, and the sizes of the packets that leave.

Bytes are those of IP packets, headers included, Ethernet headers not: direct has 1 outside for 1 inside by construction.
Where a VPN's interface takes super-packets, the headers of the segments that each stands for are added, as `lab.taps` counts
them: 52 bytes (RFC 9293 and RFC 7323: an IPv4 header and one of TCP with timestamps).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from tunnelmark.lab.taps import Tap
from tunnelmark.run.watch import _counts
from tunnelmark.run.watch.base import Eye, Scene, Seen, Since, Watcher, both
from tunnelmark.workloads.base import Metric, Sample

CLASSES = (128, 256, 512, 1024, 1518)
"""Upper ends of the size classes in bytes of an Ethernet frame, as in RFC 2544; the last holds whole packets of 1,500."""

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
"""Packets a second inside from which on their overhead is told: below, a VPN's own packets are most of what there is."""

EVERY, TURN, MANY = 0.1, 10, 10_000
"""Seconds between two looks at how many packets leave; from `MANY` a second on, their sizes are counted for one look of
every `TURN`, as counting costs the sender about a tenth of a microsecond a packet, and direct needs half of one."""

_SEGMENT = 52
_FCS = 4  # bytes that end a frame on a real wire, and count in its size there


class _Wire:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._refused = ""
        self._sizes: list[Tap] = []  # on the sender's underlay interfaces
        self._inside: dict[str, Tap] = {}  # on the overlay interfaces, by node
        self._asked = 0

    async def begin(self) -> None:
        self._since = Since()
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            await asyncio.to_thread(self._close)
            self._refused = f"the kernel refused to count packets: {error}"
        self._first = self._look()
        self._before = (self._since(), self._first[self._scene.source].sent_packets)

    def _open(self) -> None:
        scene = self._scene
        for name in _counts.interface_counts(scene.proc(scene.source, "net/dev")):
            if name.startswith("eth"):
                self._sizes.append(Tap(scene.lab.nodes[scene.source].pid, name))
        for node in scene.ends.values():
            if not scene.tunnel.interface[node].startswith("eth"):  # there are no super-packets
                self._inside[node] = Tap(scene.lab.nodes[node].pid, scene.tunnel.interface[node])

    async def sample(self) -> None:
        """Sizes of many packets are looked at now and then only; few packets can all be looked at."""
        self._asked += 1
        now, sent = self._since(), _counts.traffic(self._scene, self._scene.source).sent_packets
        (then, before), self._before = self._before, (now, sent)
        many = sent - before > MANY * (now - then)
        for tap in self._sizes:
            if self._asked % TURN == 0 and not tap.running:
                await asyncio.to_thread(tap.resume)
            elif many and tap.running:
                await asyncio.to_thread(tap.pause)

    async def end(self) -> Seen:
        took, last = self._since(), self._look()
        more = sum(tap.read().segments for tap in self._inside.values())
        sizes = Counter[int]()
        for tap in self._sizes:
            sizes.update(tap.read().sizes)
        await asyncio.to_thread(self._close)
        passed = {node: last[node].since(before) for node, before in self._first.items()}
        notes: dict[str, str] = {}
        samples = overhead(passed, more, took, notes)
        for end, node in self._scene.ends.items():
            counts = passed[node]
            samples += [
                Sample(f"wire_sent_{end}", counts.sent_bytes / took),
                Sample(f"wire_packets_{end}", counts.sent_packets / took),
                Sample(f"wire_reassembled_{end}", counts.reassembled / took),
            ]
            if counts.sent_packets:
                samples.append(Sample(f"wire_fragments_{end}", 100 * counts.created / counts.sent_packets))
                samples.append(Sample(f"wire_size_{end}", counts.sent_bytes / counts.sent_packets))
        samples += self._by_size(sizes, notes)
        return Seen(tuple(samples), notes)

    def _by_size(self, sizes: Mapping[int, int], notes: dict[str, str]) -> list[Sample]:
        names = [*(f"wire_to_{top}" for top in CLASSES), "wire_bigger"]
        if self._refused:
            notes |= dict.fromkeys(names, self._refused)
            return []
        (self._scene.raw / FILE).write_text(
            json.dumps({"sent by": self._scene.source, "packets by bytes": dict(sorted(sizes.items()))}) + "\n"
        )
        if not sizes:
            notes |= dict.fromkeys(names, "nothing was sent")
            return []
        return [Sample(name, 100 * share) for name, share in zip(names, classes(sizes), strict=True)]

    def _look(self) -> dict[str, _counts.Traffic]:
        return {node: _counts.traffic(self._scene, node) for node in self._scene.ends.values()}

    def _close(self) -> None:
        for tap in (*self._sizes, *self._inside.values()):
            tap.close()
        self._sizes, self._inside = [], {}


def overhead(passed: Mapping[str, _counts.Traffic], segments: int, took: float, notes: dict[str, str]) -> list[Sample]:
    """What both ends sent outside for what they sent inside; super-packets inside became so many `segments` more."""
    packets = sum(counts.inner_sent_packets for counts in passed.values())
    if packets < FEW * took:
        notes |= dict.fromkeys(("wire_bytes_per_byte", "wire_packets_per_packet"), TOO_LITTLE)
        return []
    inside = sum(counts.inner_sent_bytes for counts in passed.values()) + _SEGMENT * segments
    return [
        Sample("wire_bytes_per_byte", sum(counts.sent_bytes for counts in passed.values()) / inside),
        Sample(
            "wire_packets_per_packet", sum(counts.sent_packets for counts in passed.values()) / (packets + segments)
        ),
    ]


def classes(sizes: Mapping[int, int]) -> list[float]:
    """The share of packets in each class of `CLASSES` and beyond, 0 to 1, from their number by bytes without FCS."""
    total = sum(sizes.values())
    edges = [0, *CLASSES, 1 << 32]
    return [
        sum(count for size, count in sizes.items() if low < size + _FCS <= high) / total
        for low, high in pairwise(edges)
    ]


def _watch(scene: Scene) -> Eye:
    return _Wire(scene)


WATCHER = Watcher("wire", "bytes and packets on the wire", METRICS, _watch, every=EVERY, light=True)
