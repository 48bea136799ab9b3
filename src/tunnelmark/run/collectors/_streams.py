"""Says when traffic ran, and for how much of that time its streams had something to send; from what looks at it saw. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.run.collectors._proc import Stream

Ends = tuple[str, str]
"""A stream by its two ends."""

_NOTHING = 0.01
"""A share of the largest rate between two looks: less than that, at the beginning or at the end, does not count as traffic."""


def running(rates: Sequence[float]) -> slice:
    """The places from the first to the last rate that is more than next to nothing; all of them where there is none."""
    least = _NOTHING * max(rates, default=0.0)
    places = [place for place, rate in enumerate(rates) if rate > least]
    return slice(places[0], places[-1] + 1) if places else slice(None)


def busy(
    looks: Sequence[tuple[float, Mapping[Ends, Stream]]], streams: Mapping[Ends, Stream], begun: float, least: float
) -> float:
    """The share of the time in which streams had something to send, each by the bytes that it sent.

    `looks` are those that saw some, with their times in seconds; `streams` as each was seen last. The time is that from the first look
    that saw bytes sent to the first that saw all of them: a program's ends talk before and after, for seconds where a round trip
    is long. Where these are less than `least` seconds apart, it is from when traffic was `begun`: a program may begin late.
    """
    sent = sum(stream.sent for stream in streams.values())
    share = [sum(seen[ends].sent for ends in seen if ends in streams) / sent for _, seen in looks]
    start = next(place for place, part in enumerate(share) if part > _NOTHING or place == len(share) - 1)
    end = next(place for place, part in enumerate(share) if part >= 1 - _NOTHING or place == len(share) - 1)
    (first, before), (last, after) = looks[start], looks[end]
    if last - first < least:
        (first, before), (last, after) = (min(begun, looks[-1][0]), {}), (looks[-1][0], streams)
    had = sum(
        stream.sent / sent * (after.get(ends, stream).busy - (before[ends].busy if ends in before else 0.0))
        for ends, stream in streams.items()
    )
    return min(1.0, had / max(last - first, 1e-9))
