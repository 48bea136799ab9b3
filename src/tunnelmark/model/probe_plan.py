"""Plans what is sent through a link to look at it: probes both ways at once, then a train each way. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.plan.struck import shares

HEADERS = 42
"""Bytes of Ethernet, IPv4 and UDP headers around a probe's content."""

MOST = 1472
"""Bytes of UDP content in a full Ethernet frame; that of `lab.probe_sender`, which runs on nodes and imports nothing of this."""

SIZE = 64
"""Bytes of a probe's content: room for its header, light on slow links."""

PROBES, TRAIN = 0, 1
"""The phases of a direction."""

PORT = 4242
"""UDP port of the probers."""

_PROBES = (1500, 6000)  # probes of a look in a run, at least and at most; `check-link` sends as many as `--probes` says
_STRUCK = 60  # probes
_LIGHT = 0.05  # share of a rate that probes may take, so that they do not queue behind each other
_START = 0.02  # seconds until the first packet, for both probers to hear of it
_QUIET = 0.02  # seconds between phases, besides what is on its way
_TRAIN = 0.15  # seconds of the rate that a train measures, once the queue is full
_TRAIN_LEAST = 150  # packets of it
_WANDER = 0.5  # seconds at most that a train is longer for a jitter, which moves its first and last packet
_OVERLOAD = 8.0  # how much faster than the rate a train is sent, as far as that is less than
_FAST = 5.0e8  # bit/s, from where on what the middle node cannot take at once waits in its backlog, which reads as more queue,
_EXCESS = 1.4  # and a train is only this much faster than the rate: beyond 1.1 (`train.FILLS`) with some to spare
_SLOWEST = 3.0e8  # bit/s that a train waits for: a sender shares its core with the emulator and with other work
_BATCHES = ((8e8, 16), (2e8, 8))  # packets a system call, by the rate in bit/s from which on


@dataclass(frozen=True, slots=True)
class Pace:
    """How many probes go each way, and the seconds from one to the next."""

    count: int
    interval: float


@dataclass(frozen=True, slots=True)
class Train:
    """Packets sent faster than the rate: how many, seconds apart, bytes of content each, packets a system call."""

    count: int
    interval: float
    size: int
    batch: int


def enough(profile: Profile) -> int:
    """Probes each way of a look in a run: as many as it takes to distinguish the rarest loss from none and from its double.

    Some 60 must be struck for that (`analyse.link.power`). What is rarer than one in a hundred is left to the counts of the trials'
    own traffic, which is thousands of packets a second: a look would take minutes. A probe is one packet, whatever the link's unit.
    """
    told = [share for way in (profile.forward, profile.back) for share in shares(way, profile.model, "wire").values()]
    rare = min((share for share in told if share >= _STRUCK / _PROBES[1]), default=1.0)
    return min(max(_PROBES[0], round(_STRUCK / rare)), _PROBES[1])


def pace_of(profile: Profile, count: int, interval: float) -> Pace:
    """So many probes, not closer together than the slowest rate bears."""
    rates = [way.rate for way in (profile.forward, profile.back) if way.rate]
    least = max((8 * (SIZE + HEADERS) / (_LIGHT * rate) for rate in rates), default=0.0)
    return Pace(count, max(interval, least))


def train_of(way: Direction) -> Train | None:
    """The train for one direction: long enough to fill the queue and then to measure the rate; None without a rate."""
    if way.rate is None:
        return None
    frame = MOST + HEADERS
    speed = max(min(_OVERLOAD * way.rate, _FAST), _EXCESS * way.rate)
    fill = 8 * (way.queue or 0) / (speed - way.rate)
    wander = min(60 * way.jitter.size, _WANDER) if way.jitter else 0.0
    steady = max(_TRAIN, _TRAIN_LEAST * 8 * frame / way.rate, wander)
    interval = 8 * frame / speed
    batch = next((batch for least, batch in _BATCHES if way.rate >= least), 1)
    return Train(max(round((fill + steady) / interval), 2 * batch), interval, MOST, batch)


def patience(train: Train, way: Direction) -> float:
    """Seconds after which a train ends, sent or not: the next one must not meet it.

    A sender slower than the rate measures nothing, so there is no use in waiting for one.
    """
    bits = train.count * 8 * (train.size + HEADERS)
    slowest = min(max(float(way.rate or 0.0), _SLOWEST), bits / (train.count * train.interval))
    return bits / slowest + _QUIET / 2


def _longest(way: Direction) -> float:
    """Seconds that a packet may be on its way, a full queue included."""
    jitter = 6 * way.jitter.size if way.jitter else 0.0
    waiting = 8 * (way.queue or 0) / way.rate if way.rate else 0.0
    return (way.delay or 0.0) + jitter + waiting


def plans_of(
    profile: Profile, ends: tuple[str, str], addresses: Mapping[str, str], pace: Pace | None
) -> dict[str, dict[str, Any]]:
    """What each prober is to do; probes go both ways at once, trains one after the other."""
    ways = {ends[0]: profile.forward, ends[1]: profile.back}
    longest = max(_longest(way) for way in ways.values())
    phases: dict[str, list[dict[str, Any]]] = {node: [] for node in ends}
    now = int(_START * 1e9)
    for node, other in (ends, ends[::-1]):
        to = [addresses[other], PORT]
        count, interval = (pace.count, round(pace.interval * 1e9)) if pace else (0, 1)
        phase = {"to": to, "start": now, "count": count, "interval": interval, "size": SIZE, "batch": 1}
        phases[node].append({**phase, "end": now + int(1e9 * (count * interval / 1e9 + _QUIET / 2))})
    if pace is not None:
        now += int(1e9 * (pace.count * pace.interval + longest + _QUIET))
    for node, other in (ends, ends[::-1]):
        if (train := train_of(ways[node])) is not None:
            interval = max(round(train.interval * 1e9), 1)
            plain = {"count": train.count, "interval": interval, "size": train.size, "batch": train.batch}
            end = now + int(1e9 * patience(train, ways[node]))
            phases[node].append({"to": [addresses[other], PORT], "start": now, "end": end, **plain})
            now = end + int(1e9 * (_longest(ways[node]) + _QUIET))
    return {node: {"bind": [addresses[node], PORT], "until": now, "phases": phases[node]} for node in ends}


def probed(plans: Mapping[str, dict[str, Any]]) -> int:
    """Nanoseconds until the last probe has been sent and the first train has not."""
    phases = [plan["phases"] for plan in plans.values()]
    starts: list[int] = [phase[TRAIN]["start"] for phase in phases if len(phase) > TRAIN]
    return min(starts, default=min(int(plan["until"]) for plan in plans.values())) - int(1e9 * _QUIET / 2)


def sent(plan: Mapping[str, Any]) -> int:
    """Nanoseconds until a node's train should have been sent; 0 without a train."""
    trains = [phase["start"] + phase["count"] * phase["interval"] for phase in plan["phases"][TRAIN:]]
    return int(trains[0]) if trains else 0
