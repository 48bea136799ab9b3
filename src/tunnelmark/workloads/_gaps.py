"""Assigns every gap of a stream of probes to the event that caused it, or to none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.workloads._schedule import kind_of
from tunnelmark.workloads._stream import NEAR, NOTABLE, Silence, StreamWay
from tunnelmark.workloads.base import ENDINGS


@dataclass(slots=True)
class Happened:
    """An event that took place, from `begun` to `ended` (seconds of CLOCK_MONOTONIC), and its effect on the probes.

    `gap`: the longest time without a packet that the event caused in either direction, in seconds.
    `back`: seconds from the event's begin until the longest gap of each direction had ended; gaps of at most `NOTABLE`
    intervals between probes do not count, and `back` is 0 if neither gap counts.
    `lost`: probes that were lost in all gaps of the event, in both directions together.
    `until`: the moment at which `back` ends, in seconds of CLOCK_MONOTONIC; 0 if `back` is 0.
    """

    kind: str
    node: str
    begun: float
    ended: float
    gap: float = 0.0
    back: float = 0.0
    lost: int = 0
    until: float = 0.0


@dataclass(slots=True)
class Accounts:
    """The result for all probes: the `events`, each with its effect, and what no event explains.

    `unaccounted`: the lengths, in seconds, of gaps outside all events in which at least `NOTABLE` probes were lost.
    `lost`: the number of probes lost outside the gaps of all events.
    """

    events: list[Happened]
    unaccounted: list[float] = field(default_factory=list)
    lost: int = 0

    @property
    def not_back(self) -> int:
        """How many events were followed by another one before the path was back."""
        return sum(one.until > after.begun for one, after in pairwise(self.events))


def events(lines: Iterable[Mapping[str, Any]]) -> list[Happened]:
    """Return the faults that took place, in the order of their begin.

    `lines`: the lines of the file of events that are events (see `_stream.happened`). A fault that another event ends,
    such as `link-up`, lasts until that event is over. Raises WorkloadFailed if a fault did not end, and
    OutputUnreadable if there was no event at all.
    """
    found: list[tuple[Happened, str | None]] = []  # each with its ending event, if it had one
    for line in sorted(lines, key=lambda line: float(line["begun"])):
        kind, node, begun, ended = line["kind"], line["node"], line["begun"], line["ended"]
        if ended is None:
            raise _endless(kind, node, begun, found)
        last = max((place for place, (one, _) in enumerate(found) if one.node == node), default=None)
        if kind in ENDINGS and last is not None:
            found[last][0].ended = ended
            found[last] = found[last][0], kind
        else:
            found.append((Happened(kind, node, begun, ended), None))
    if not found:
        raise OutputUnreadable(
            "no event took place in the trial", hint="the client may have ended at once; see its stderr"
        )
    for one, last_done in found:
        fault = kind_of(one.kind, last_done)
        if fault is None:
            raise _endless(one.kind, one.node, one.begun, found)
        one.kind = fault
    return [one for one, _ in found]


def _endless(kind: str, node: str, begun: float, before: Sequence[tuple[Happened, object]]) -> WorkloadFailed:
    since = f", {begun - before[0][0].begun:.1f} s after the first event," if before else ""
    return WorkloadFailed(
        f"the event {kind} on {node}{since} did not finish within the trial",
        hint="the daemons' logs say what it waits for; a longer `recover` gives it more time",
    )


def account(ways: Sequence[StreamWay], happened: Sequence[Happened], recover: float) -> Accounts:
    """Assign each gap of both directions to an event, or to none; the effects are also written into `happened`.

    A gap belongs to an event if it begins during the event or at most `recover` seconds after the event's end; if it
    could belong to several events, to the last of them. A gap with fewer than `NOTABLE` missing probes must begin at
    most `NEAR` seconds after that end. Missing probes of a gap without an event count in `Accounts.lost`. Raises
    WorkloadFailed if the path was dead at the end of the stream.
    """
    accounts = Accounts(list(happened))
    for way in ways:
        _alive(way, happened)
        there = {number for number, _, _ in way.arrivals}
        lost = way.lost
        longest: dict[int, Silence] = {}
        for silence in way.silences():
            if silence.missing < 1 and silence.length <= NOTABLE * way.interval:
                continue
            gone = sum(number not in there for number in range(silence.first, silence.first + silence.missing))
            place = _cause(silence, happened, NOTABLE * way.interval, recover)
            if place is not None:
                longest[place] = max(longest.get(place, silence), silence)
                happened[place].lost += gone
                lost -= gone
            elif gone >= NOTABLE:
                accounts.unaccounted.append(silence.length)
        accounts.lost += lost
        for place, silence in longest.items():
            one = happened[place]
            one.gap = max(one.gap, silence.length)
            if silence.length > NOTABLE * way.interval:
                one.back = max(one.back, silence.ended - one.begun)
                one.until = max(one.until, silence.ended)
    return accounts


def _cause(silence: Silence, happened: Sequence[Happened], slack: float, recover: float) -> int | None:
    """Return the index of the last event that can have caused the silence, or None if no event can.

    Such an event began before the silence ended, and had not ended long before the silence began. The silence may begin
    up to `slack` seconds before the event, because the last packet before an event arrives somewhat earlier.
    """
    after = recover if silence.missing >= NOTABLE else NEAR
    found = None
    for place, one in enumerate(happened):
        if one.begun - slack > silence.begun:
            break
        if one.begun < silence.ended and silence.begun <= one.ended + after:
            found = place
    return found


def _alive(way: StreamWay, happened: Sequence[Happened]) -> None:
    if not way.dead():
        return
    last = max(arrived for _, _, arrived in way.arrivals)
    before = [one for one in happened if one.begun <= last + NOTABLE * way.interval]
    what = f"{before[-1].kind} on {before[-1].node}" if before else "the first event"
    raise WorkloadFailed(
        f"did not come back after {what}: of the probes from {way.name} none arrived in the last {way.tail:.1f} s",
        hint="that is a result; the file `events` next to the raw output says what was done and when",
    )
