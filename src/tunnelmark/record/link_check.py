"""The result of a link check as frozen data: whether the link does what its profile says, by line and by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator


@dataclass(frozen=True, slots=True)
class LinkLine:
    """One property of one direction of a link (`way`, such as `a>b`), with values in `unit`.

    `stated`: what the profile says. `expected`, `low`, `high`: the value that probes should have, and its tolerance.
    `achieved`: the value that they had. `ok`: whether it is in tolerance; None if it is not judged, and `note` says why.
    """

    way: str
    name: str
    unit: str
    stated: str
    expected: float | None
    low: float | None
    high: float | None
    achieved: float | None
    ok: bool | None
    note: str = ""


PartVerdict = Literal["shown", "not tested", "outside"]


@dataclass(frozen=True, slots=True)
class LinkPart:
    """A part of a profile (its delay, loss, queue ...) in one direction (`a>b`): whether a check has shown it, and why.

    *outside*: the part is outside of its tolerance. *shown*: the part is in tolerance, and if it were wrong, such a
    check would find that: with probes in at least 95 of 100 cases (for rate and queue, the tolerance alone decides).
    *not tested*: the part could not be judged, or it is in tolerance, but such a check finds wrong links less often.
    """

    way: str
    name: str
    verdict: PartVerdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class LinkPoint:
    """The probes of one stretch of time: their median, smallest and largest delay in ms, and the share that was lost.

    The delays are None if no probe arrived.
    """

    time: float  # seconds since the probes began
    delay: float | None
    least: float | None
    largest: float | None
    loss: float


_FORMER = {"proved": "verified"}
"""Maps words in results of version 0.1 to the words that are used now."""

When = Literal["before", "during", "after", "alone"]
"""When a link was checked: before, between (`during`) or after the trials of a run, or by `check-link` (`alone`)."""


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """One link check. `verdict` is `outside` if a line is outside of its tolerance, or if the check itself has failed.

    `reason`: which lines are outside, or the error. `series`: the points of each direction, by its name (`a>b`).
    `raw`: the files that were kept. `when`, `round`: a run checks all its links in each round. The rounds with the same
    `when` (such as `during` a run) are numbered from 1, and each round is judged separately.
    """

    profile: str
    topology: str
    when: When
    started: float
    seconds: float
    verdict: Annotated[Literal["verified", "outside"], BeforeValidator(lambda word: _FORMER.get(word, word))]
    reason: str
    lines: tuple[LinkLine, ...]
    series: Mapping[str, tuple[LinkPoint, ...]] = field(default_factory=dict)
    raw: tuple[str, ...] = ()
    parts: tuple[LinkPart, ...] = ()
    round: int = 0
