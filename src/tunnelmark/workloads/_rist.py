"""What the workload `video` knows of the RIST tools: their statistics, and what packets those count.

Facts about librist 0.2.7 that decide this, each seen in captures together with its log (`tests/contract/crosschecks/video.py`):
the statistics are a line of JSON an interval, each counting that interval only; what does not fill an interval at the
end is never printed; the first packet of a stream is not counted; `received` counts the packets that were recovered,
too, and `missing` each packet once that was not there when its successor was; the sender's `sent` counts its reports;
after a second or more without an answer the sender sends nothing until there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunnelmark.errors import OutputUnreadable

SENDER, RECEIVER, PACKAGE = "ristsender", "ristreceiver", "rist-tools"
SPEAK = ("sh", "-c", 'exec "$@" 2>&1', "speak")
"""Before a tool's arguments: its statistics are among its complaints, and only standard output is read."""

CONNECTED = r"peer connected count is 1$"
"""What either tool says (a regular expression) once it hears the other."""

STEP_MS = 250
"""Milliseconds from one line of statistics to the next."""

_LINE = re.compile(r"^(\d+\.\d+)\|[^|]*\|\[INFO\] (\{.*\})$", re.MULTILINE)
_FIRST = 1  # packet, which the receiver takes as the beginning and does not count
_READ = ("received", "missing", "recovered_total", "lost", "dropped_late", "retries", "reordered", "duplicates")


@dataclass(frozen=True, slots=True)
class RistInterval:
    """What a receiver counted in one interval; `time` is its end, in seconds since 1970."""

    time: float
    received: int
    missing: int
    recovered_total: int
    lost: int
    dropped_late: int
    retries: int
    reordered: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class Received:
    """What a receiver counted in all, in packets; `retries` are the requests it sent for missing ones."""

    intervals: tuple[RistInterval, ...]

    @property
    def delivered(self) -> int:
        """Packets that were there in time, as sent or sent again."""
        counted = sum(step.received for step in self.intervals)
        return counted + _FIRST if counted else 0

    @property
    def recovered(self) -> int:
        return sum(step.recovered_total for step in self.intervals)

    @property
    def at_once(self) -> int:
        """Packets that were there without being sent again."""
        return self.delivered - self.recovered

    @property
    def late(self) -> int:
        return sum(step.dropped_late for step in self.intervals)

    @property
    def retries(self) -> int:
        return sum(step.retries for step in self.intervals)

    @property
    def reordered(self) -> int:
        return sum(step.reordered for step in self.intervals)

    @property
    def duplicates(self) -> int:
        return sum(step.duplicates for step in self.intervals)

    @property
    def busy(self) -> tuple[RistInterval, ...]:
        """The intervals from the first to the last in which a packet came."""
        places = [place for place, step in enumerate(self.intervals) if step.received]
        return self.intervals[places[0] : places[-1] + 1] if places else ()


def received(text: str) -> Received:
    """What a ristreceiver printed; OutputUnreadable if there is no line of statistics in it, or one in another form."""
    steps = []
    for time, said in _statistics(text, "receiver-stats"):
        try:
            counted = said["flowinstant"]["stats"]
            steps.append(RistInterval(time, **{name: int(counted[name]) for name in _READ}))
        except (KeyError, TypeError, ValueError) as error:
            raise OutputUnreadable(
                f"{RECEIVER} printed statistics that are not understood: {error!r}",
                hint="this reader knows librist 0.2.7; compare the raw output",
            ) from error
    if not steps:
        raise OutputUnreadable(
            f"{RECEIVER} printed no statistics",
            hint="no sender may have reached it: see its raw output, and the VPN's logs",
        )
    return Received(tuple(steps))


def sent(text: str) -> int:
    """The packets that a ristsender says it sent, at least: its reports are among them."""
    try:
        return sum(int(said["peer"]["stats"]["sent"]) for _, said in _statistics(text, "sender-stats"))
    except (KeyError, TypeError, ValueError) as error:
        raise OutputUnreadable(
            f"{SENDER} printed statistics that are not understood: {error!r}",
            hint="this reader knows librist 0.2.7; compare the raw output",
        ) from error


def lost_its_peer(text: str) -> bool:
    """Whether a tool says that it heard nothing of the other any more; a sender then holds what it should send."""
    return re.search(r"\[WARNING\] Listening peer \d+ timed out after", text) is not None


def _statistics(text: str, kind: str) -> Iterator[tuple[float, Mapping[str, Any]]]:
    for time, line in _LINE.findall(text):
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            continue  # the last line of a tool that was ended
        if isinstance(said, dict) and kind in said:
            yield float(time), said[kind]
