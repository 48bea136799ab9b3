"""Decides which cells (combinations of arm, profile, topology and workload) a study measures, and which not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

AXES = {"arms": "arm", "profiles": "profile", "topologies": "topology", "workloads": "workload"}
"""The axes that make up a cell, in the order of its name: by the plural of each word, its singular."""

Names = Mapping[str, Sequence[str]]
"""Names by axis; the axes are the keys of `AXES`."""

NOTHING: Names = {}


@dataclass(frozen=True, slots=True)
class CellPattern:
    """A set of cells, stated as names on each axis. An axis without names matches any name."""

    arms: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    topologies: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[tuple[str, ...], ...]:
        """The names of each axis, in the order of `AXES`."""
        return self.arms, self.profiles, self.topologies, self.workloads

    def matches(self, cell: Sequence[str]) -> bool:
        """Return whether a cell is in the set; `cell` is its four names in the order of `AXES`."""
        return all(not names or name in names for name, names in zip(cell, self.axes, strict=True))

    def __str__(self) -> str:
        return " · ".join(", ".join(names) for names in self.axes if names)


@dataclass(frozen=True, slots=True)
class Design:
    """Which cells a study measures: each cell in `part` that is not excluded, or that is included again.

    A cell that matches a pattern of `excluded` is left out, unless it also matches a pattern of `included`. A cell
    outside of `part` is left out in any case.
    """

    excluded: tuple[CellPattern, ...] = ()
    included: tuple[CellPattern, ...] = ()
    part: CellPattern = CellPattern()

    def has(self, cell: Sequence[str]) -> bool:
        """Return whether a cell is measured; `cell` is its four names in the order of `AXES`."""
        out = any(each.matches(cell) for each in self.excluded)
        return self.part.matches(cell) and (not out or any(each.matches(cell) for each in self.included))

    def has_any(self, *axes: Sequence[str]) -> bool:
        """Return whether a cell of these names is measured: of each axis, in the order of `AXES`, one of the names."""
        return any(self.has(cell) for cell in product(*axes))


ALL = Design()
"""The design that leaves nothing out."""
