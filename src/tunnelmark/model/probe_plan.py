"""Plans the packets of a link check: probes in both directions at once, then a train in each direction. Pure."""

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
"""Bytes of UDP content in a full Ethernet frame. `lab.probe_sender` has its own copy: it runs on nodes."""

SIZE = 64
"""Bytes of a probe's content: room for its header, light on slow links."""

PROBES, TRAIN = 0, 1
"""The indices of a direction's phases."""

PORT = 4242
"""UDP port of the probers."""

_PROBES = (1500, 6000)  # least and most probes of a link check in a run; `check-link` sends as many as `--probes` says
_STRUCK = 60  # probes that an impairment must strike
_LIGHT = 0.05  # share of a rate that probes may take, so that they do not queue behind each other
_START = 0.02  # seconds until the first packet, so that both probers have received the start time
_QUIET = 0.02  # seconds between two phases, in addition to the time that packets may be on their way
_TRAIN = 0.15  # seconds for which a train measures the rate, once the queue is full
_TRAIN_LEAST = 150  # packets with which a train measures the rate, at least
_WANDER = 0.5  # seconds by which a train is longer at most where jitter moves its first and last packet
_OVERLOAD = 8.0  # a train is sent this many times faster than the rate, but not faster than
_FAST = 5.0e8  # bit/s: beyond that, packets wait in the middle node's backlog, which is measured as a longer queue.
_EXCESS = 1.4  # But a train is always this many times faster than the rate: 1.1 (`train.FILLS`), and a reserve
_SLOWEST = 3.0e8  # bit/s: a train does not wait for a slower sender, which shares its core with the emulator
_BATCHES = ((8e8, 16), (2e8, 8))  # (rate in bit/s, packets per system call from that rate on)


@dataclass(frozen=True, slots=True)
class Pace:
    """The number of probes that are sent in each direction, and the seconds from one to the next."""

    count: int
    interval: float


@dataclass(frozen=True, slots=True)
class Train:
    """A train of packets that are sent faster than the link's rate.

    `count`: how many packets. `interval`: seconds from one packet to the next. `size`: bytes of UDP content in each.
    `batch`: how many packets are sent with one system call.
    """

    count: int
    interval: float
    size: int
    batch: int


def enough(profile: Profile) -> int:
    """Return how many probes a link check in a run sends in each direction: from 1500 to 6000.

    The probes must show whether the rarest impairment of the profile is missing, or strikes twice as many packets as
    stated. For that, the impairment must strike about 60 probes (`analyse.link.power`). An impairment of fewer than one
    packet in a hundred does not count here: a link check would need minutes for it, and the trials' own traffic, with
    thousands of packets a second, shows it. The profile's `unit` does not matter, because each probe is one packet.
    """
    told = [share for way in (profile.forward, profile.back) for share in shares(way, profile.model, "wire").values()]
    rare = min((share for share in told if share >= _STRUCK / _PROBES[1]), default=1.0)
    return min(max(_PROBES[0], round(_STRUCK / rare)), _PROBES[1])


def pace_of(profile: Profile, count: int, interval: float) -> Pace:
    """Return the pace for `count` probes, `interval` seconds apart, or more if the slowest rate requires it."""
    rates = [way.rate for way in (profile.forward, profile.back) if way.rate]
    least = max((8 * (SIZE + HEADERS) / (_LIGHT * rate) for rate in rates), default=0.0)
    return Pace(count, max(interval, least))


def train_of(way: Direction) -> Train | None:
    """Return a train for one direction that fills the queue and then measures the rate; None if there is no rate."""
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
    """Return the time limit for sending a train, in seconds from its start, so that it does not meet the next train.

    The time suffices for a sender that is as fast as planned, or that reaches both the link's rate and 300 Mbit/s. What
    a slower sender has not sent by then is left out: a train slower than the rate measures nothing.
    """
    bits = train.count * 8 * (train.size + HEADERS)
    slowest = min(max(float(way.rate or 0.0), _SLOWEST), bits / (train.count * train.interval))
    return bits / slowest + _QUIET / 2


def _longest(way: Direction) -> float:
    """Return how many seconds a packet may be on its way at most, a full queue included."""
    jitter = 6 * way.jitter.size if way.jitter else 0.0
    waiting = 8 * (way.queue or 0) / way.rate if way.rate else 0.0
    return way.transit + jitter + waiting


def plans_of(
    profile: Profile, ends: tuple[str, str], addresses: Mapping[str, str], pace: Pace | None
) -> dict[str, dict[str, Any]]:
    """Return each prober's plan, by node: probes in both directions at once, then one train at a time.

    There are no probes if `pace` is None. Times in a plan are nanoseconds since its start.
    """
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
    """Return when all probes have been sent, and no train yet, in nanoseconds since the plans' start."""
    phases = [plan["phases"] for plan in plans.values()]
    starts: list[int] = [phase[TRAIN]["start"] for phase in phases if len(phase) > TRAIN]
    return min(starts, default=min(int(plan["until"]) for plan in plans.values())) - int(1e9 * _QUIET / 2)


def sent(plan: Mapping[str, Any]) -> int:
    """Return when a node's train should have been sent, in nanoseconds since the plan's start; 0 if it sends none."""
    trains = [phase["start"] + phase["count"] * phase["interval"] for phase in plan["phases"][TRAIN:]]
    return int(trains[0]) if trains else 0
