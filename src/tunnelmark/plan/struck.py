"""Says what share of packets each stage of a direction strikes in the long run, where that is known in closed form. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tunnelmark.plan.impairments import Chance, Direction, GilbertElliott


def shares(way: Direction, model: Literal["stated", "netem"]) -> Mapping[str, float]:
    """The shares of packets that are lost (`loss`), and of the rest copied (`duplication`) and corrupted (`corruption`).

    A stage is left out where its share changes with time (bursts with a length in time among them: how many a trial meets says nothing
    that its packets could tell), or where no formula gives it: netem's correlation moves the
    share, and its copies of lost packets undo the loss.
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
    for name, chance in (("duplication", way.duplication), ("corruption", way.corruption)):
        if chance is not None and not chance.correlation and (plain or name != "duplication" or not way.loss):
            found[name] = float(chance.probability)
    return found
