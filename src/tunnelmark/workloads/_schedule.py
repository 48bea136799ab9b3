"""When which event of a long trial happens to which node: drawn from a seed, or as listed. Pure, and the same for every arm."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tunnelmark.workloads.base import Event

Kind = Literal["restart", "restart-fresh", "restart-control", "link-flap", "change-address"]
End = Literal["source", "target"]


@dataclass(frozen=True, slots=True)
class Scheduled:
    """One event: `at` seconds after the window's begin, what happens, and to which node."""

    at: float
    event: Kind
    node: End


def draw(
    seed: int, kinds: Sequence[Kind], nodes: Sequence[End], *, duration: float, every: float, least: float
) -> tuple[Scheduled, ...]:
    """Events of a Poisson process, on average `every` seconds, that keep `least` seconds from the next and from the end at `duration`.

    Each of the kinds comes once, in random order, before any comes again. Only Random.random() is asked, of which Python
    promises that a seed gives the same numbers in every version.
    """
    source = random.Random(seed)  # noqa: S311 (a draw that can be repeated)
    drawn: list[Scheduled] = []
    left: list[Kind] = []
    at = 0.0
    while at + least <= duration:
        left = left or list(kinds)
        kind = left.pop(int(source.random() * len(left)))
        node = nodes[int(source.random() * len(nodes))]
        drawn.append(Scheduled(at, kind, node))
        at += least - (every - least) * math.log(1 - source.random())
    return tuple(drawn)


def steps(one: Scheduled, node: str, begun: float, outage: float) -> tuple[Event, ...]:
    """What is done for an event, where the window begins at `begun`: what lasts is ended again, so that the next finds all as it was."""
    at = begun + one.at
    match one.event:
        case "link-flap":
            return Event(at, "link-down", node), Event(at + outage, "link-up", node)
        case "change-address":
            return Event(at, "change-address", node), Event(at + outage, "restore-address", node)
        case kind:
            return (Event(at, kind, node),)
