"""Simulates processes in time for a row of packets: jitter that changes slowly, bursts of loss, cuts. Pure.

What a packet meets depends on when it comes, not on how many came before it. Like `simulation` it shares nothing with
the emulator but the definition (docs/emulator.md).
"""

from __future__ import annotations

import numpy as np

from tunnelmark.analyse.link.statistics import Flags, Floats
from tunnelmark.plan.impairments import Blackout, Bursts, Direction


def in_time(way: Direction) -> bool:
    """Return whether some of what a direction does is a process in time, of which a short look sees little."""
    wanders = way.jitter is not None and way.jitter.correlation_time is not None
    drawn = any(blackout.start is None for blackout in way.blackouts)
    return wanders or drawn or isinstance(way.loss, Bursts)


def black(blackouts: tuple[Blackout, ...], times: Floats, runs: int, random: np.random.Generator) -> Flags:
    """Return whether the link is cut at each of `times` (s) in each run, as an array of runs × times.

    Where the profile leaves the start of a cut open, each run draws it.
    """
    found = np.zeros((runs, len(times)), dtype=bool)
    for blackout in blackouts:
        if blackout.start is None and blackout.every is not None:
            since = (times - random.random((runs, 1)) * blackout.every) % blackout.every
        else:
            since = times - (blackout.start or 0.0)
        if blackout.start is not None and blackout.every is not None:
            since = np.where(since >= 0, since % blackout.every, since)
        found |= (since >= 0) & (since < blackout.length)
    return found


def in_burst(loss: Bursts, times: Floats, runs: int, random: np.random.Generator) -> Flags:
    """Return whether a burst is on at each of `times` (s) in each run, as an array of runs × times.

    The lengths of bursts, and of the times between them, are exponential.
    """
    inside = np.empty((runs, len(times)), dtype=bool)
    between = loss.every - loss.burst
    first, last = float(times[0]), float(times[-1])
    pairs = int(2 * (last - first) / loss.every) + 20
    for run in range(runs):
        begins = bool(random.random() < loss.share)
        means = (loss.burst, between) if begins else (between, loss.burst)
        changes = np.array([first])
        while changes[-1] <= last:
            stretches = np.column_stack([random.exponential(mean, pairs) for mean in means]).ravel()
            changes = np.concatenate((changes, changes[-1] + np.cumsum(stretches)))
        passed = np.searchsorted(changes[1:], times, side="right")
        inside[run] = (passed % 2 == 0) == begins
    return inside


GRID = (
    1 / 0.938_749_3
)  # correlation times from one point of the grid to the next; the autocorrelation is then 1/e after one
# (R(u) = (1 - u/2) cos(pi u/2) + sin(pi u/2)/pi over a random phase, u in steps of the grid, is 1/e at 1/GRID)


def wandering(times: Floats, runs: int, random: np.random.Generator) -> Floats:
    """Return a smooth standard normal process at `times` (in correlation times), as an array of runs × times.

    Each run has another process. It takes independent normal values at the points of a grid in time, and follows an arc
    between two neighbouring points. The arc cos(a) x + sin(a) y between the values x and y has variance 1 everywhere.
    """
    place = (times - times[0]) / GRID + random.random((runs, 1))
    points = random.standard_normal((runs, int(place.max()) + 2))
    cell = place.astype(np.int64)
    angle = (place - cell) * (np.pi / 2)
    begin, end = np.take_along_axis(points, cell, 1), np.take_along_axis(points, cell + 1, 1)
    return np.asarray(np.cos(angle) * begin + np.sin(angle) * end)
