"""Reads the statistics of the RIST tools for the workload `video`.

It relies on these facts about librist 0.2.7, each seen in captures compared with its log
(`tests/contract/crosschecks/video.py`). The tools print one line of JSON for each interval, which counts that interval
only. They never print an incomplete last interval. The receiver does not count the first packet of a stream. Its
`received` includes the recovered packets. Its `missing` counts a packet if the next packet comes first, and counts each
packet only once. The sender's `sent` includes the sender's reports. If the sender gets no answer for a second or more,
it sends nothing until an answer comes.
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
"""Words before a tool's command: they send its statistics to standard output, as only this is read."""

CONNECTED = r"peer connected count is 1$"
"""A regular expression for the line that either tool prints once it hears the other."""

STEP_MS = 250
"""Milliseconds from one line of statistics to the next."""

_LINE = re.compile(r"^(\d+\.\d+)\|[^|]*\|\[INFO\] (\{.*\})$", re.MULTILINE)
_RING = 65_536  # places: one for each of RTP's sequence numbers
_FIRST = 1  # packet: the receiver does not count the first one of a stream
_READ = ("received", "missing", "recovered_total", "lost", "dropped_late", "retries", "reordered", "duplicates")


@dataclass(frozen=True, slots=True)
class RistInterval:
    """The packets that a receiver counted in one interval; `time` is the interval's end in seconds since 1970."""

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
    """The packets that a receiver counted in all; `retries` counts the requests that it sent for missing packets."""

    intervals: tuple[RistInterval, ...]

    @property
    def delivered(self) -> int:
        """The number of packets that came in time, at first or when they were sent again."""
        counted = sum(step.received for step in self.intervals)
        return counted + _FIRST if counted else 0

    @property
    def recovered(self) -> int:
        return sum(step.recovered_total for step in self.intervals)

    @property
    def at_once(self) -> int:
        """The number of packets that came in time without being sent again."""
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
        """The intervals from the first one with a packet to the last one with a packet."""
        places = [place for place, step in enumerate(self.intervals) if step.received]
        return self.intervals[places[0] : places[-1] + 1] if places else ()


def received(text: str) -> Received:
    """Return what a ristreceiver counted. Raises OutputUnreadable if it printed no statistics of the known form."""
    steps = []
    for time, said in _statistics(text, "receiver-stats"):
        try:
            counted = said["flowinstant"]["stats"]
            values = {name: int(counted[name]) for name in _READ}
            steps.append(RistInterval(time, **{**values, "lost": _given_up(values["lost"])}))
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


def _given_up(counted: int) -> int:
    """Return how many packets a receiver gave up in an interval, from its counter `lost`.

    It counts the places of a ring of 65,536 that it passes on its way to the next packet. If that packet is before the
    last one, it passes nearly the whole ring.
    """
    passed = (counted + _RING // 2) % _RING - _RING // 2
    return max(0, passed)


def sent(text: str) -> int:
    """Return how many packets a ristsender says that it sent; its own reports are included."""
    try:
        return sum(int(said["peer"]["stats"]["sent"]) for _, said in _statistics(text, "sender-stats"))
    except (KeyError, TypeError, ValueError) as error:
        raise OutputUnreadable(
            f"{SENDER} printed statistics that are not understood: {error!r}",
            hint="this reader knows librist 0.2.7; compare the raw output",
        ) from error


def lost_its_peer(text: str) -> bool:
    """Return whether `text`, the output of a RIST sender or receiver, says that the tool no longer hears its peer.

    A sender then sends nothing until an answer comes.
    """
    return re.search(r"\[WARNING\] Listening peer \d+ timed out after", text) is not None


def _statistics(text: str, kind: str) -> Iterator[tuple[float, Mapping[str, Any]]]:
    for time, line in _LINE.findall(text):
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            continue  # the incomplete last line of a tool that was stopped
        if isinstance(said, dict) and kind in said:
            yield float(time), said[kind]
