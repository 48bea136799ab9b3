"""Starts a stream of probes in both directions (`tunnelmark-probe stream`), and finds when a direction carried nothing.

Both ends print which probes arrived and when. They use CLOCK_MONOTONIC, and so does the process that makes the events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Annotated

from pydantic import Field

from tunnelmark.errors import OutputUnreadable, WorkloadFailed
from tunnelmark.model.steps import UdpPort
from tunnelmark.workloads._printed import ProgramOutput, document
from tunnelmark.workloads.base import EVENTS, Endpoints, Program

PROGRAM = "tunnelmark-probe"
SERVER, CLIENT = "server", "client"

BEFORE = 1.0
"""Seconds of probes before the first event."""

NOTABLE = 3
"""A gap is notable if at least this many probes in a row are missing; fewer are counted as loss."""

NEAR = 1.0
"""Seconds after an event's end. A silence that begins later belongs to the event only if it is a notable gap.

A silence of that length at the end of the stream means that the path is dead.
"""

_DEAD = 10
"""So many probes at the end may be lost while the path still counts as alive, however short its gaps are."""

_PORT = 5210


def programs(
    ends: Endpoints, rate: int, seconds: float, linger: float, more: Sequence[str] = ()
) -> tuple[Program, Program]:
    """Return the stream's server and client, which send `rate` probes a second in each direction for `seconds`.

    The client receives for `linger` seconds longer. `more` are further arguments of both programs.
    """
    schedule = ("--port", str(_PORT), "--rate", str(rate), "--seconds", f"{seconds:g}", *more)
    server = Program(
        SERVER,
        ends.target,
        (PROGRAM, "stream", "--to", _at(ends.source_address), *schedule, "--wait"),
        ready=UdpPort(_PORT),
        long_running=True,
    )
    client = Program(
        CLIENT,
        ends.source,
        (PROGRAM, "stream", "--to", _at(ends.target_address), *schedule, "--linger", f"{linger:g}"),
    )
    return server, client


def _at(address: object) -> str:
    text = str(address)
    return f"[{text}]:{_PORT}" if ":" in text else f"{text}:{_PORT}"


class StreamReport(ProgramOutput):
    """The report that one end printed; its times are in us since `start`, which is in ns of CLOCK_MONOTONIC."""

    start: int
    interval_ns: Annotated[int, Field(gt=0)]
    sent: Annotated[int, Field(gt=0)]
    latest_us: int
    arrivals: tuple[tuple[int, int, int], ...]  # number of the probe, when it was sent, when it arrived


@dataclass(frozen=True, slots=True, order=True)
class Silence:
    """The time between two successive arrivals, from `begun` to `ended`; all times are in seconds.

    `length`: the time between the arrivals less the time between the two sends. If the second probe has the next number
    after all that came before, the sender's own times of the sends count, so that a late sender does not make a gap.
    Otherwise the sends count as one interval apart.
    `missing`: how many probes were skipped: those with numbers below the second probe's and above all that came before.
    `first`: the lowest number of a skipped probe. No probe is missing in two silences, however late others arrive.
    """

    length: float
    begun: float
    ended: float
    missing: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class StreamWay:
    """One direction of the stream; times are seconds of CLOCK_MONOTONIC.

    `begun`: when the sender began. `interval`: seconds between probes. `sent`: the number of probes.
    `arrivals`: (number, sent, arrived) in the order in which the probes arrived, each number once.
    """

    name: str
    begun: float
    interval: float
    sent: int
    arrivals: tuple[tuple[int, float, float], ...]

    @property
    def lost(self) -> int:
        return self.sent - len(self.arrivals)

    @property
    def tail(self) -> float:
        """The length in seconds of the stream's end from which no probe arrived; 0 if the last probe arrived."""
        return (self.sent - 1 - max(number for number, _, _ in self.arrivals)) * self.interval

    def dead(self, gap: float = inf) -> bool:
        """Return whether the path was dead at the end: whether no probe arrived of more than the last NEAR seconds.

        `gap`: the longest gap in seconds that the caller found earlier. A `gap` below NEAR takes the place of NEAR:
        then the silence at the end is the longest gap, and its length is not known. In any case more than ten probes
        must have been lost at the end.
        """
        return self.tail > max(_DEAD * self.interval, min(NEAR, gap))

    def silences(self) -> list[Silence]:
        """Return all times between two successive arrivals."""
        found = []
        highest, highest_sent, _ = self.arrivals[0]
        for (_, _, arrived), (number, sent, next_arrived) in pairwise(self.arrivals):
            left = sent - highest_sent if number == highest + 1 else self.interval
            missing = max(0, number - highest - 1)
            found.append(Silence(next_arrived - arrived - left, arrived, next_arrived, missing, highest + 1))
            if number > highest:
                highest, highest_sent = number, sent
        return found


def read(outputs: Mapping[str, str]) -> tuple[tuple[StreamWay, StreamWay], float]:
    """Return both directions, the one to the target first, and by how many seconds a sender was late at most."""
    client, server = _report(outputs, CLIENT), _report(outputs, SERVER)
    ways = (_way("source to target", client, server), _way("target to source", server, client))
    return ways, max(client.latest_us, server.latest_us) / 1e6


def happened(outputs: Mapping[str, str]) -> list[Mapping[str, object]]:
    """Return the lines of the file of events: the deployment's start, then each event.

    Raises OutputUnreadable if the file is missing or empty.
    """
    lines = [json.loads(line) for line in outputs.get(EVENTS, "").splitlines()]
    if not lines:
        raise OutputUnreadable(
            "the file `events`, which lists what was done to the deployment, is missing or empty",
            hint="it should be next to the raw output",
        )
    return lines


def passing(ways: Iterable[StreamWay], since: float, step: float) -> dict[float, float]:
    """Return the share of probes that arrived, in per cent, for each step of `step` seconds from `since` on.

    Both directions count together. A probe counts in the step in which it was sent; the key is that step's begin, in
    seconds after `since`.
    """
    sent: dict[int, int] = {}
    arrived: dict[int, int] = {}
    for way in ways:
        there = {number for number, _, _ in way.arrivals}
        for number in range(way.sent):
            place = int((way.begun + number * way.interval - since) // step)
            sent[place] = sent.get(place, 0) + 1
            arrived[place] = arrived.get(place, 0) + (number in there)
    return {round(place * step, 6): 100 * arrived[place] / many for place, many in sent.items() if place >= 0}


def _report(outputs: Mapping[str, str], name: str) -> StreamReport:
    hint = f"is {PROGRAM} of the same checkout? `make setup` builds it"
    return document(outputs.get(name, ""), f"the {name}'s probe", StreamReport, hint)


def _way(name: str, sender: StreamReport, receiver: StreamReport) -> StreamWay:
    start = receiver.start / 1e9
    first: dict[int, tuple[int, float, float]] = {}
    for number, sent, arrived in receiver.arrivals:
        first.setdefault(number, (number, start + sent / 1e6, start + arrived / 1e6))
    if not first:
        raise WorkloadFailed(f"not a probe arrived from {name}", hint="see the VPN's logs: it had answered a ping")
    return StreamWay(name, sender.start / 1e9, sender.interval_ns / 1e9, sender.sent, tuple(first.values()))
