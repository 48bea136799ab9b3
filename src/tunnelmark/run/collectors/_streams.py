"""Finds from a series of looks when traffic ran, and for which share of that time its streams had data to send.

A look is one reading of the counters. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.run.collectors._proc import Stream

Ends = tuple[str, str]
"""The two ends of a stream (address and port), which identify it."""

_NOTHING = 0.01
"""Rates below this share of the largest one do not count as traffic at the beginning and at the end."""


def running(rates: Sequence[float]) -> slice:
    """Return the slice from the first to the last rate above 1 % of the largest; that of all rates if all are 0."""
    least = _NOTHING * max(rates, default=0.0)
    places = [place for place, rate in enumerate(rates) if rate > least]
    return slice(places[0], places[-1] + 1) if places else slice(None)


def busy(
    looks: Sequence[tuple[float, Mapping[Ends, Stream]]], streams: Mapping[Ends, Stream], begun: float, least: float
) -> float:
    """Return the share of the time (0 to 1) in which streams had data to send, weighted by the bytes of each.

    `looks`: the looks that saw streams, with their times in seconds. `streams`: each stream as it was seen last; some
    stream must have sent bytes. The measured time goes from the first look in which bytes had been sent to the first
    look in which all bytes had been sent (both within 1 %). Earlier and later, the two ends of a program only exchange
    messages, which takes seconds if round trips are long. If these two looks are less than `least` seconds apart, the
    measured time goes from `begun` (when the traffic began, in seconds) to the last look.
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
