"""Which cells a study measures: every combination of arm, profile, topology and workload but those that its design leaves out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

AXES = {"arms": "arm", "profiles": "profile", "topologies": "topology", "workloads": "workload"}
"""What cells are made of, in the order in which they are named, each with the word for one."""

Names = Mapping[str, Sequence[str]]
"""Names by axis."""

NOTHING: Names = {}


@dataclass(frozen=True, slots=True)
class CellPattern:
    """Cells by what they are made of; an axis without names may be anything."""

    arms: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    topologies: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[tuple[str, ...], ...]:
        """The names of each axis, in the order of `AXES`."""
        return self.arms, self.profiles, self.topologies, self.workloads

    def matches(self, cell: Sequence[str]) -> bool:
        """Whether a cell, by its four names, is one of these."""
        return all(not names or name in names for name, names in zip(cell, self.axes, strict=True))

    def __str__(self) -> str:
        return " · ".join(", ".join(names) for names in self.axes if names)


@dataclass(frozen=True, slots=True)
class Design:
    """What a study leaves out of all combinations, what of that it has all the same, and the part of it that is measured."""

    excluded: tuple[CellPattern, ...] = ()
    included: tuple[CellPattern, ...] = ()
    part: CellPattern = CellPattern()

    def has(self, cell: Sequence[str]) -> bool:
        """Whether a cell, by its four names, is measured."""
        out = any(each.matches(cell) for each in self.excluded)
        return self.part.matches(cell) and (not out or any(each.matches(cell) for each in self.included))


ALL = Design()
"""The design that leaves nothing out."""
