"""Reads the sender's TCP state twice a second: congestion window, round-trip time, retransmissions, reordering.

`ss -tin` shows the connections of the workload, which have the node's overlay address, and those of a VPN that uses TCP
itself, which have an underlay address. In a series, the connection that has sent most represents all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.run.collectors._sockets import Connections
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch

_WHOSE = {"tcp": "the workload's", "tcp_own": "the VPN's own"}
METRICS = tuple(
    metric
    for name, whose in _WHOSE.items()
    for metric in (
        Metric(f"{name}_cwnd", "KiB", f"congestion window of {whose} TCP", "higher"),
        Metric(f"{name}_rtt", "ms", f"round-trip time of {whose} TCP", "lower"),
        Metric(f"{name}_retransmits", "segments", f"retransmitted by {whose} TCP", "lower", "difference"),
        Metric(f"{name}_reordering", "events", f"reordering seen by {whose} TCP", "lower", "difference"),
    )
)
EVERY = 0.5
NONE = {"tcp": "the workload uses no TCP over the overlay", "tcp_own": "the VPN uses no TCP itself"}


@dataclass(frozen=True, slots=True)
class Connection:
    """A TCP connection in `ss -tin`: its two addresses with ports, and its state at the moment.

    `sent`: bytes sent up to now. `cwnd`: the congestion window in bytes. `rtt`: the round-trip time in ms.
    `retransmits`: segments sent again up to now. `reordering`: how often TCP has seen reordering up to now.
    """

    local: str
    peer: str
    sent: int
    cwnd: int
    rtt: float
    retransmits: int
    reordering: int


class _Tcp:
    def __init__(self, context: CollectorContext) -> None:
        self._agent = context.nodes[context.source].agent
        self._connections = Connections()
        self._inner = context.nodes[context.source].address
        self._series: dict[str, list[tuple[float, Connection]]] = {name: [] for name in _WHOSE}
        self._last: dict[str, dict[tuple[str, str], Connection]] = {name: {} for name in _WHOSE}

    async def begin(self) -> None:
        self._since = Stopwatch()
        self._before = await self._look()

    async def sample(self) -> None:
        now, found = self._since(), await self._look()
        for name, mine in found.items():
            self._last[name] |= mine
            if mine:
                self._series[name].append((now, max(mine.values(), key=lambda one: one.sent)))

    async def end(self) -> Collected:
        samples, notes = list[Sample](), dict[str, str]()
        for name, series in self._series.items():
            if not series:
                notes |= dict.fromkeys((f"{name}_{what}" for what in _VALUES), NONE[name])
                continue
            samples += [
                Sample(f"{name}_{what}", value(one), round(time, 3))
                for time, one in series
                for what, value in _VALUES.items()
            ]
            samples += [
                Sample(f"{name}_{what}", median(_VALUES[what](one) for _, one in series)) for what in ("cwnd", "rtt")
            ]
            for what in ("retransmits", "reordering"):
                before = {key: _VALUES[what](one) for key, one in self._before[name].items()}
                total = sum(_VALUES[what](one) - before.get(key, 0.0) for key, one in self._last[name].items())
                samples.append(Sample(f"{name}_{what}", total))
        return Collected(tuple(samples), notes, self._connections.cpu)

    async def _look(self) -> dict[str, dict[tuple[str, str], Connection]]:
        found: dict[str, dict[tuple[str, str], Connection]] = {name: {} for name in _WHOSE}
        for one in connections(await self._connections.of(self._agent)):
            host = one.local.rpartition(":")[0].strip("[]").partition("%")[0].removeprefix("::ffff:")
            if not host.startswith("127."):
                found["tcp" if host == self._inner else "tcp_own"][one.local, one.peer] = one
        return found


_VALUES: Mapping[str, Callable[[Connection], float]] = {
    "cwnd": lambda one: one.cwnd / 1024,
    "rtt": lambda one: one.rtt,
    "retransmits": lambda one: float(one.retransmits),
    "reordering": lambda one: float(one.reordering),
}


def connections(text: str) -> list[Connection]:
    """Return the connections in the output of `ss -tinH`: two lines for each, its addresses and its statistics."""
    found, ends = [], ("", "")
    for line in text.splitlines():
        if line[:1].isspace():
            found.append(_connection(*ends, line))
        elif words := line.split():
            ends = (words[-2], words[-1])
    return found


def _connection(local: str, peer: str, line: str) -> Connection:
    words = dict(re.findall(r"(?<!\S)([a-z_]+):([0-9./]+)", line))
    return Connection(
        local,
        peer,
        sent=int(words.get("bytes_sent", 0)),
        cwnd=int(words.get("cwnd", 0)) * int(words.get("mss", 0)),
        rtt=float(words.get("rtt", "0").partition("/")[0]),
        retransmits=int(words.get("retrans", "0/0").partition("/")[2]),
        reordering=int(words.get("reord_seen", 0)),
    )


COLLECTOR = Collector("tcp", "TCP as the sender's kernel sees it", METRICS, _Tcp, every=EVERY, looks_at="source")
