"""Judges a train: the rate at which it arrived and the queue that it met, and whether the lab could have shown them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tunnelmark.model import emulator_health
from tunnelmark.model.observation import Flow
from tunnelmark.model.probe_plan import HEADERS, TRAIN
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.record.link_check import LinkLine

RATE_SHARE = 0.02
"""A rate may be off by this share: a bucket lets that much of a short train through at once."""

QUEUE_SHARE = 0.12
"""A queue may be off by this share, besides the packets that are in transmission and in a batch."""

FILLS = 1.1
"""A train must be sent at this many times the rate, or its queue does not fill, and the sender sets the rate."""

NETEM_LIMIT = 1000
"""netem's bound on delayed packets where a profile states none (tc-netem(8))."""

_SLOTS = 10  # parts of a train
_FEW = 20  # packets: with fewer no rate can be measured
_BEHIND = 0.01  # seconds that the emulator must be behind a sender; the look at it is exact to some milliseconds
_AFTER = 4  # batches of a train by which the first of them is known to have been stopped
_PAUSE = 1e-3  # seconds beyond its plan after which a sender is said to have paused
_UNQUEUED = 1e-4  # seconds that a packet may take without a queue, besides its time on the wire


def judge(
    way: str, profile: Profile, direction: Direction, flow: Flow, reports: Sequence[Mapping[str, Any]]
) -> Iterator[LinkLine]:
    """Yield the lines on rate and queue; none if the direction has no rate, or if no train was sent.

    `reports`: those that the emulator made after the trains.
    """
    if flow.train is None or direction.rate is None:
        return
    frame = 8 * (flow.train.size + HEADERS)
    wire = frame + 8 * direction.overhead
    records = flow.phase(TRAIN)
    arrived = np.sort(records["received"]) / 1e9
    skipped = len(arrived) // 5  # the bucket's burst, and what came while the queue filled
    arrived = arrived[skipped:]
    rate, stated = float(direction.rate), str(direction.rate)
    room = RATE_SHARE * rate
    ok: bool | None
    if len(arrived) < _FEW:
        ok, note = False, f"only {len(records)} of {flow.train.count} packets arrived"
        if flow.train.count < 2 * _FEW:
            ok, note = None, f"not judged: the sender sent {flow.train.count} packets in the time of the train"
        yield LinkLine(way, "rate", "bit/s", stated, rate, rate - room, rate + room, None, ok, note)
        return
    found = wire * (len(arrived) - 1) / float(arrived[-1] - arrived[0])
    span = float(arrived[-1] - arrived[0])
    if direction.jitter is not None:  # the first and the last packet each have their own
        room += rate * min(6 * direction.jitter.size / span, 0.5)
    ok, note = abs(found - rate) <= room, ""
    why = _not_the_rate(profile, direction, flow, records[skipped:], reports) if found < rate - room else None
    still = None if ok else _stood_still(flow, reports, span * abs(found - rate) / rate)
    if ok and flow.train_rate < FILLS * rate:
        why = f"the sender reached {flow.train_rate / 1e6:.0f} Mbit/s, too little to see whether the shaper or the sender set that rate"
    if why := why or still:
        ok, note = None, f"not judged: {why}"
    yield LinkLine(way, "rate", "bit/s", stated, rate, rate - room, rate + room, found, ok, note)
    for line in _queue(way, direction, flow, records, found * frame / wire):
        # What keeps a train from its rate keeps it from filling the queue, also where it is faster than it arrived.
        excuse = (
            (why or _held_by_netem(profile, direction, flow) or _fell_behind(profile, flow, reports))
            if line.ok is False
            else None
        )
        yield replace(line, ok=None, note=f"not judged: {excuse}") if excuse else line


def _not_the_rate(
    profile: Profile,
    direction: Direction,
    flow: Flow,
    records: npt.NDArray[Any],
    reports: Sequence[Mapping[str, Any]],
) -> str | None:
    """Return why a train was slower than the rate, if it was not the link; None: the link has another rate."""
    assert flow.train is not None
    assert direction.rate is not None
    frame, rate = 8 * (flow.train.size + HEADERS), float(direction.rate)
    losing = 1 - len(flow.phase(TRAIN)) / flow.train.count
    if flow.train_rate < 1.05 * rate / max(1 - (losing if direction.loss else 0), 0.5):
        return f"the sender reached {flow.train_rate / 1e6:.0f} Mbit/s"
    if _ran_empty(direction, records, (frame + 8 * direction.overhead) / rate, _AFTER * flow.train.batch):
        return "the queue ran empty, so the sender paused and the link had nothing to send"
    return _held_by_netem(profile, direction, flow) or _fell_behind(profile, flow, reports)


def _held_by_netem(profile: Profile, direction: Direction, flow: Flow) -> str | None:
    """Return that fewer packets may wait for netem's delay than fill the link, if that is so; else None."""
    assert flow.train is not None
    assert direction.rate is not None
    if profile.model != "netem" or not direction.delay:
        return None
    limit = direction.limit or NETEM_LIMIT
    frame = 8 * (flow.train.size + HEADERS)
    most = limit * frame * (flow.train.batch if profile.unit == "gso" else 1) / float(direction.delay)
    if most >= FILLS * float(direction.rate):
        return None
    return f"netem's limit of {limit} delayed packets lets at most {most / 1e6:.0f} Mbit/s of these through"


def _fell_behind(profile: Profile, flow: Flow, reports: Sequence[Mapping[str, Any]]) -> str | None:
    """Return how the emulator fell behind trains, which ask for more than the rate at once; None if it did not.

    Packets then wait in front of it, or leave it late. A trial in which they leave late is void by itself.
    """
    asked = "which asked more than it can carry here"
    if lost := sum(emulator_health.unplanned(report) for report in reports):
        return f"the emulator lost {lost} packets of the trains, {asked}"
    if flow.behind > _BEHIND:
        return f"the emulator was {1e3 * flow.behind:.0f} ms behind the train, {asked}"
    if (late := _late(flow, reports, "p99")) > emulator_health.bound(profile):
        return f"packets of the train left the emulator {late / 1e3:.0f} ms late, {asked}"
    return None


def _stood_still(flow: Flow, reports: Sequence[Mapping[str, Any]], seconds: float) -> str | None:
    """Return the reason, if the emulator's latest packet alone can explain `seconds` of a train's length; or None."""
    late = _late(flow, reports, "max")
    return (
        f"a packet left the emulator {late / 1e3:.0f} ms late, and its train is short" if late > 1e6 * seconds else None
    )


def _late(flow: Flow, reports: Sequence[Mapping[str, Any]], which: str) -> float:
    """Return how late packets to the flow's target left the emulator, in microseconds: `which` is "p99" or "max"."""
    ways = emulator_health.directions_to(reports, flow.target)
    return max((float(way["lateness_us"][which]) for way in ways), default=0.0)


def _ran_empty(direction: Direction, records: npt.NDArray[Any], serial: float, after: int) -> bool:
    """Return whether a packet met no queue: its delay is the link's own and little more than its time on the wire.

    Jitter adds to that. So it is asked, then, of `after` packets before which nothing had arrived for longer than
    jitter explains: the sender may have been stopped between the stamps of a batch and its sending, and the next batch
    tells.
    """
    ordered = np.sort(records, order="received")
    waited = (ordered["received"] - ordered["sent"]) / 1e9 - direction.transit
    alone = 2 * serial + _UNQUEUED
    jitter = 3 * direction.jitter.size if direction.jitter else 0.0
    silent = np.flatnonzero(np.diff(ordered["received"]) / 1e9 > alone + jitter)
    behind = [float(np.min(waited[place + 1 : place + 1 + after])) for place in silent]
    return bool(np.min(waited) < alone or any(each < alone + jitter for each in behind))


def _full(records: npt.NDArray[Any]) -> float:
    """Return how many seconds a packet of the train takes when the queue is full.

    It is the median over slots of their 98th percentiles. A high percentile, because a sender that pauses lets the
    queue shrink. One for each slot, because a machine that pauses for a millisecond makes all packets in the queue that
    much later: some 3 % of a train, which are all in one slot or two.
    """
    delays = (records["received"] - records["sent"])[np.argsort(records["sent"])] / 1e9
    filled = delays[len(delays) // 5 :]
    slots = np.array_split(filled, max(1, min(_SLOTS, len(filled) // _FEW)))
    return float(np.median([np.quantile(slot, 0.98) for slot in slots]))


def _paused(flow: Flow, records: npt.NDArray[Any]) -> float:
    """Return the seconds in which a train's sender sent nothing though packets were due, by the stamps that arrived."""
    assert flow.train is not None
    ordered = records[np.argsort(records["number"])]
    sent, number = ordered["sent"].astype(np.int64), ordered["number"].astype(np.int64)
    beyond = np.diff(sent) / 1e9 - np.diff(number) * flow.train.interval
    return float(np.sum(beyond[beyond > _PAUSE]))


def _queue(way: str, direction: Direction, flow: Flow, records: npt.NDArray[Any], rate: float) -> Iterator[LinkLine]:
    if direction.queue is None or flow.train is None:
        return
    size, stated = float(direction.queue), str(direction.queue)
    found = (_full(records) - direction.transit) * rate / 8
    frame = flow.train.size + HEADERS
    jitter = 3 * direction.jitter.size * rate / 8 if direction.jitter else 0.0
    room = QUEUE_SHARE * size + (2 + flow.train.batch) * frame + jitter
    ok: bool | None = abs(found - size) <= room
    note = ""
    if flow.train_rate < FILLS * rate:
        ok, note = None, f"not judged: the sender reached {flow.train_rate / 1e6:.0f} Mbit/s and filled no queue"
    elif jitter > QUEUE_SHARE * size:
        ok, note = None, "not judged: the jitter holds packets longer than the queue"
    elif direction.codel is not None or direction.reordering is not None:
        ok, note = None, "not judged: packets leave it early"
    elif found < size - room and (paused := _paused(flow, records)) > 8 * (size - room - found) / rate:
        ok, note = None, f"not judged: the sender paused for {1e3 * paused:.0f} ms, in which the queue shrank"
    yield LinkLine(way, "queue", "B", stated, size, size - room, size + room, found, ok, note)
