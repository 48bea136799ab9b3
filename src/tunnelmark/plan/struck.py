"""Says what share of packets each stage of a direction strikes in the long run, where that is known in closed form. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, Model, Reordering

CORRELATED = 0.5
"""The largest correlation of packets that skip the delay for which their share is reported: beyond it they come in long runs."""

SELDOM = 1e-4
"""The share of packets that skip the delay below which a profile has none to speak of: a run of a hundred thousand packets meets ten."""

_POINTS, _TURNS = 20_000, 60  # of the distribution of netem's correlated numbers: its grid, and steps until it settles
_TAIL = 4  # standard deviations that a delay hardly ever is off by


def shares(way: Direction, model: Model, unit: str) -> Mapping[str, float]:
    """The shares of packets that are lost (`loss`), of the rest copied (`duplication`) and corrupted (`corruption`), and of those
    that come to the delay the ones that skip it (`skips`).

    A stage is left out where its share changes with time (bursts with a length in time among them: how many a trial meets says nothing
    that its packets could tell), or where no formula gives it: netem's correlation moves the
    share (of packets that skip the delay it is known, see `skipping`), and its copies of lost packets undo the loss.

    Of whole segments (`unit = "gso"`) only the loss is known: one decision strikes all packets of a segment, so their counts spread
    by how many those are. Of losses the runs say how many, of everything else nothing does.
    """
    if way.blackouts or way.schedule is not None:
        return {}
    plain = model == "stated"
    found: dict[str, float] = {}
    match way.loss:
        case Chance(probability, correlation) if plain or not (correlation or way.duplication):
            found["loss"] = float(probability)
        case GilbertElliott(p, r) as loss if p + r > 0 and (plain or not way.duplication):
            found["loss"] = loss.lost
    if unit == "gso":
        return found
    for name, chance in (("duplication", way.duplication), ("corruption", way.corruption)):
        if chance is not None and not chance.correlation and (plain or name != "duplication" or not way.loss):
            found[name] = float(chance.probability)
    skipped = skipping(way.reordering, model) if way.reordering is not None and not way.duplication else None
    if skipped is not None and skipped >= SELDOM:
        found["skips"] = skipped
    return found


def drawn(way: Direction, model: Model, unit: str) -> float | None:
    """The share of packets that are lost, where seed and number of a packet alone decide whether it is: an independent loss that never changes.

    None for every other direction. Which packets it loses can be computed, so there is nothing to allow for chance.
    """
    steady = model == "stated" and unit == "wire" and way.schedule is None and not way.blackouts
    if steady and isinstance(way.loss, Chance) and not way.loss.correlation:
        return float(way.loss.probability)
    return None


def skipping(reordering: Reordering, model: Model) -> float | None:
    """The share of packets that skip the delay in the long run; None where a correlation meets a gap or is above `CORRELATED`.

    With a correlation netem compares no fresh number but a mean of it and of the last one, which is seldom small: of 5 % with a
    correlation of 50 % are left 16 packets in a million.
    """
    p, c = float(reordering.probability), float(reordering.correlation)
    if c == 0:
        return p / (1 + (reordering.gap - 1) * p)
    if reordering.gap > 1 or c > CORRELATED:
        return None
    return p if model == "stated" else _below(p, c)


def wandering(way: Direction) -> tuple[float, float] | None:
    """The mean delay and its standard deviation in seconds where a jitter is a process in time; None where no formula gives them:
    where the jitter would reach below no delay at all, is drawn per packet, or has a long tail.
    """
    jitter, delay = way.jitter, float(way.delay or 0.0)
    if jitter is None or jitter.correlation_time is None or way.reordering is not None or way.schedule is not None:
        return None
    if jitter.distribution == "normal" and _TAIL * jitter.size <= delay:
        return delay, float(jitter.size)
    if jitter.distribution == "uniform" and jitter.size <= delay:
        return delay, float(jitter.size) / math.sqrt(3)
    return None


@cache
def _below(p: float, c: float) -> float:
    """The share of netem's correlated numbers (`get_crandom`: c times the last one plus 1 - c times a fresh one) that are below p."""
    import numpy as np  # only here: a plan needs it no further

    grid = np.linspace(0.0, 1.0, _POINTS + 1)
    below = grid.copy()
    for _ in range(_TURNS):  # P(c Y + (1 - c) U <= x), from that of Y; 0 below 0 and 1 above 1
        before = np.interp(grid / c, grid, below)
        area = np.concatenate(([0.0], np.cumsum((before[1:] + before[:-1]) / 2))) / _POINTS
        below = (area - np.interp(grid - (1 - c), grid, area)) / (1 - c)
    return float(np.interp(p, grid, below))
