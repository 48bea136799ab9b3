"""Describes a published source and how it measured, to be compared with a run that repeats it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Topic = Literal["hosts", "links", "programs", "traffic", "figures"]
"""The subject of a difference. `hosts`: where nodes ran. `links`: what links did. `programs`: what was tested.
`traffic`: what was sent. `figures`: how values became the figures that were printed.
"""

Machine = Literal["one", "one core a node", "shared cores"]
"""What is true of the machine that all nodes of a run share: `one`: there is one; `one core a node`: a node has one core;
`shared cores`: nodes share a core.
"""

TOPICS: tuple[Topic, ...] = ("hosts", "links", "programs", "traffic", "figures")

NOT_STATED = "not stated"
"""The text that is shown for what a source does not say."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication. `form`: what it is and where it appeared, such as a poster, or a journal with its DOI."""

    authors: str
    year: int
    title: str
    form: str = ""

    @property
    def short(self) -> str:
        """Authors, year and title, for a list."""
        return f"{self.authors}, {self.year}: {self.title}"

    @property
    def full(self) -> str:
        """Authors, year and title, with the form in brackets."""
        return self.short + (f" ({self.form})" if self.form else "")


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """A difference between a source and its repetition that the repetition's record does not show by itself.

    `says`: the difference in a sentence or two. All other fields limit the runs to which the difference applies.
    `studies`, `workloads`, `arms` (the study's names), `conditions` (the source's names): the run has at least one of
    these; () means any run. `quantities`: the source's quantities that it is about; () means all. `length`: "full" for
    runs with `--full`, "usual" for runs without it; "" means any run. `lacks`: the run has none of these workloads.
    `machine`: what must be true of the machine that all nodes of the run share; () means any run. `makes`: the way in which it can move the figures that it concerns; "" if that is not known. `decides`: why these
    figures are not those that the source asked for, so that no claim about them can be tested; "" if they can be
    compared.
    """

    topic: Topic
    says: str
    studies: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    length: Literal["", "usual", "full"] = ""
    lacks: tuple[str, ...] = ()
    machine: tuple[Machine, ...] = ()
    makes: Literal["", "lower", "higher"] = ""
    decides: str = ""
