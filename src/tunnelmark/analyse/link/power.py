"""Computes which wrong links a look would have found: only a look that can fail shows a part of a profile. Pure.

For each part that a direction states, links that are wrong in it are simulated, and measured as the real link is: one
without the part, one with twice the losses, one with 0.7 times the jitter, and so on. A look *tests* a part if it finds
each of these wrong links outside in at least `FOUND` of all cases (the power of the test).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tunnelmark.analyse.link.expected import Expected, expect, serial_of, simulated
from tunnelmark.analyse.link.path import MARGIN, LinkPath
from tunnelmark.analyse.link.simulation import keeps_order
from tunnelmark.analyse.link.statistics import Floats
from tunnelmark.analyse.link.text import verdict
from tunnelmark.model.probe_plan import Pace
from tunnelmark.plan.impairments import Bursts, Chance, Direction, FourState, GilbertElliott, LinkModel, Loss
from tunnelmark.plan.model import Profile
from tunnelmark.plan.struck import SELDOM, skipping
from tunnelmark.record.link_check import LinkLine, LinkPart
from tunnelmark.units import Duration, Share

FOUND = 0.95
"""The share of looks that must find a wrong link. With fewer, the look does not test that part."""

_LOOKS = 40  # simulated looks at each wrong link: of 40 with a power of 0.95 two are missed
_TRACE = "not tested: the wait for an opportunity to send depends on when the trace began"

_DELAY = ("delay_mean", "delay_p50", "delay_p05")

PARTS: Mapping[str, tuple[str, ...]] = {
    "delay": _DELAY,
    "propagation": _DELAY,
    "jitter": ("delay_sd", "delay_p99", "delay_lag1", "ipdv_1", "ipdv_20", "distribution"),
    "loss": ("loss", "burst", "misplaced"),
    "duplication": ("duplicated",),
    "corruption": ("corrupted",),
    "order": ("reordered", "early", "displaced"),
    "skips": ("skipped", "reordered", "early", "displaced"),
    "cuts": ("loss", "burst", "misplaced"),
}
"""The parts of a profile that probes meet, and the lines that say most about each."""


@dataclass(frozen=True, slots=True)
class WrongLink:
    """A link that is wrong in one part of its profile.

    `part`: the part, one of `PARTS`. `words`: what is wrong, such as "no delay". `way`: what the wrong link does in
    place of what the profile states.
    """

    part: str
    words: str
    way: Direction


@dataclass(frozen=True, slots=True)
class WrongLinkLooks:
    """Simulated looks at a wrong link: for each look, the names of the lines outside of their limits."""

    wrong: WrongLink
    looks: tuple[frozenset[str], ...]

    def power(self, judged: frozenset[str]) -> float:
        """Return the share of looks (0 to 1) that find the wrong link if only the lines `judged` are judged."""
        return sum(not judged.isdisjoint(each) for each in self.looks) / len(self.looks)


def wrongs(way: Direction, model: LinkModel) -> Iterator[WrongLink]:
    """Yield the wrong links that a look at this direction should find.

    `way`: what the profile states for the direction. A part of the profile that has no effect has no wrong link either.
    One example is reordering by netem's jitter: if netem also limits the rate, it keeps the order of packets. Another
    is netem's reordering with a correlation, with which next to no packet may skip the delay (`plan.struck.skipping`).
    """
    if way.delay:
        yield WrongLink("delay", "no delay", replace(way, delay=None))
    if way.propagation:
        yield WrongLink("propagation", "no propagation", replace(way, propagation=None))
    if way.jitter is not None:
        yield WrongLink("jitter", "no jitter", replace(way, jitter=None))
        smaller = replace(way.jitter, size=type(way.jitter.size)(0.7 * way.jitter.size))
        yield WrongLink("jitter", "0.7 times the jitter", replace(way, jitter=smaller))
    if way.loss is not None:
        yield WrongLink("loss", "no loss", replace(way, loss=None))
        if (doubled := _doubled(way.loss)) is not None:
            yield WrongLink("loss", "twice the losses", replace(way, loss=doubled))
        if isinstance(way.loss, GilbertElliott | Bursts):
            yield WrongLink(
                "loss", "losses that do not come in bursts", replace(way, loss=Chance(Share(way.loss.lost)))
            )
    if (chance := way.duplication) is not None:
        yield WrongLink("duplication", "no copies", replace(way, duplication=None))
        yield WrongLink("duplication", "twice the copies", replace(way, duplication=_twice(chance)))
    if (chance := way.corruption) is not None:
        yield WrongLink("corruption", "no corruption", replace(way, corruption=None))
        yield WrongLink("corruption", "twice the corruption", replace(way, corruption=_twice(chance)))
    yield from _orders(way, model)
    if way.blackouts or (way.schedule is not None and any(step.down for step in way.schedule.steps)):
        yield WrongLink("cuts", "no cut", replace(way, blackouts=(), schedule=None))


def _orders(way: Direction, model: LinkModel) -> Iterator[WrongLink]:
    skips = way.reordering is not None and (skipping(way.reordering, model) or 1.0) >= SELDOM
    passes = not keeps_order(way, model)
    kept = replace(way.jitter, keep_order=True) if way.jitter is not None else None
    if passes:
        yield WrongLink("order", "no packet that overtakes", replace(way, reordering=None, jitter=kept))
        yield WrongLink("order", "jitter that keeps the order", replace(way, jitter=kept))
    if skips:
        yield WrongLink("skips", "no packet that skips the delay", replace(way, reordering=None))


def _twice(chance: Chance) -> Chance:
    return replace(chance, probability=Share(min(2 * chance.probability, 1.0)))


def _doubled(loss: Loss) -> Loss | None:
    match loss:
        case Chance():
            return _twice(loss)
        case GilbertElliott():
            return replace(loss, p=Share(min(2 * loss.p, 1.0)))
        case Bursts() if loss.every > 2 * loss.burst:
            return replace(loss, every=Duration(loss.every / 2))
        case FourState():
            return replace(loss, p13=Share(min(2 * loss.p13, 1.0)), p14=Share(min(2 * loss.p14, 1.0)))
    return None


@cache
def finds(
    model: LinkModel,
    way: Direction,
    serial: float,
    count: int,
    interval: float,
    path: LinkPath | None = None,
    clock_error: float = 0.0,
) -> tuple[WrongLinkLooks, ...]:
    """Return, for each wrong link of `wrongs`, what 40 simulated looks at it find.

    `serial`: seconds that a probe takes to be sent (`serial_of`). `count`: the number of probes of a look. `interval`:
    seconds between them. `path`: the link's random numbers, if they are known. `clock_error`: by how many seconds all
    delays may be wrong together.
    """
    sent = moments(count, interval)
    expected = expect(model, way, sent, serial=serial, path=path, clock_error=clock_error)
    return tuple(
        WrongLinkLooks(wrong, looks_at(wrong.way, model, way, serial, sent, expected, _LOOKS, seed, path))
        for seed, wrong in enumerate(wrongs(way, model), 1000)
    )


def moments(count: int, interval: float) -> Floats:
    """Return the times at which a look sends its probes, in seconds since the link's zero."""
    return MARGIN + interval * np.arange(count, dtype=np.float64)


def looks_at(
    truth: Direction,
    model: LinkModel,
    way: Direction,
    serial: float,
    sent: Floats,
    expected: Expected,
    looks: int,
    seed: int,
    path: LinkPath | None = None,
) -> tuple[frozenset[str], ...]:
    """Simulate looks at a link that does `truth`; for each, return the names of the lines outside of `expected`.

    `way`: the direction as the profile states it, by which the looks recognise packets that skip the delay. `expected`:
    the limits of lines for `way`. `model`: as in `expect`. `serial`: seconds that a probe takes to be sent
    (`serial_of`). `sent`: when each probe is sent, in seconds since the link's zero. `looks`: the number of looks.
    `seed`: of the simulation. `path`: the link's random numbers, if they are known.
    """
    rows = simulated(model, truth, way, sent, runs=looks, seed=seed, serial=serial, path=path)
    return tuple(expected.outside(replace(row, ceiling=expected.ceiling)) for row in rows)


def parts(
    way: str,
    profile: Profile,
    direction: Direction,
    pace: Pace | None,
    lines: Sequence[LinkLine],
    path: LinkPath | None = None,
    clock_error: float = 0.0,
) -> Iterator[LinkPart]:
    """Yield, for each part that a direction states, whether a look has shown it, found it outside, or not tested it.

    `way`: the direction's name (`a>b`). `pace`: that of the probes; None if the look sent none. `lines`: those of the
    look. `path`, `clock_error`: as in `finds`.
    """
    mine = {line.name: line for line in lines if line.way == way}
    judged = frozenset(name for name, line in mine.items() if line.ok is not None)
    if direction.rate_trace is not None and pace is not None:
        yield from (
            LinkPart(way, part, "not tested", _TRACE)
            for part in dict.fromkeys(wrong.part for wrong in wrongs(direction, profile.model))
        )
    elif pace is not None:
        weakest: dict[str, tuple[float, str]] = {}
        serial = serial_of(profile, direction)
        for each in finds(profile.model, direction, serial, pace.count, pace.interval, path, clock_error):
            power = each.power(judged)
            if power < weakest.get(each.wrong.part, (2.0, ""))[0]:
                weakest[each.wrong.part] = power, each.wrong.words
        for part, (power, words) in weakest.items():
            found = f"a look of {pace.count} probes finds {words} in {100 * power:.0f} of 100 cases"
            if any(mine[name].ok is False for name in PARTS[part] if name in mine):
                yield LinkPart(way, part, "outside", found)
            else:
                yield LinkPart(way, part, "shown" if power >= FOUND else "not tested", found)
    for part in ("rate", "queue"):
        if (line := mine.get(part)) is not None:
            yield LinkPart(way, part, verdict(line), line.note.removeprefix("not judged: "))
