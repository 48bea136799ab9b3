"""Records what held a trial's traffic back: how busy cores and threads were, where packets were lost, what TCP waited
for.

It has no metrics: its figures are not compared between arms, but explain what limited each trial
(`analyse.bottleneck`). They are recorded as `limits` of the attempt. Their names end in `source` or `target`, the node
that they are about:

    core_         share of the time (0 to 1) in which its busiest core had work of any kind, or a quota held it back;
                  or, if that is more, the share of the quota's periods in which the quota was used up
    used_         share of the time of all its cores in which it or another node used them, or a quota held it back;
                  or, if that is more, the share of the quota's periods, as for `core_`
    waited_       share of the time in which it had work, but none of it ran, because others had its core; 0 where the
                  kernel does not count that (`cpu.pressure`), or a node has several cores
    thread_       share of the time in which the busiest thread of the VPN's daemons ran
    wire_         bit/s that left on the underlay, with Ethernet headers (`typical`, see below)
    sent_, got_   packets that entered the overlay here, and that left it here; a super-packet counts as one
    sent_size_, got_size_   their mean size in bytes, which tells where packets were merged on the way
    out_          packets that left on the underlay
    drop_tun_     packets that tunnel interfaces (the overlay's, and those below) dropped because their queue was full
    drop_card_    packets that its underlay interfaces dropped, among them those for which a core's receive queue had no room
    drop_rcvbuf_  datagrams that found the receive buffer of a socket of the VPN full
    drop_rcvbuf_app_   the same of the workload's sockets
    drop_sndbuf_  datagrams that found a send buffer full
    drop_link_    packets sent from here that the queue of a link dropped; drop_lossy_: that a link's profile lost
    drop_refused_ those of `drop_link_` that a queue on the node's own interface refused (netem on the sender): the socket
                  or tunnel that handed them over counts them again, in `drop_sndbuf_` or `drop_tun_`
    tcp_busy_     share of the time with traffic in which the streams from here had data to send (see `_streams.busy`)
    tcp_window_, tcp_buffer_   shares of that busy time in which the receiver's window, or the sender's buffer, limited
                  the streams
    tcp_rate_     bit/s delivered by all of them, as the kernel measured last

`emulator` is how many cores were used by the programs of the links, which run on the middle node. Shares and rates are
*typical*: the median over intervals of half a second, from the first to the last interval with traffic, so that a
program that begins late on a busy machine does not dilute them. Counts are of the whole time, warm-up included.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from tunnelmark.host import keep_awake, softirq
from tunnelmark.linux import cgroups
from tunnelmark.run.collectors import _proc, _streams
from tunnelmark.run.collectors._end_counts import EndCounts
from tunnelmark.run.collectors._link_drops import LinkDrops
from tunnelmark.run.collectors._sockets import Connections
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch

EVERY = 0.5
SHORTEST = 0.2  # the least seconds between two looks from which a share is computed

_OVERLAY = "overlay_"  # the prefix of `EndCounts` of the index of an interface


@dataclass(frozen=True, slots=True)
class _Look:
    """All counters at one moment; times in seconds."""

    time: float
    rested: dict[int, float]  # by core: idle, and what our own loops used
    stolen: dict[int, float]
    used: dict[str, float]  # by end, the seconds that its work took
    waited: dict[str, float]  # by end, the seconds in which others had the core that it wanted
    held: dict[str, float]  # by end, the seconds that quotas held its cores back
    quotas: dict[str, tuple[_proc.Quota, ...]]  # by end, its own and those above it
    threads: dict[str, dict[int, float]]  # by end and thread
    middle: float
    counts: dict[str, float]  # by name and end
    streams: dict[str, dict[tuple[str, str], _proc.Stream]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Work:
    """CPU seconds so far: of tasks by node, of softirq work by core, and of softirq work billed nowhere, by core."""

    tasks: dict[str, float]
    softirqs: dict[int, float]
    unbilled: dict[int, float]


class _Limits:
    def __init__(self, context: CollectorContext) -> None:
        self._context = context
        self._ss = Connections()
        links = context.links
        self._links = None if links is None else LinkDrops(links, context.ends, context.further_ways)
        self._daemons = context.daemons  # now, while nothing else runs on the nodes
        self._sharing = {node: _on_cores_of(context, node) for node in context.ends.values()}
        self._counts = EndCounts(context)
        self._looks: list[_Look] = []
        self._streams: dict[str, dict[tuple[str, str], _proc.Stream]] = {end: {} for end in context.ends}

    async def begin(self) -> None:
        self._since = Stopwatch()
        if self._links is not None:
            await self._links.begin()
        self._looks = [await self._look(())]

    async def sample(self) -> None:
        # `ss` takes some milliseconds of a core, and its figures are counters. So one look a second is enough once
        # there is a stream, and only at the end that sends.
        due = len(self._looks) % 2 == 0 or not any(self._streams.values())
        self._looks.append(await self._look(self._senders() if due else ()))
        for end, streams in self._looks[-1].streams.items():
            self._streams[end] |= streams

    async def end(self) -> Collected:
        self._looks.append(await self._look(()))
        first, last = self._looks[0], self._looks[-1]
        found = _counted(first.counts, last.counts)
        if self._links is not None:
            found |= await self._links.since()
        spans = self._spans()
        if self._context.middle is not None:
            found["emulator"] = median((b.middle - a.middle) / _took(a, b) for a, b in spans)
        for end in self._context.ends:
            found[f"core_{end}"] = median(self._core(a, b, end) for a, b in spans)
            found[f"used_{end}"] = median(self._own(a, b, end) for a, b in spans)
            found[f"waited_{end}"] = median(self._waited(a, b, end) for a, b in spans)
            found[f"thread_{end}"] = median(_busiest(a.threads[end], b.threads[end]) / _took(a, b) for a, b in spans)
            sent = f"bytes_{end}"
            found[f"wire_{end}"] = median(8 * (b.counts[sent] - a.counts[sent]) / _took(a, b) for a, b in spans)
            del found[sent]
            for way in ("sent", "got"):
                if f"{way}_size_{end}" in found:
                    found[f"{way}_size_{end}"] /= max(found[f"{way}_{end}"], 1.0)
            found |= self._tcp(end, spans[0][0].time)
        return Collected(limits={name: round(value, 6) for name, value in sorted(found.items())}, cpu=self._ss.cpu)

    def _spans(self) -> list[tuple[_Look, _Look]]:
        """Return the pairs of successive looks from the first to the last pair with traffic.

        If only links are on this host, these are the pairs in which the links' programs used CPU.
        """
        spans = [(a, b) for a, b in pairwise(self._looks) if b.time - a.time >= SHORTEST]
        ends = self._context.ends
        done = [
            sum(b.counts[f"bytes_{end}"] - a.counts[f"bytes_{end}"] for end in ends) if ends else b.middle - a.middle
            for a, b in spans
        ]
        return spans[_streams.running([n / _took(*span) for n, span in zip(done, spans, strict=True)])] or [
            (self._looks[0], self._looks[-1])
        ]

    def _senders(self) -> tuple[str, ...]:
        """Return the ends whose streams are looked at: the one that has sent more, or both until a stream was seen."""
        sent = {end: sum(stream.sent for stream in streams.values()) for end, streams in self._streams.items()}
        return (max(sent, key=lambda end: sent[end]),) if any(sent.values()) else tuple(sent)

    def _core(self, before: _Look, after: _Look, end: str) -> float:
        """Return the share of time, without what the hypervisor took, in which a node's busiest core was not idle."""
        shares = []
        for core in self._context.nodes[self._context.ends[end]].cores:
            if core not in after.rested:
                continue  # it is not known whether it rested, and `used_` alone is evidence
            had = _took(before, after) - (after.stolen.get(core, 0.0) - before.stolen.get(core, 0.0))
            rested = after.rested[core] - before.rested.get(core, 0.0)
            shares.append(1 - min(max(rested / max(had, 1e-9), 0.0), 1.0))
        return _with_quotas(
            max(shares, default=0.0) + self._back(before, after, end), before.quotas[end], after.quotas[end]
        )

    def _own(self, before: _Look, after: _Look, end: str) -> float:
        """Return the share of a node's cores' time that its work took, and that of nodes on the same cores."""
        cores = len(self._context.nodes[self._context.ends[end]].cores) or 1
        used = (after.used[end] - before.used[end]) / _took(before, after) / cores
        return _with_quotas(used + self._back(before, after, end), before.quotas[end], after.quotas[end])

    def _waited(self, before: _Look, after: _Look, end: str) -> float:
        """Return the share of time in which a node had work and others had its core, without what a quota held back."""
        waited, held = after.waited[end] - before.waited[end], after.held[end] - before.held[end]
        return min(max((waited - held) / _took(before, after), 0.0), 1.0)

    def _back(self, before: _Look, after: _Look, end: str) -> float:
        """Return the share of a node's cores' time in which a quota held it back."""
        cores = len(self._context.nodes[self._context.ends[end]].cores) or 1
        return (after.held[end] - before.held[end]) / _took(before, after) / cores

    def _tcp(self, end: str, begun: float) -> dict[str, float]:
        """Return the `tcp_` figures of the streams an end sent; {} if the seen streams are under half its bytes.

        That happens with many short connections: those that end between two looks are not seen.
        """
        streams = tuple(self._streams[end].values())
        seen = [look for look in self._looks if look.streams.get(end)]
        sent = sum(stream.sent for stream in streams)
        if not seen or 2 * sent < seen[-1].counts[f"bytes_{end}"] - self._looks[0].counts[f"bytes_{end}"] or not sent:
            return {}
        busy = max(sum(stream.busy for stream in streams), 1e-9)
        looks = [(look.time, look.streams[end]) for look in seen]
        return {
            f"tcp_busy_{end}": _streams.busy(looks, self._streams[end], begun, SHORTEST),
            f"tcp_window_{end}": sum(stream.window for stream in streams) / busy,
            f"tcp_buffer_{end}": sum(stream.buffer for stream in streams) / busy,
            f"tcp_rate_{end}": sum(stream.rate for stream in streams),
        }

    async def _look(self, streams_of: Sequence[str]) -> _Look:
        context, tick = self._context, os.sysconf("SC_CLK_TCK")
        rests = _proc.idle(Path("/proc/stat").read_text(), tick)
        rested = {core: rest for core, (rest, _) in rests.items()}
        for loops in keep_awake.STANDING:
            for core, (own, _) in loops.spent().items():
                rested[core] = rested.get(core, 0.0) + own
        if os.environ.get(keep_awake.COUNTED):  # another program's loop keeps the cores awake, and we cannot count it
            rested = {}
        middle = None if context.middle is None else context.middle.group
        held = {end: self._quotas(node) for end, node in context.ends.items()}
        work = self._work()
        return _Look(
            time=self._since(),
            rested=rested,
            stolen={core: stolen for core, (_, stolen) in rests.items()},
            used={end: self._used(node, work) for end, node in context.ends.items()},
            waited={end: self._stalled(node, work) for end, node in context.ends.items()},
            held={end: sum(share * each.held for share, each in quotas) for end, quotas in held.items()},
            quotas={end: tuple(each for _, each in quotas) for end, quotas in held.items()},
            threads={end: _threads(self._daemons[node]) for end, node in context.ends.items()},
            middle=cgroups.used(middle).total if middle is not None else 0.0,
            counts=await self._counts.look(),
            streams={end: await self._connections(context.ends[end]) for end in streams_of},
        )

    async def _connections(self, node: str) -> dict[tuple[str, str], _proc.Stream]:
        text = await self._ss.of(self._context.nodes[node].agent)
        return _proc.streams(text, [self._context.nodes[node].address])

    def _work(self) -> _Work:
        """Read the counters that one look needs only once for both ends."""
        nodes = self._context.nodes
        groups = {name: nodes[name].group for sharing in self._sharing.values() for name in sharing}
        tasks = {name: cgroups.used(group).total for name, group in groups.items() if group is not None}
        return _Work(tasks, softirq.seconds(), softirq.unbilled())

    def _used(self, node: str, work: _Work) -> float:
        """Return the CPU seconds of a node, of nodes on the same cores, and of these cores' unbilled softirq work."""
        tasks = sum(work.tasks.get(name, 0.0) for name in self._sharing[node])
        cores = set(self._context.nodes[node].cores)
        return tasks + sum(counts.get(core, 0.0) for counts in (work.softirqs, work.unbilled) for core in cores)

    def _stalled(self, node: str, work: _Work) -> float:
        """Return the seconds when a node had work and none of it ran, less the work that `_used` counts for it, too.

        That is the work of nodes on the same core, and the core's softirq work. 0 if it is not known.
        """
        own, cores = self._context.nodes[node].group, set(self._context.nodes[node].cores)
        if own is None or len(cores) != 1:
            return 0.0
        others = sum(work.tasks.get(name, 0.0) for name in self._sharing[node] if name != node)
        others += sum(work.softirqs.get(core, 0.0) for core in cores)
        with contextlib.suppress(OSError):
            return _proc.stalled((own / "cpu.pressure").read_text()) - others
        return 0.0

    def _quotas(self, node: str) -> list[tuple[float, _proc.Quota]]:
        """Return the quotas of a node's control group and the groups above it, each with the node's share of `held`."""
        top, group = cgroups.find().cpu, self._context.nodes[node].group
        if top is None or group is None:
            return []
        part = len(self._context.nodes[node].cores) / (os.cpu_count() or 1)
        folder, share, found = top / group.parent.name / group.name, 1.0, []
        while (folder / "cpu.stat").exists() and folder != folder.parent:
            with contextlib.suppress(OSError):
                found.append((share, _proc.quota((folder / "cpu.stat").read_text())))
            folder, share = folder.parent, part
        return found


def _on_cores_of(context: CollectorContext, node: str) -> tuple[str, ...]:
    """Return the nodes that have a core in common with this one, itself included."""
    cores = set(context.nodes[node].cores)
    return tuple(name for name, other in context.nodes.items() if cores & set(other.cores))


def _counted(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return what was counted between two looks.

    If an overlay's interface was created again, it counts from zero since. Then no packets are reported as got, so that
    `analyse.bottleneck` does not take the difference to the other end's sent packets for a loss.
    """
    found = {name: max(0.0, after[name] - before[name]) for name in after if not name.startswith(_OVERLAY)}
    if any(after[name] != before[name] for name in after if name.startswith(_OVERLAY)):
        return {name: count for name, count in found.items() if not name.startswith(("got_", "sent_size_"))}
    return found


def _with_quotas(share: float, before: Sequence[_proc.Quota], after: Sequence[_proc.Quota]) -> float:
    """Return `share`, or the share of the periods in which a quota was used up if that is more, between 0 and 1."""
    return min(max(share, *(now.ran_out(then) for then, now in zip(before, after, strict=False)), 0.0), 1.0)


def _took(before: _Look, after: _Look) -> float:
    return max(after.time - before.time, 1e-9)


def _threads(processes: tuple[int, ...]) -> dict[int, float]:
    """Return the CPU seconds of each thread of some processes, by thread, from /proc/PID/task/TID/schedstat."""
    found = {}
    for process in processes:
        with contextlib.suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{process}/task").iterdir():
                with contextlib.suppress(OSError):
                    found[int(thread.name)] = int((thread / "schedstat").read_text().split()[0]) / 1e9
    return found


def _busiest(before: dict[int, float], after: dict[int, float]) -> float:
    return max((used - before.get(thread, 0.0) for thread, used in after.items()), default=0.0)


COLLECTOR = Collector("limits", "what held the traffic back", (), _Limits, every=EVERY, light=True, looks_at="all")
