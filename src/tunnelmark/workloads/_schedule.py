"""Schedules the faults of a long trial, drawn from a seed or listed; every arm gets the same schedule. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tunnelmark.workloads._events import PAIRS, Fault, FaultKind
from tunnelmark.workloads.base import ENDINGS, Event, EventKind

EventTarget = Literal["source", "target", "relay", "all"]

AT_ONCE: tuple[FaultKind, ...] = ("restart", "restart-fresh", "restart-control", "nat-rebinding")
"""Faults that are over at once, unless they are listed with an outage."""

_LASTING: dict[FaultKind, tuple[EventKind, EventKind]] = PAIRS | {
    "change-address": ("change-address", "restore-address")
}
_OF_PAIR: dict[tuple[str, str], str] = {pair: kind for kind, pair in _LASTING.items()}


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A fault of a node, `at` seconds after the window begins; it lasts `outage` seconds (0: it has no set length)."""

    at: float
    event: FaultKind
    node: EventTarget
    outage: float

    def events(self, node: str, begun: float) -> tuple[Event, ...]:
        """Return the events that begin and end the fault on the node `node`.

        `begun`: when the window begins, in seconds after the client's start. The ending event undoes the fault, so that
        the next fault finds the mesh as it was before.
        """
        at = begun + self.at
        if self.event == "change-address":
            return Event(at, "change-address", node), Event(at + self.outage, "restore-address", node)
        return Fault(at, self.event, node, self.outage).events


def draw(
    seed: int,
    kinds: Sequence[FaultKind],
    nodes: Sequence[EventTarget],
    *,
    duration: float,
    every: float,
    outage: float,
    recover: float,
) -> tuple[Scheduled, ...]:
    """Return random faults (a Poisson process), on average `every` seconds apart.

    From the begin of each fault, at least `outage` plus `recover` seconds pass until the next fault begins, and until
    `duration` seconds are over. Each of `kinds` comes once, in random order, before any comes again. The node of each
    fault is drawn from `nodes`, with equal chances. Only Random.random() is used, because Python promises that a seed
    gives the same numbers in every version.
    """
    source = random.Random(seed)  # noqa: S311 (a draw that can be repeated)
    least = outage + recover
    drawn: list[Scheduled] = []
    left: list[FaultKind] = []
    at = 0.0
    while at + least <= duration:
        left = left or list(kinds)
        kind = left.pop(int(source.random() * len(left)))
        node = nodes[int(source.random() * len(nodes))]
        drawn.append(Scheduled(at, kind, node, 0.0 if kind in AT_ONCE else outage))
        at += least - (every - least) * math.log(1 - source.random())
    return tuple(drawn)


def kind_of(first: str, last: str | None) -> str | None:
    """Return the fault that the event `first` begins and the event `last` ends, or None if the two make no fault.

    `last` is None if no event ended the fault. Then the result is None if `first` needs an event that ends it.
    """
    if last is not None:
        return _OF_PAIR.get((first, last))
    return None if first in {begin for begin, _ in _OF_PAIR} | ENDINGS else first
