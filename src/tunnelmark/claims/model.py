"""Claims as frozen data: printed values, the statements that must be true for a claim, and the verdicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Protocol

from tunnelmark.claims.claims_schema import PartTable, SetupTable
from tunnelmark.claims.originals import Publication, SourceDifference
from tunnelmark.claims.run_statistics import OF_ARM, Statistic

ClaimOutcome = Literal["held", "did not hold", "undecided", "not testable"]
"""`held`: every statement of the claim is shown. `did not hold`: the contrary of one of them is shown. `undecided`: neither, at this
precision. `not testable`: these values cannot say it, for a reason that is given."""

OUTCOMES: tuple[ClaimOutcome, ...] = ("held", "did not hold", "undecided", "not testable")

QuantityKind = Literal["rate", "time", "share", "count", "size", "ratio"]
"""What a quantity is. Rates, times and counts of other hardware are compared with something of their own study; only a share, a size in
bytes, or a pure ratio is also compared as it is."""

EffectScale = Literal["ratio", "difference"]
"""How values are compared: A/B, or A - B. A single value has the scale "difference" too."""

OVER_BLOCKS: Mapping[int, int] = MappingProxyType({})
"""The value of `Values.units` if intervals are over blocks."""

AS_IT_IS: tuple[QuantityKind, ...] = ("share", "size", "ratio")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of the source's tables, and the metric of a run that repeats it.

    `unit`: the source's unit. `factor`: how many of the metric's units make one `unit`.
    `workload`, `metric`: what a run measures; "" if no workload measures it, and `unmeasured` says why.
    `statistic`: the figure that is computed from the metric, or from all workloads (see `run_statistics`).
    `study`: the study that has the workload; "" if it is the study of the whole source.
    `unless_full`: the figure says nothing if a node's cores are full.
    `full_only`: the figure depends on how long the source's tests were, so only a run with `--full` has it.
    `all_nodes`: all nodes send and receive at once, so it says little where nodes share the cores of one machine.
    `several_cores`: the figure needs nodes with more than one core each, such as how far a process fills a core; a time
    does so only where it is compared with that of the bare link.
    `timers`: a program's own timers set a time, so that it is compared as it is.
    """

    name: str
    title: str
    unit: str
    kind: QuantityKind
    better: Literal["higher", "lower"]
    workload: str = ""
    metric: str = ""
    study: str = ""
    factor: float = 1.0
    statistic: Statistic | None = None
    unless_full: bool = False
    full_only: bool = False
    all_nodes: bool = False
    several_cores: bool = False
    timers: bool = False
    unmeasured: str = ""

    @property
    def of_arm(self) -> bool:
        """Whether the value is computed from all workloads of a condition, not from one."""
        return self.statistic in OF_ARM


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition under which the source measured, and the profile and topology of the study that repeat it.

    `topology`: "" if the study has only one topology. `impaired`: whether loss, delay or jitter of the link limits TCP,
    so that the processors of the source's hosts do not. `workloads`: by a quantity's workload, the one that repeats it
    under this condition, if that is another one. `unmeasured`: why the study has no such condition, or "".
    """

    name: str
    title: str
    profile: str = ""
    topology: str = ""
    impaired: bool = False
    workloads: Mapping[str, str] = field(default_factory=dict[str, str])
    unmeasured: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One cell of the source's tables: a quantity of an arm under a condition, all by the source's own names."""

    quantity: str
    condition: str
    arm: str

    def __str__(self) -> str:
        return f"{self.arm}, {self.quantity}, {self.condition}"


@dataclass(frozen=True, slots=True)
class Printed:
    """A value as the source prints it: its unit is the source's, `decimals` are the digits printed after the point.

    `place`: the table, figure or section that has it.
    """

    cell: Cell
    value: float
    place: str
    decimals: int = 0


@dataclass(frozen=True, slots=True)
class Statement:
    """An effect, and the range in which it must lie for a claim to be true.

    `terms`: cells with their powers (`scale` "ratio") or factors ("difference"): {A: 1, B: -1} is A/B or A - B.
    `low`, `high`: the range, as a ratio, or in the source's unit; None if it has no limit on that side.
    `printed`: the effect that follows from the source's own values; None if it does not print all of them.
    `strict`: whether an effect at a limit, such as that of two equal values, does not yet show the statement.
    """

    terms: tuple[tuple[Cell, int], ...]
    scale: EffectScale
    low: float | None
    high: float | None
    printed: float | None = None
    strict: bool = False

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells whose values the statement compares."""
        return tuple(cell for cell, _ in self.terms)


@dataclass(frozen=True, slots=True)
class Apart:
    """The statement that the runs of two cells differ (or, if `differ` is False, do not) by the source's own test.

    The test is Mann-Whitney's U, two-sided, at 5 %.
    """

    one: Cell
    other: Cell
    differ: bool

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells whose values the statement compares."""
        return self.one, self.other


@dataclass(frozen=True, slots=True)
class Feature:
    """A statement of the source on what a VPN can do, to be compared with our feature matrix.

    `vpn`: the row of the matrix. `criteria`: the columns that the statement is about. `printed`: whether the source
    says that the VPN has this feature, or the text that it prints for it. `cited`: the source's title, which is a part
    of the text by which cells of the matrix cite it.
    """

    vpn: str
    criteria: tuple[str, ...]
    printed: bool | str
    cited: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the source, and the statements that must all be true for it.

    `place`: where the source makes it. `says`: the claim in a sentence of our own.
    `order`: the cells of a claimed order, the largest value first; agreement with it is also given as Kendall's tau.
    `elsewhere`: cells whose packets took paths in the source that a lab does not have. `untestable`: why no run of this
    laboratory can test the claim, or ""; if it has statements, values of the source itself can. `studies`: those of
    `ClaimsFile.parts` that can test it all the same. `usual`: why a run without `--full` cannot, or "". `contradicted`: what the source's own figures say against the
    claim, or "".
    """

    id: str
    place: str
    says: str
    statements: tuple[Statement | Apart, ...]
    order: tuple[Cell, ...] = ()
    elsewhere: frozenset[Cell] = frozenset()
    untestable: str = ""
    studies: tuple[str, ...] = ()
    usual: str = ""
    contradicted: str = ""
    feature: Feature | None = None

    def of_a_lab(self) -> Claim:
        """Return the claim without what it says about cells `elsewhere`."""
        kept = tuple(each for each in self.statements if not self.elsewhere & {*each.cells})
        return replace(self, statements=kept, order=tuple(cell for cell in self.order if cell not in self.elsewhere))


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A conclusion that the source draws, in a sentence of our own, and the claims that it rests on.

    `place`: where the source draws it. `rests_on`: ids of claims; an id also names the claims of one form that follow
    it after a dot, such as one for each arm.
    """

    says: str
    place: str
    rests_on: tuple[str, ...]

    def has(self, claim: Claim) -> bool:
        """Return whether the conclusion rests on this claim."""
        return any(claim.id == each or claim.id.startswith(f"{each}.") for each in self.rests_on)


@dataclass(frozen=True, slots=True)
class ClaimsFile:
    """The claims of one published source, with its printed values.

    `study`: the study that repeats the source. `also`: studies that repeat parts of it. `there`: how the source
    measured. `differences`: what these studies do otherwise than the source, if no run's record shows that. `arms`:
    from the source's name of each arm to the studies' name. `absent`: why an arm is in none of the studies.
    `conclusions`: what the source makes of its claims, in its order. `parts`: by study of `also`, what it names
    otherwise than `study`.
    """

    name: str
    source: Publication
    study: str
    also: tuple[str, ...]
    there: SetupTable
    differences: tuple[SourceDifference, ...]
    arms: Mapping[str, str]
    absent: Mapping[str, str]
    quantities: Mapping[str, Quantity]
    conditions: Mapping[str, Condition]
    printed: Mapping[Cell, Printed]
    claims: tuple[Claim, ...]
    conclusions: tuple[Conclusion, ...] = ()
    parts: Mapping[str, PartTable] = field(default_factory=dict)

    def as_in(self, study: str) -> ClaimsFile:
        """Return the claims with the names that arms, profiles and topologies have in the study, and those that it can test."""
        part = self.parts.get(study)
        if part is None:
            return self
        conditions = {
            name: replace(
                each,
                profile=part.profiles.get(name, each.profile),
                topology=part.topologies.get(name, each.topology),
            )
            for name, each in self.conditions.items()
        }
        called = {self.arms[arm]: name for arm, name in part.arms.items() if arm in self.arms}
        differences = tuple(
            replace(each, arms=tuple(called.get(arm, arm) for arm in each.arms)) for each in self.differences
        )
        arms = {**self.arms, **part.arms}
        claims = tuple(replace(each, untestable="") if study in each.studies else each for each in self.claims)
        return replace(self, arms=arms, conditions=conditions, differences=differences, claims=claims)

    @property
    def title(self) -> str:
        """The source's authors, year and title."""
        return self.source.short

    def describe(self, cell: Cell) -> str:
        """Return a cell in the words of the file's titles, such as "WireGuard, one TCP stream, 1 % of loss"."""
        return f"{cell.arm}, {self.quantities[cell.quantity].title}, {self.conditions[cell.condition].title}"

    def workload(self, cell: Cell, planned: Collection[str]) -> str:
        """Return which workload of a run repeats the cell; `planned`: the names of all that it has."""
        usual = self.quantities[cell.quantity].workload
        longer = self.conditions[cell.condition].workloads.get(usual, "")
        return longer if longer in planned else usual


@dataclass(frozen=True, slots=True)
class CellValues:
    """The values of one cell by block (or by run, where runs are not paired), in the source's unit.

    `counted`: if the values are shares of trials (in per cent), how many trials succeeded, and of how many; else None.
    Such a share has an exact interval.
    """

    values: Mapping[int, float] = field(default_factory=dict)
    counted: tuple[int, int] | None = None


class Values(Protocol):
    """The interface of all sources of values: a run, several machines, the printed values, or raw data.

    `paired`: values of one block belong together. `single`: claims are judged by the values as they are, without
    intervals. `measured_here`: whether a run of this laboratory gave the values, and not the source itself or one who
    repeated it by hand. `units`: which machine each block ran on (from the block to the machine's index), if intervals
    are over machines; {} if they are over blocks.
    """

    paired: bool
    single: bool
    measured_here: bool
    units: Mapping[int, int]

    def of(self, cell: Cell) -> CellValues | None:
        """Return the values of a cell, in the source's unit; None if there are none."""

    def obstacle(self, cells: Mapping[Cell, int], scale: str, conservative: Collection[Cell] = ()) -> str:
        """Return the reason why these cells cannot be compared with the published ones; "" if they can.

        `cells`: the cells with the power of each in the ratio, or its sign in the difference. `scale`: "ratio" or
        "difference".
        `conservative`: cells whose lower values would speak against the claim. So the claim can still hold if this
        machine's processor lowers these values, and such a limit is not an obstacle.
        """


@dataclass(frozen=True, slots=True)
class Effect:
    """A statement's estimate with the ends of its interval, and whether the statement holds.

    `estimate`, `low`, `high`: a ratio, or in the source's unit; `low` and `high` are None if there is no interval.
    `count`: the number of blocks, or of machines if the interval is over machines (if runs are not paired: the smallest
    number of runs of a cell). `blocks`: how large `count` must be in all to decide whether the statement holds, if
    estimate and spread stay the same; None if this is decided, if it takes more than `judging.MOST_BLOCKS`, or if an
    interval is missing.
    """

    statement: Statement
    estimate: float
    low: float | None
    high: float | None
    count: int
    outcome: ClaimOutcome
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a claim, with the effects of its statements, or the reason why it was not tested.

    `tau`: Kendall's tau of a claimed order, and the ends of its interval; None without an order of three cells or more.
    `despite`: which value this machine's processor limited, if the claim holds all the same; else "". `differences`: which
    of `Verdicts.differences` may be behind the verdict, or decide figures so that it is not tested, by their numbers from 1
    on. `effects`: of a claim that is not testable those that were measured all the same, without a verdict. `unsteady`:
    the claim's cells whose windows were not stationary (`analyse.steady`), as text.
    """

    claim: Claim
    outcome: ClaimOutcome
    effects: tuple[Effect, ...] = ()
    reason: str = ""
    tau: tuple[float, float, float] | None = None
    despite: str = ""
    differences: tuple[int, ...] = ()
    unsteady: tuple[str, ...] = ()
