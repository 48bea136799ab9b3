"""Simulates what a profile does to a row of packets, in many runs, so that a look can be compared with these runs.

The stated model does exactly what the profile states. If it strikes packets with a correlation, a Markov chain draws
them; a Gaussian copula draws a correlated jitter. The other model follows netem's arithmetic (net/sched/sch_netem.c).
For a correlation, netem takes a weighted mean of a uniform number and its last result, and such means are not uniform.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tunnelmark.analyse.link import processes
from tunnelmark.analyse.link.jitter_distributions import latent_correlation, netem_jitter, quantile
from tunnelmark.analyse.link.path import LinkPath
from tunnelmark.analyse.link.statistics import Flags, Floats
from tunnelmark.plan.impairments import (
    Bursts,
    Chance,
    Direction,
    FourState,
    GilbertElliott,
    Jitter,
    LinkModel,
    Loss,
    Pattern,
    Reordering,
)
from tunnelmark.plan.link_rules import after

_ON_THE_WAY = 300e-6
"""The most seconds that a packet takes from its stamp to the link: tens of us, and some hundreds on a busy machine."""


@dataclass(frozen=True, slots=True)
class _Along:
    """A known path, and how late each run's packets come to it (seconds, runs × 1)."""

    path: LinkPath
    late: Floats


@dataclass(frozen=True, slots=True)
class Fates:
    """The fate of each packet of each run: arrays of runs × packets. `delay` is in seconds; ignore it if lost."""

    lost: Flags
    duplicated: Flags
    corrupted: Flags
    delay: Floats


def simulate(
    way: Direction,
    model: LinkModel,
    times: Floats,
    *,
    runs: int,
    seed: int,
    serial: float = 0.0,
    base: float = 0.0,
    path: LinkPath | None = None,
) -> Fates:
    """Simulate `runs` runs of a direction on packets that enter at `times` (seconds since the link's zero).

    `serial`: a packet's serialisation delay in seconds. `base`: seconds that are added to every delay. `path`: the
    link's random numbers. They decide jitter in time, bursts and cuts, which are then the same in all runs, except that
    the packets of each run take another time to reach the link. If `path` is None, each run draws its own jitter in
    time, bursts and cuts.
    """
    random = np.random.default_rng(seed)
    along = None if path is None else _Along(path, random.uniform(0.0, _ON_THE_WAY, (runs, 1)))
    parts = [
        _segment(stages, model, times[chosen], random, runs, serial, down, along)
        for stages, chosen, down in _segments(way, times)
    ]
    lost, duplicated, corrupted, delay = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    lost |= (
        processes.black(way.blackouts, times, runs, random)
        if along is None
        else along.path.black(way.blackouts, times + along.late)
    )
    return Fates(lost, duplicated, corrupted, delay + base)


def _segments(way: Direction, times: Floats) -> Iterator[tuple[Direction, slice, bool]]:
    """Yield, for each step of the schedule that has packets: the direction then, its packets, and if it is cut."""
    if way.schedule is None or not len(times):
        yield way, slice(0, len(times)), False
        return
    own = replace(way, schedule=None)
    changes: list[tuple[float, Direction, bool]] = []
    begin, end = 0.0, float(times[-1])
    while begin <= end:
        now, down = own, False
        changes.append((begin, now, down))
        for step in way.schedule.steps:
            now, down = after(now, step), down if step.down is None else step.down
            changes.append((begin + step.at, now, down))
        if way.schedule.repeat is None:
            break
        begin += way.schedule.repeat
    starts = np.searchsorted(times, [at for at, _, _ in changes])
    ends = [*starts[1:], len(times)]
    starts[0] = 0
    for (_, stages, down), first, last in zip(changes, starts, ends, strict=True):
        if last > first:
            yield stages, slice(int(first), int(last)), down


def keeps_order(way: Direction, model: LinkModel) -> bool:
    """Return whether the jitter of a direction never makes a packet overtake another.

    That is so if there is no jitter, if the profile says that jitter keeps the order, or if netem itself limits the
    rate: netem then begins to send a packet only after the packet before it.
    """
    own_rate = model == "netem" and way.rate is not None and way.queue is None
    return way.jitter is None or way.jitter.keep_order or own_rate


def _segment(
    way: Direction,
    model: LinkModel,
    times: Floats,
    random: np.random.Generator,
    runs: int,
    serial: float,
    down: bool,
    along: _Along | None,
) -> tuple[Flags, Flags, Flags, Floats]:
    shape = (runs, len(times))
    none = np.zeros(shape, dtype=bool)
    lost = _lost(way.loss, model, times, shape, random, along) if way.loss else none.copy()
    duplicated = _strikes(way.duplication, model, shape, random) if way.duplication else none.copy()
    if model == "netem":  # lost and duplicated together: one copy passes
        lost, duplicated = lost & ~duplicated, duplicated & ~lost
    if down:
        lost[:] = True
    corrupted = _strikes(way.corruption, model, shape, random) if way.corruption else none.copy()
    skipped = _skipped(way.reordering, model, shape, random) if way.reordering else none.copy()
    own = np.full(shape, float(way.delay or 0.0))
    if way.jitter is not None:
        entered = times + serial  # a jitter in time is that of the moment at which the delay begins
        own = np.maximum(own + way.jitter.size * _jitter(way.jitter, model, entered, shape, random, along), 0.0)
    own += serial
    own[skipped] = 0.0
    own += float(way.propagation or 0.0)
    if way.jitter is not None and keeps_order(way, model):
        leaves = np.where(skipped | lost, -np.inf, times + own)
        held = np.maximum.accumulate(leaves, axis=1) - times
        own = np.where(skipped, own, np.where(lost, own, held))
    return lost, duplicated, corrupted, own


def _strikes(
    chance: Chance | Reordering, model: LinkModel, shape: tuple[int, int], random: np.random.Generator
) -> Flags:
    p, c = float(chance.probability), float(chance.correlation)
    uniform = random.random(shape)
    if c == 0:
        return uniform < p
    if model == "netem":
        return _following((1 - c) * uniform, c, random.random(shape[0])) <= p
    struck = np.empty(shape, dtype=bool)
    now = uniform[:, 0] < p
    for place in range(shape[1]):
        if place:
            now = uniform[:, place] < np.where(now, p + c * (1 - p), p * (1 - c))
        struck[:, place] = now
    return struck


def _lost(
    loss: Loss,
    model: LinkModel,
    times: Floats,
    shape: tuple[int, int],
    random: np.random.Generator,
    along: _Along | None,
) -> Flags:
    match loss:
        case Chance():
            return _strikes(loss, model, shape, random)
        case GilbertElliott():
            return _gilbert_elliott(loss, shape, random)
        case Bursts():
            on = (
                processes.in_burst(loss, times, shape[0], random)
                if along is None
                else along.path.in_burst(loss, times + along.late)
            )
            return random.random(shape) < np.where(on, loss.probability, loss.outside)
        case FourState():
            return _four_state(loss, shape, random)
        case Pattern(pattern, repeat):
            return _pattern(pattern, repeat, shape)


def _gilbert_elliott(loss: GilbertElliott, shape: tuple[int, int], random: np.random.Generator) -> Flags:
    """Draw loss in the state before the transition; the link begins in the good state, as in netem."""
    lost = np.empty(shape, dtype=bool)
    bad = np.zeros(shape[0], dtype=bool)
    draws, moves = random.random(shape), random.random(shape)
    for place in range(shape[1]):
        lost[:, place] = draws[:, place] < np.where(bad, 1 - loss.h, 1 - loss.k)
        bad ^= moves[:, place] < np.where(bad, loss.r, loss.p)
    return lost


def _four_state(loss: FourState, shape: tuple[int, int], random: np.random.Generator) -> Flags:
    """Draw loss in the state after the transition: in states 3 and 4 the packet is lost."""
    lost = np.empty(shape, dtype=bool)
    state = np.ones(shape[0], dtype=int)
    draws = random.random(shape)
    for place in range(shape[1]):
        draw = draws[:, place]
        one = np.where(draw < loss.p14, 4, np.where(draw < loss.p14 + loss.p13, 3, 1))
        two = np.where(draw < loss.p23, 3, 2)
        three = np.where(draw < loss.p32, 2, np.where(draw < loss.p32 + loss.p31, 1, 3))
        state = np.choose(state - 1, [one, two, three, np.ones_like(state)])
        lost[:, place] = state >= 3
    return lost


def _pattern(pattern: str, repeat: bool, shape: tuple[int, int]) -> Flags:
    marks = np.array([mark == "1" for mark in pattern])
    places = np.arange(shape[1])
    row = marks[places % len(marks)] & (repeat | (places < len(marks)))
    return np.broadcast_to(row, shape).copy()


def _skipped(reordering: Reordering, model: LinkModel, shape: tuple[int, int], random: np.random.Generator) -> Flags:
    strikes = _strikes(reordering, model, shape, random)
    if reordering.gap == 1:
        return strikes
    since = np.zeros(shape[0], dtype=int)
    for place in range(shape[1]):
        strikes[:, place] &= since >= reordering.gap - 1
        since = np.where(strikes[:, place], 0, since + 1)
    return strikes


def _jitter(
    jitter: Jitter,
    model: LinkModel,
    times: Floats,
    shape: tuple[int, int],
    random: np.random.Generator,
    along: _Along | None,
) -> Floats:
    """Return the jitter in multiples of its size, as an array of runs × packets."""
    if jitter.correlation_time is not None and along is not None:
        return quantile(jitter.distribution, along.path.wandering(times + along.late, float(jitter.correlation_time)))
    if jitter.correlation_time is not None:
        return quantile(jitter.distribution, processes.wandering(times / jitter.correlation_time, shape[0], random))
    if model == "netem":  # its modulo leaves nothing of a correlation
        return netem_jitter(jitter.distribution, random.random(shape))
    fresh = random.standard_normal(shape)
    r = latent_correlation(jitter.distribution, float(jitter.correlation))
    if r == 0:
        return quantile(jitter.distribution, fresh)
    latent = _following(np.sqrt(1 - r * r) * fresh, r, random.standard_normal(shape[0]))
    return quantile(jitter.distribution, latent)


def _following(fresh: Floats, share: float, before: Floats) -> Floats:
    """Return each value of a row plus a share of the result before it; `before` precedes the first of each row."""
    values = np.empty_like(fresh)
    for place in range(fresh.shape[1]):
        before = values[:, place] = fresh[:, place] + share * before
    return values
