"""Claims as frozen data: what was printed where, what must be true of it, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from tunnelmark.claims.originals import Publication, Setup, SourceDifference
from tunnelmark.claims.run_statistics import OF_ARM, Statistic

Outcome = Literal["held", "did not hold", "undecided", "not testable"]
"""`held`: every statement of the claim is shown. `did not hold`: the contrary of one of them is shown. `undecided`: neither, at this
precision. `not testable`: these values cannot say it, for a reason that is given."""

OUTCOMES: tuple[Outcome, ...] = ("held", "did not hold", "undecided", "not testable")

Kind = Literal["rate", "time", "share", "count", "size", "ratio"]
"""What a quantity is. Rates, times and counts of other hardware are compared with something of their own study; only a share, a size in
bytes, or a pure ratio is also compared as it is."""

Scale = Literal["ratio", "difference"]
"""How values are held against each other: A/B, or A - B (a single value is a difference of nothing)."""

OVER_BLOCKS: Mapping[int, int] = MappingProxyType({})
"""`Values.units` where an interval is over blocks."""

AS_IT_IS: tuple[Kind, ...] = ("share", "size", "ratio")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a table of the source gives: `unit` is the source's, `factor` turns it into the unit of the workload's metric.

    `workload` and `metric` name what a run measures; both empty where no workload measures it, for the reason `unmeasured`. `statistic` is
    made of it, or of all workloads (see `run_statistics`). `study`: the one that has the workload, where that is not the study of the whole
    source. `unless_full`: the figure says nothing where a node's cores are full. `full_only`: what it says depends on
    how long the source's tests were, so that only a study's long length tells it.
    """

    name: str
    title: str
    unit: str
    kind: Kind
    better: Literal["higher", "lower"]
    workload: str = ""
    metric: str = ""
    study: str = ""
    factor: float = 1.0
    statistic: Statistic | None = None
    unless_full: bool = False
    full_only: bool = False
    unmeasured: str = ""

    @property
    def of_arm(self) -> bool:
        """Whether the value is computed from all workloads of a condition, not from one."""
        return self.statistic in OF_ARM


@dataclass(frozen=True, slots=True)
class Condition:
    """Under what the source measured, and the profile and topology of the study that repeat it; "" for the topology: the study's only one.

    `impaired`: its link decides what TCP reaches, not the hosts' processors.
    """

    name: str
    title: str
    profile: str = ""
    topology: str = ""
    impaired: bool = False
    unmeasured: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One place of the source's tables, by its own names of quantity, condition and arm."""

    quantity: str
    condition: str
    arm: str

    def __str__(self) -> str:
        return f"{self.arm}, {self.quantity}, {self.condition}"


@dataclass(frozen=True, slots=True)
class Printed:
    """A value as the source prints it, in the source's unit, with so many `decimals`; `place` is the table, figure or section."""

    cell: Cell
    value: float
    place: str
    decimals: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """An effect and the range in which a claim puts it.

    `terms` are cells with their powers (`scale` "ratio") or factors ("difference"): {A: 1, B: -1} is A/B or A - B. `low` and `high` bound a
    pure ratio, or a difference or a single value in the source's unit; None: not bounded. `printed` is what the source's own values give.
    """

    terms: tuple[tuple[Cell, int], ...]
    scale: Scale
    low: float | None
    high: float | None
    printed: float | None = None


@dataclass(frozen=True, slots=True)
class Apart:
    """Whether the runs of two cells differ by the test that the source used (Mann-Whitney U, two-sided, 5 %)."""

    one: Cell
    other: Cell
    differ: bool


@dataclass(frozen=True, slots=True)
class Feature:
    """What a source says that a VPN can do: `printed` of all `criteria` of the row `vpn` of the feature matrix; `cited` is how cells name that source."""

    vpn: str
    criteria: tuple[str, ...]
    printed: bool | str
    cited: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a source says at `place`, in a sentence of our own, and the statements that must all be true for it.

    `order` holds the cells of a claimed order, the largest value first, whose agreement is also given as Kendall's tau. `untestable` says why no
    run of this laboratory can test it; `contradicted` what the source's own figures say against it.
    """

    id: str
    place: str
    says: str
    statements: tuple[Statement | Apart, ...]
    order: tuple[Cell, ...] = ()
    untestable: str = ""
    contradicted: str = ""
    feature: Feature | None = None


@dataclass(frozen=True, slots=True)
class ClaimsFile:
    """The claims of one published source, with its values; `study` is the study that repeats it, `also` those that repeat parts of it.

    `there` is how it measured, `differences` what those studies do otherwise beyond that. `arms` are its names of arms as they have them.
    """

    name: str
    source: Publication
    study: str
    also: tuple[str, ...]
    there: Setup
    differences: tuple[SourceDifference, ...]
    arms: Mapping[str, str]
    absent: Mapping[str, str]
    quantities: Mapping[str, Quantity]
    conditions: Mapping[str, Condition]
    printed: Mapping[Cell, Printed]
    claims: tuple[Claim, ...]

    @property
    def title(self) -> str:
        """The source's authors, year and title."""
        return self.source.short

    def describe(self, cell: Cell) -> str:
        """A cell in the words of the file's titles, such as "WireGuard, one TCP stream, 1 % of loss"."""
        return f"{cell.arm}, {self.quantities[cell.quantity].title}, {self.conditions[cell.condition].title}"


@dataclass(frozen=True, slots=True)
class CellValues:
    """The values of one cell by block (or by run, where runs are not paired), in the source's unit.

    `counted`: it is a share of trials in per cent, so many of so many, and its interval is the exact one of such a share.
    """

    values: Mapping[int, float] = field(default_factory=dict)
    counted: tuple[int, int] | None = None


class Values(Protocol):
    """Where a claim's values come from.

    `paired`: values of one block belong together. `single`: values without a spread, so that a point decides. `units`: the machine of
    each block where machines are what an interval is over; empty where blocks are.
    """

    paired: bool
    single: bool
    units: Mapping[int, int]

    def of(self, cell: Cell) -> CellValues | None:
        """The values of a cell; None where there are none."""

    def obstacle(self, cells: Sequence[Cell], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Why these cells cannot be compared with what was published; "" where they can.

        `conservative`: cells whose values may be lower here than the published link allows, because a lower one only speaks against the claim.
        """


@dataclass(frozen=True, slots=True)
class Effect:
    """A statement's estimate with its interval, over `count` blocks (or the fewest runs of a cell); `blocks` would decide it."""

    statement: Statement
    estimate: float
    low: float | None
    high: float | None
    count: int
    outcome: Outcome
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with what came of it: the effects of its statements, or the reason why there are none.

    `despite`: what this machine's processor held down, where the claim holds all the same.
    """

    claim: Claim
    outcome: Outcome
    effects: tuple[Effect, ...] = ()
    reason: str = ""
    tau: tuple[float, float, float] | None = None
    despite: str = ""
