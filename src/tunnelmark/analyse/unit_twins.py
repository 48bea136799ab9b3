"""The A/A judgement over machines or sessions: over these, too, an arm must not differ from its twin.

A unit is a machine, or a session if all sessions ran on one machine. Each unit gives one value. So units with only one
or two blocks, which are too few to judge the twins in each unit alone, are judged together. The test is Student's over
units, corrected by Bonferroni for the pairs, primary metrics and conditions. It needs as many units as an interval over
units does (`session_effects.MIN_UNITS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunnelmark.analyse.intervals import LEVEL, t_quantile
from tunnelmark.analyse.margins import negligible
from tunnelmark.analyse.model import Standing
from tunnelmark.analyse.pairing import additive
from tunnelmark.analyse.session_effects import Combined
from tunnelmark.record.results import MetricInfo


@dataclass(frozen=True, slots=True)
class Twins:
    """An arm compared with its twin by one primary metric over all units, in a condition that is described in words."""

    arm: str
    against: str
    metric: MetricInfo
    condition: str
    combined: Combined


@dataclass(frozen=True, slots=True)
class UnitTwins:
    """The result of the A/A judgement over units, and a sentence that explains it."""

    standing: Standing
    explanation: str


def judge_units(twins: Sequence[Twins]) -> UnitTwins:
    """Test whether any arm differs from its twin, the same arm measured under a second name.

    All pairs by all primary metrics and conditions are one Bonferroni family at 5 %. "differs": at least one difference
    is significant and more than negligible. "agrees": none is. "not judged": no arm was measured twice, or some pair
    has too few units for an interval.
    """
    if not twins:
        return UnitTwins(
            "not judged", "no arm was measured twice, so there is no measure of what is shown by chance alone"
        )
    unit = f"{twins[0].combined.unit}s"
    judged = [each for each in twins if each.combined.low is not None]
    if len(judged) < len(twins):
        fewest = min(each.combined.units for each in twins)
        return UnitTwins(
            "not judged", f"{fewest} {unit} are too few to say whether an arm differs from itself over them"
        )
    if wrong := [each for each in judged if _differs(each, len(judged))]:
        where = ", ".join(
            f"{each.arm} against {each.against} by {each.metric.title} ({each.condition})" for each in wrong
        )
        return UnitTwins("differs", f"over {unit} the same thing under two names came out different: {where}")
    names = ", ".join(dict.fromkeys(f"{each.arm} and {each.against}" for each in judged))
    fewest = min(each.combined.units for each in judged)
    return UnitTwins(
        "agrees",
        f"over {fewest} {unit} no primary metric distinguishes {names}, which are the same thing under two names",
    )


def _differs(twins: Twins, family: int) -> bool:
    """Return whether the test finds a difference that is more than negligible (`margins.negligible`)."""
    found, freedom = twins.combined, twins.combined.units - 1
    assert found.low is not None and found.high is not None
    error = (found.high - found.low) / 2 / t_quantile(freedom)
    far = abs(found.mean) > t_quantile(freedom, LEVEL / family) * error
    return far and abs(found.mean) > additive(twins.metric, negligible(twins.metric))
