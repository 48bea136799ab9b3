"""Computes the share of packets that each stage of a direction strikes in the long run, if a formula gives it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott, LinkModel, Reordering

CORRELATED = 0.5
"""The share of packets that skip the delay is known up to this correlation: above it, they come in long runs."""

SELDOM = 1e-4
"""A share of packets that skip the delay is left out if it is below this: ten in a hundred thousand packets."""

_POINTS, _TURNS = 20_000, 60  # distribution of netem's correlated numbers: grid points, iterations until it settles


def shares(way: Direction, model: LinkModel, unit: str) -> Mapping[str, float]:
    """Return the share of packets that each stage strikes: `loss`, `duplication`, `corruption` and `skips` (the delay).

    `duplication` and `corruption` are shares of the packets that are not lost, `skips` of those that reach the delay.
    A stage is left out if the direction does not state it, or if no formula gives its share. These are left out: all
    stages of a direction with blackouts or a schedule; loss in bursts with lengths in time, by four states or by a
    pattern; duplication and corruption with a correlation; `skips` without a share from `skipping`, with a share below
    `SELDOM`, or with duplication. In netem's model, loss with a correlation is left out too, and so are loss and
    duplication together, because copies make up for lost packets.
    With `unit = "gso"` one decision strikes all packets of a segment, and only the loss is given: the lengths of runs
    of losses show how many packets a segment has.
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


def drawn(way: Direction, model: LinkModel, unit: str) -> float | None:
    """Return the share of lost packets if seed and packet number alone decide which packets are lost; else None.

    They decide an independent, constant loss of wire packets in the stated model. A check can then compute the number
    of lost packets, and need not allow for chance as with the other losses that `shares` knows.
    """
    steady = model == "stated" and unit == "wire" and way.schedule is None and not way.blackouts
    if steady and isinstance(way.loss, Chance) and not way.loss.correlation:
        return float(way.loss.probability)
    return None


def skipping(reordering: Reordering, model: LinkModel) -> float | None:
    """Return the share of packets that skip the delay in the long run.

    None if the correlation is above `CORRELATED`, or if there is a correlation and a gap above 1.
    In netem's model a correlation makes the share much smaller than the stated probability: netem compares the
    probability with a mean of a new random number and the number before, and such a mean is seldom small. A probability
    of 5 % with a correlation of 50 % gives a share of 16 in a million.
    """
    p, c = float(reordering.probability), float(reordering.correlation)
    if c == 0:
        return p / (1 + (reordering.gap - 1) * p)
    if reordering.gap > 1 or c > CORRELATED:
        return None
    return p if model == "stated" else _below(p, c)


def overtakes_undelayed(way: Direction) -> bool:
    """Return whether jitter puts packets out of order and lets some pass without any delay, and no propagation is stated.

    The least round trip is then that of the hosts, and on one machine that is some 0.05 ms. TCP's allowance for packets
    out of order grows by it (docs/findings/round-trip-under-disorder.md).
    """
    jitter = way.jitter
    if jitter is None or jitter.keep_order or jitter.correlation_time is not None or way.propagation is not None:
        return False
    if way.rate is not None and way.queue is None and way.reordering is None:
        return False  # netem's own rate: no packet leaves before the one that came before it
    return jitter.reach >= float(way.delay or 0.0)


def wandering(way: Direction) -> tuple[float, float] | None:
    """Return the mean and the standard deviation of the delay in seconds, if its jitter is a process in time.

    None in each of these cases: the jitter is drawn for each packet, or its distribution is neither normal nor uniform;
    the jitter could make a delay negative; the direction has reordering or a schedule, or states no jitter.
    """
    jitter, delay = way.jitter, float(way.delay or 0.0)
    if jitter is None or jitter.correlation_time is None or way.reordering is not None or way.schedule is not None:
        return None
    if jitter.reach > delay:
        return None
    deviation = {"normal": 1.0, "uniform": 1 / math.sqrt(3)}.get(jitter.distribution)
    return None if deviation is None else (way.transit, deviation * float(jitter.size))


@cache
def _below(p: float, c: float) -> float:
    """Return the share of netem's numbers below p (`get_crandom`: c times the last one plus 1 - c times a new one)."""
    import numpy as np  # imported only here, as nothing else in a plan needs it

    grid = np.linspace(0.0, 1.0, _POINTS + 1)
    below = grid.copy()
    for _ in range(_TURNS):  # P(c Y + (1 - c) U <= x), from that of Y; 0 below 0 and 1 above 1
        before = np.interp(grid / c, grid, below)
        area = np.concatenate(([0.0], np.cumsum((before[1:] + before[:-1]) / 2))) / _POINTS
        below = (area - np.interp(grid - (1 - c), grid, area)) / (1 - c)
    return float(np.interp(p, grid, below))
