"""Describes a published source and how it measured, to be compared with a run that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Topic = Literal["hosts", "links", "programs", "traffic", "figures"]
"""The subject of a difference. `hosts`: where nodes ran. `links`: what links did. `programs`: what was tested.
`traffic`: what was sent. `figures`: how values became the figures that were printed.
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
class Setup:
    """How a source measured, as far as a run records the same of itself; "" for what the source does not say.

    `versions`: the version of each of the source's arms. `tools`: the version of each tool, by the name that a run
    records. `lengths`: how long the source measured, by the study's workload.
    """

    hosts: str = ""
    kernel: str = ""
    links: str = ""
    runs: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """A difference between a source and its repetition that the repetition's record does not show by itself.

    `studies`, `workloads`, `arms` (of the study), `conditions` (of the source): it is about runs with one of these; ()
    means any. `length`: it is about runs of that length; "" means any. `one_machine`: if set, it is only about runs
    whose nodes share a machine.
    """

    topic: Topic
    says: str
    studies: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    length: Literal["", "usual", "full"] = ""
    one_machine: bool = False
