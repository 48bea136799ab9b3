"""Finds which path the traffic took on the underlay: from end to end, or through a third node; and whether it used TCP.

Both ends note who sent the packets that reach their cards (a sample of them if there are many). If more bytes arrive
inside the tunnel than came from the other end outside, the excess took another path. Each look (one reading of the
counters) is judged on its own. A sum over all looks would hide such an excess: in other looks, the headers of small
packets make more bytes arrive outside than inside. Other packets of third nodes do not count, because they bring
nothing inside. If the workload has traffic between further nodes, as in a ring, packets from these nodes count as
direct. So do packets from a router that translates the other end's address and, in a cascade, from the address that the
last tunnel's packets come from.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from statistics import fmean

from tunnelmark.linux.packet_sampler import PacketSampler
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.path_looks import DIRECT, RELAYED, direct_from
from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors._backlog import Backlog
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, Turn

TCP, SOON = "path_tcp", "path_direct_after"
METRICS = (
    Metric(DIRECT, "%", "bytes that came from the other end itself", "higher", "difference", feels="counts"),
    Metric(RELAYED, "%", "bytes that came through a third node", "lower", "difference", feels="counts"),
    Metric(SOON, "s", "from the VPN's start until all went directly", "lower", "difference", feels="delay"),
    Metric(TCP, "%", "bytes that came over TCP on the underlay", "lower", "difference", feels="counts"),
)
AGE = "age"
"""The key of `Collected.of_each_host` for the seconds from the VPN's start until this collector began."""

FILE = "watch.path.json"
NEVER = "the traffic did not go directly at the end"
TOO_LITTLE = "less than 64 KiB arrived inside"
LEAST = 1 << 16
"""The least bytes inside for which a path is reported: fewer may be a VPN's own pings."""

BRIEF = 1 << 11
"""The least bytes inside between two looks for which the path in that time is reported."""

EVERY, TURN, MANY = 0.1, 10, 10_000
"""`EVERY`: seconds between two looks. From `MANY` packets a second on, only one of `TURN` looks samples packets: while
a socket listens, each packet costs its node some ten nanoseconds, even if it is not sampled."""

_WANTED = 64  # so many sampled packets of a look suffice to say who sent most of its packets
_TCP = 6
_UNKNOWN = "?"
_OF = "eth"  # what the lab's names of underlay interfaces begin with


@dataclass(slots=True)
class Arrivals:
    """Bytes that arrived at one end: inside the tunnel, outside by sender, and outside over TCP."""

    inside: float = 0.0
    by_sender: Counter[str] = field(default_factory=Counter)
    over_tcp: float = 0.0

    @property
    def outside(self) -> float:
        """The bytes from all senders together."""
        return float(sum(self.by_sender.values()))

    def scaled(self, inside: float, outside: float) -> Arrivals:
        """Return arrivals of `inside` bytes inside and `outside` bytes outside, with equal shares by sender and of TCP.

        Raises ZeroDivisionError if no bytes arrived outside here, because the shares come from these bytes.
        """
        each = outside / self.outside
        return Arrivals(
            inside, Counter({name: round(count * each) for name, count in self.by_sender.items()}), self.over_tcp * each
        )

    def add(self, other: Arrivals) -> None:
        """Add the bytes of another look."""
        self.inside += other.inside
        self.by_sender.update(other.by_sender)
        self.over_tcp += other.over_tcp


def totals(
    arrived: Mapping[str, Arrivals], others: Mapping[str, str], backlogs: Mapping[str, Backlog]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the bytes by path: first as this look alone shows them, then with the help of earlier looks.

    Both results have the keys `inside`, `outside`, `direct`, `relayed` (these two are parts of `inside`) and `over_tcp`
    (a part of `outside`). Bytes inside that no sender's bytes explain are counted for neither path.

    Each parameter has the names of the ends' nodes as keys. `arrived`: what arrived at the end in one look. `others`:
    the name of the other end's node. `backlogs`: the bytes that earlier looks saw outside and not yet inside; those of
    this look are added.
    """
    late = {"direct": 0.0, "relayed": 0.0}
    found = dict.fromkeys(("inside", "outside", "direct", "relayed", "over_tcp"), 0.0)
    for end, each in arrived.items():
        own, unknown = each.by_sender[others[end]], each.by_sender[_UNKNOWN]
        third = each.outside - own - unknown
        direct = min(own, each.inside)
        relayed = min(each.inside - direct, third)
        for way, waited in zip(late, backlogs[end].take(each.inside - direct - relayed - unknown), strict=True):
            late[way] += waited
        backlogs[end].add(own - direct, third - relayed)
        found["inside"] += each.inside
        found["outside"] += each.outside
        found["direct"] += direct
        found["relayed"] += relayed
        found["over_tcp"] += each.over_tcp
    return found, {name: count + late.get(name, 0.0) for name, count in found.items()}


def shares(bytes_: Mapping[str, float], least: int = LEAST) -> dict[str, float]:
    """Return the shares of bytes by path and of TCP in per cent, by metric, from the counts of `totals`.

    {} if fewer than `least` bytes arrived inside, or if no byte arrived outside.
    """
    inside, outside = bytes_["inside"], bytes_["outside"]
    if inside < least or not outside:
        return {}
    return {
        DIRECT: 100 * bytes_["direct"] / inside,
        RELAYED: 100 * bytes_["relayed"] / inside,
        TCP: 100 * bytes_["over_tcp"] / outside,
    }


def directly_from(series: Sequence[Sample]) -> float | None:
    """Return the time from which all traffic was direct (see `direct_from`), in seconds since the collector's `begin`.

    `series`: the shares `DIRECT` and `RELAYED` of each look. None if the last look was not direct, or without a look.
    """
    looks: dict[float, dict[str, float]] = {}
    for sample in series:
        if sample.time is not None:
            looks.setdefault(sample.time, {"time": sample.time})[sample.metric] = sample.value
    return direct_from([look for _, look in sorted(looks.items())])


class _End:
    """Counts what arrives at one end's underlay interfaces, and samples who sent it."""

    def __init__(self, context: CollectorContext, node: str) -> None:
        self._context, self._node = context, node
        self._names = {ip_address(address): sender for address, sender in context.nodes[node].senders.items()}
        names = [name for name in _counts.interface_counts(context.proc(node, "net/dev")) if name.startswith(_OF)]
        self._samplers: list[PacketSampler] = []
        try:
            for name in names:
                self._samplers.append(PacketSampler(context.nodes[node].agent, name))
        except OSError:
            self.close()
            raise
        self._overlay = context.nodes[node].interface
        self._header, _ = _counts.headers(context, node, self._overlay)
        self._looks = 0
        self._waiting = Arrivals()  # bytes that came while no packets were sampled
        self._known = Arrivals()  # what the last look with sampled packets saw

    def begin(self) -> None:
        self._before = self._look()
        for sampler in self._samplers:
            sampler.listen(1.0)

    def sample(self, seconds: float, *, last: bool = False) -> Arrivals:
        """Return what arrived since the last look; its bytes are divided by sender like those of the sampled packets.

        `seconds`: the time since the last look. Bytes that came while no packets were sampled are returned by the next
        look with samples. They are divided by sender like the bytes of the looks before and after them together. So a
        single packet of a third node, which is seen alone because the traffic has ended, does not decide about all
        bytes before. `last`: no other look follows, so nothing may wait for it.
        """
        now = self._look()
        if now[0] < self._before[0]:  # the overlay's interface is a new one, which counts from zero
            self._before = (0.0, *self._before[1:])
        inside, outside, packets = (after - before for after, before in zip(now, self._before, strict=True))
        self._before = now
        seen = Arrivals()
        for sampler in self._samplers:
            for head in sampler.heads():
                seen.by_sender[self._name(head.sender)] += head.length
                seen.over_tcp += head.length if head.protocol == _TCP else 0
        self._tune(packets / max(seconds, 1e-3))
        if not seen.outside:
            self._waiting.add(Arrivals(inside, Counter({_UNKNOWN: round(outside)})))
            if self._waiting.outside and not last:
                return Arrivals()
            found = Arrivals()
        else:
            found = seen.scaled(inside, outside)
        waited, self._waiting = self._waiting, Arrivals()
        both = Arrivals()
        both.add(self._known)
        both.add(found)
        if seen.outside:
            self._known = Arrivals(0.0, Counter(found.by_sender), found.over_tcp)
        if both.outside:
            found.add(both.scaled(waited.inside, waited.outside))
        elif not waited.outside:
            found.add(waited)
        return found

    def _tune(self, rate: float) -> None:
        """Sample as many packets as this rate (packets per second) needs; of a fast stream only in some looks."""
        self._looks += 1
        for sampler in self._samplers:
            if rate > MANY and self._looks % TURN:
                sampler.pause()
            else:
                sampler.listen(min(1.0, _WANTED / max(rate * EVERY, 1.0)))

    def _name(self, sender: IPv4Address | IPv6Address) -> str:
        return self._names.get(sender, _UNKNOWN)

    def _look(self) -> tuple[float, float, float]:
        """Return the bytes inside, the bytes outside, and the packets outside that have arrived up to now.

        Inside, Ethernet headers do not count.
        """
        counts = _counts.interface_counts(self._context.proc(self._node, "net/dev"))
        wires = [each for name, each in counts.items() if name.startswith(_OF)]
        outside, packets = sum(each[0] for each in wires), sum(each[1] for each in wires)
        inner, number, *_ = counts.get(self._overlay, (0, 0, 0, 0))
        return inner - self._header * number, outside, packets

    def close(self) -> None:
        for sampler in self._samplers:
            sampler.close()


class _Path:
    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        ends = context.source, context.target
        self._others = dict(zip(ends, reversed(ends), strict=True))
        self._ends: dict[str, _End] = {}
        try:
            for node in context.ends.values():
                self._ends[node] = _End(context, node)
        except OSError:
            self._close()
            raise
        self._total = {node: Arrivals() for node in self._ends}
        self._backlogs = {node: Backlog() for node in self._ends}
        _, self._sums = totals({}, self._others, self._backlogs)
        self._series: list[Sample] = []
        self._looks: list[dict[str, float]] = []  # `time` in seconds of CLOCK_MONOTONIC, the clock of events

    async def begin(self) -> None:
        self._since, self._last, self._begun = Stopwatch(), 0.0, self._context.now()
        for end in self._ends.values():
            end.begin()

    async def sample(self) -> None:
        await asyncio.to_thread(self._sample)

    def _sample(self, *, last: bool = False) -> None:
        now = self._since()
        looked = {node: end.sample(now - self._last, last=last) for node, end in self._ends.items()}
        self._last = now
        for node, arrived in looked.items():
            self._total[node].add(arrived)
        alone, came = totals(looked, self._others, self._backlogs)
        self._sums = {name: before + came[name] for name, before in self._sums.items()}
        seen = shares(alone, BRIEF)
        self._series += [Sample(name, share, round(now, 3)) for name, share in seen.items()]
        if seen:
            self._looks.append({"time": self._begun + now, **seen})

    async def end(self) -> Collected:
        await asyncio.to_thread(self._sample, last=True)
        self._close()
        seen = {node: {"inside": each.inside, "outside": dict(each.by_sender)} for node, each in self._total.items()}
        (self._context.raw / FILE).write_text(
            json.dumps({"bytes that arrived": seen, "looks": self._looks}, indent=1) + "\n"
        )
        age = self._begun - self._context.begun
        return Collected(tuple(self._series), sums=self._sums, of_each_host={AGE: (age,)})

    def _close(self) -> None:
        for end in self._ends.values():
            end.close()


def conclude(seen: Collected) -> Collected:
    """Return the shares over the whole time, and how many seconds after the VPN's start all traffic was direct."""
    found = shares(seen.sums)
    if not found:
        return Collected(notes=dict.fromkeys((DIRECT, RELAYED, TCP, SOON), TOO_LITTLE))
    notes = {}
    if (soon := directly_from(seen.samples)) is not None:
        found[SOON] = soon + fmean(seen.of_each_host[AGE])  # hosts begin a moment one after the other
    else:
        notes[SOON] = NEVER
    return Collected(tuple(Sample(name, share) for name, share in found.items()), notes)


COLLECTOR = Collector(
    "path",
    "which way the traffic took",
    METRICS,
    _Path,
    every=EVERY,
    light=True,
    turn=Turn.SOCKETS,
    conclude=conclude,
)
