"""Holds a source's raw data: the runs of each cell, also failed runs, and sentences on the limits of the design."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Literal

from tunnelmark.analyse.model import RELIABLE
from tunnelmark.claims.model import OVER_BLOCKS, Cell, CellValues, ClaimsFile
from tunnelmark.errors import StoreError, UsageError

Number = Callable[[object, Path], float]
"""A function that reads a number from the content of a JSON file, and raises StoreError if there is none."""

RawStatistic = Literal["mean", "sum", "median", "least", "largest", "deviation"]
"""The way in which a source makes one figure from the runs of a cell; `deviation` is a sample's standard deviation."""


@dataclass(frozen=True, slots=True)
class RawRun:
    """A run of a cell, or one link of a run.

    `value`: in the source's unit; None if the run failed, and `failed` says why. `attempts`: how many attempts the run
    took.
    """

    name: str
    value: float | None
    failed: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class RawCell:
    """The runs of one cell in a source's raw data.

    `runs`: those that are in the data, in the source's unit.
    `planned`: how many runs there are according to the source.
    `statistic`: how the source makes one figure of the runs.
    `readings`: other figures that the source's words may mean, by a description in words.
    """

    runs: tuple[RawRun, ...]
    planned: int
    statistic: RawStatistic = "mean"
    readings: Mapping[str, float] = field(default_factory=dict)

    @property
    def succeeded(self) -> tuple[RawRun, ...]:
        """The runs with a value."""
        return tuple(run for run in self.runs if run.value is not None)

    @property
    def figure(self) -> float | None:
        """The source's figure, from the runs that have a value; None if too few have one."""
        return combined([run.value for run in self.runs if run.value is not None], self.statistic)

    @property
    def missing(self) -> str:
        """Which runs gave no value, and why; "" if all did."""
        parts = [f"{run.name}: {run.failed}" for run in self.runs if run.value is None]
        if len(self.runs) < self.planned:
            parts.append(f"{self.planned - len(self.runs)} are not in the data")
        return "; ".join(parts)


class RawValues:
    """The cells of published raw data. Runs of different arms do not belong together, so nothing is paired.

    `name`: the name of the folder. `single`: each cell has one run on each link, so a claim is judged by the mean over
    links alone, as in the source. `design`: sentences for a report on the limits of the source's design, such as that
    nothing is paired.
    """

    paired = False
    measured_here = False
    units = OVER_BLOCKS

    def __init__(self, name: str, cells: Mapping[Cell, RawCell], *, single: bool, design: Iterable[str]) -> None:
        self.name = name
        self.cells = cells
        self.single = single
        self.design = tuple(design)

    def of(self, cell: Cell) -> CellValues | None:
        """Return a cell's values by run, in the source's unit; None if there are none.

        If the source's figure of the cell is not a mean, this figure is the only value.
        """
        found = self.cells.get(cell)
        if found is None or found.figure is None:
            return None
        if found.statistic == "mean":
            given = [run.value for run in found.runs if run.value is not None]
            return CellValues(dict(enumerate(given)))
        return CellValues({0: found.figure})

    def obstacle(self, cells: Mapping[Cell, int], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Return the reason why these cells cannot be compared, such as too many failed runs; "" if they can."""
        for cell in cells:
            found = self.cells.get(cell)
            if found is None:
                return f"the raw data have no {cell}"
            if not found.succeeded:
                return f"{cell}: {found.missing or 'no run has a value'}"
            if len(found.succeeded) / found.planned < RELIABLE:
                return f"{cell}: {len(found.succeeded)} of {found.planned} runs have a value ({found.missing})"
            if not self.single and found.statistic != "mean":
                return f"{cell} is one figure of all runs, which has no interval here"
        return ""

    def missing(self) -> tuple[str, ...]:
        """Return, for each arm and condition that lacks values, a sentence with the runs that have none, and why."""
        return self._lines(
            (cell, f"{len(found.succeeded)} of {found.planned} have a value ({found.missing})")
            for cell, found in self.cells.items()
            if len(found.succeeded) < found.planned
        )

    def retried(self) -> tuple[str, ...]:
        """Return a sentence for each run that has a value only because it was tried again."""
        return self._lines(
            (cell, f"{run.name} succeeded at attempt {run.attempts}")
            for cell, found in self.cells.items()
            for run in found.succeeded
            if run.attempts > 1
        )

    @staticmethod
    def _lines(of: Iterable[tuple[Cell, str]]) -> tuple[str, ...]:
        """Join the sentences that say the same of several quantities of one arm and condition."""
        quantities: dict[tuple[str, str, str], list[str]] = {}
        for cell, said in of:
            quantities.setdefault((cell.arm, cell.condition, said), []).append(cell.quantity)
        return tuple(
            f"{arm}, {condition}, {', '.join(sorted(names))}: {said}"
            for (arm, condition, said), names in sorted(quantities.items())
        )


def combined(values: Sequence[float], statistic: RawStatistic) -> float | None:
    """Combine values into one figure; None if there are too few: a deviation needs two, any other statistic one."""
    if len(values) < (2 if statistic == "deviation" else 1):
        return None
    if statistic == "mean":
        return fmean(values)
    if statistic == "median":
        return median(values)
    if statistic == "deviation":
        return stdev(values)
    if statistic == "sum":
        return sum(values)
    return min(values) if statistic == "least" else max(values)


def read_json(file: Path) -> object:
    """Return the content of a JSON file. Raises StoreError if it cannot be read."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise StoreError(f"{file} cannot be read: {error}", hint="fetch the raw data again") from None


def at(data: object, path: str, file: Path) -> object:
    """Return the value at a dotted path in JSON data; StoreError if there is none. A number is an index into a list."""
    found = data
    for key in path.split("."):
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise StoreError(f"{file} has no {path}", hint="is it of another version of the benchmark?")
    return found


def number(data: object, path: str, file: Path) -> float:
    """Return the number at a dotted path; StoreError if there is no value, or if it is not a number."""
    found = at(data, path, file)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise StoreError(
            f"{file}: {path} is {found!r} and no number", hint="is it of another version of the benchmark?"
        )
    return float(found)


def by_path(path: str, factor: float = 1.0) -> Number:
    """Return a function that reads the number at a dotted path and multiplies it by `factor`."""
    return lambda data, file: number(data, path, file) * factor


def check_unit(claims: ClaimsFile, quantity: str, unit: str) -> None:
    """Raise UsageError if the file of claims has a quantity in another unit than `unit`, in which it is read here."""
    if (own := claims.quantities[quantity].unit) != unit:
        raise UsageError(
            f"{claims.name}: {quantity} is in {own}, and is read from raw data in {unit}",
            hint=f"state {quantity} in {unit}, as the source does",
        )
