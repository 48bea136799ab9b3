"""Describes a published source and how it measured, to be compared with a run that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Topic = Literal["hosts", "links", "programs", "traffic", "figures"]
"""What a difference is about: where nodes ran; what links did; what was tested; what was sent; how values became the figures that were printed."""

TOPICS: tuple[Topic, ...] = ("hosts", "links", "programs", "traffic", "figures")

NOT_STATED = "not stated"
"""What a source does not say."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication: who wrote it, when, its title, and `form`, what it is and where (a poster, a journal with its DOI)."""

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
    """How a source measured, of what a run records of itself, too; "" where it does not say.

    `versions` by the source's arms, `tools` by the names that environments have, `lengths` by the study's workloads.
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
    """What a repetition does otherwise, which its record does not show by itself.

    It is about runs that have one of these studies, workloads, arms (of the study) and conditions (of the source), where any are named, of
    that `length`; with `one_machine` only about runs whose nodes share a machine.
    """

    topic: Topic
    says: str
    studies: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    length: Literal["", "usual", "full"] = ""
    one_machine: bool = False
