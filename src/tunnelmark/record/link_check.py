"""What a look at a link has found, as frozen data: whether the link is what its profile says, line by line and part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator


@dataclass(frozen=True, slots=True)
class LinkLine:
    """One property of a link one way (`a>b`): what the profile states, what follows for the probes, what they met.

    `ok` None: reported, but not judged; `note` says why.
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
    """A part of a profile one way (`a>b`: its delay, loss, queue ...): whether a look has shown it, and why (not).

    *shown*: inside of its tolerance, by a look that finds a link that is wrong in this part in 95 of 100 cases.
    """

    way: str
    name: str
    verdict: PartVerdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class LinkPoint:
    """What probes met in one stretch of time: median, least and largest delay in ms (None: none arrived), share lost."""

    time: float  # seconds since the probes began
    delay: float | None
    least: float | None
    largest: float | None
    loss: float


_FORMER = {"proved": "verified"}
"""Words in results of version 0.1, and those that hold now."""

When = Literal["before", "during", "after", "alone"]
"""When a link was looked at: before, between and after the trials of a run, or by `check-link`."""


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """One look at a link: `verdict` is `outside` when a line is out of its tolerance, and `reason` says which.

    `series` is by way; `raw` are kept files; `round`: looks `during` a run come in several, each of which is judged by itself.
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
