"""The results of the analysis as frozen data: cells with intervals and verdicts, the A/A judgement, ranks, ceilings.

Two arms are compared inside one `Scenario` by one metric, block by block. Their *effect* in a block is a ratio
(a pure number) or a difference (in the metric's unit), whichever the metric declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tunnelmark.analyse.missing import Bounds
from tunnelmark.analyse.wall_time import Disturbance, WallTime
from tunnelmark.errors import NotReady
from tunnelmark.plan.compose import TRAVERSAL
from tunnelmark.record.results import MetricInfo, Results, TrialRow

Verdict = Literal[
    "reference", "better", "worse", "equal", "undecided", "too few blocks", "failed", "void", "not run", "left out"
]
"""`reference`: the arm is direct. `better`, `worse`: different. `equal`: shown to be within a margin (`margins`).
`undecided`: neither is shown. `failed`: no attempt succeeded. `void`: the laboratory spoilt every attempt.
`not run`: no attempt yet. `left out`: the study's design leaves the cell out."""

JUDGED: tuple[Verdict, ...] = ("better", "worse", "equal", "undecided")
"""The verdicts on an arm that was compared with direct in enough blocks."""

Doubt = Literal["zeros", "mostly zero", "far off"]
"""Why a comparison gives a median and not a mean (see `robust`). `zeros`: in some block a side of the ratio is zero.
`mostly zero`: at least a quarter of the differences are zero. `far off`: some block lies far from the others."""

Ceiling = Literal["link", "near the link", "load", "lab"]
"""What limited a throughput, if not the arm. `link`, `near the link`: the link's rate, or almost. `load`: the load that
the workload offers. `lab`: the most that generator and lab can do, which is what a bare, unshaped link carries."""

Standing = Literal["agrees", "differs", "not judged"]

RELIABLE = 0.9
"""The share of an arm's trials that must succeed. An arm that fails in more than one trial of ten is unreliable,
however fast it is when it works."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A profile, a topology and a workload, by their names: arms are compared within one scenario."""

    profile: str
    topology: str
    workload: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval, in the effect's own terms (ratio, or difference in the metric's unit)."""

    low: float
    high: float
    method: Literal["bootstrap", "student", "sign"]


@dataclass(frozen=True, slots=True)
class SuccessShare:
    """`count` of `total` succeeded; `low` and `high` are Wilson's 95 % interval of the success rate, from 0 to 1."""

    count: int
    total: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values with the smallest and the largest, in the unit of the values."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BlockValue:
    """A metric's value in one block, in the metric's unit; the mean if a block holds several values."""

    block: int
    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """`arm` compared with `against`: the effect in each block that has both, their mean, its interval and its test.

    `effects`: one for each of `blocks`. A ratio may be 0, or infinite if `against` is zero.
    `estimate`: the geometric mean of ratios, or the mean of differences; None if no block has both arms. If there is a
    `doubt`, a mean would mislead: the estimate is then the median, and `interval` is the exact sign interval.
    `p`, `q`: the p value before and after correction; None if there are too few blocks for a test.
    `threshold`: the smallest effect that counts, as a ratio above 1 or a difference above 0.
    `differs`: q is below 5 % and the effect is beyond `threshold`. `equal`: the 92 % interval of the mean (two
    one-sided tests at 4 %) lies within the margin. At most one of both is true.
    `order`: the mean of the effects as log ratios or differences; with zeros, the log ratio of both arms' means.
    `zeros`: in how many blocks `arm` is zero, and in how many `against`. `detectable`: see `analyse.detectable`.
    `left_out`: the smallest and the largest estimate when one block is left out.
    """

    arm: str
    against: str
    setting: Scenario
    metric: str
    blocks: tuple[int, ...]
    effects: tuple[float, ...]
    estimate: float | None
    interval: Interval | None
    p: float | None
    q: float | None
    threshold: float
    differs: bool
    equal: bool = False
    order: float | None = None
    doubt: Doubt | None = None
    zeros: tuple[int, int] = (0, 0)
    left_out: tuple[float, float] | None = None
    detectable: float | None = None
    doubtful: int = 0  # the number of blocks that cause the doubt


@dataclass(frozen=True, slots=True)
class MetricCell:
    """One metric of one arm in one setting: its values by block, and how the arm compares with direct."""

    arm: str
    setting: Scenario
    metric: MetricInfo
    planned: int  # blocks of the study
    success: SuccessShare
    values: tuple[BlockValue, ...]
    spread: Spread | None
    against_direct: Comparison | None
    verdict: Verdict
    ceiling: Ceiling | None = None
    void: int = 0  # trials without a value, by the laboratory's fault
    good: GoodAlone | None = None
    bounds: Bounds | None = None
    unreliable: bool = False  # of the trials that are not void, a smaller share than `RELIABLE` succeeded

    @property
    def zeros(self) -> int:
        """The number of blocks in which the value was zero; 0 if the metric is compared by differences."""
        return sum(value.value <= 0 for value in self.values) if self.metric.compare == "ratio" else 0


@dataclass(frozen=True, slots=True)
class GoodAlone:
    """A cell's result from its good trials alone, if others were disturbed: blocks, values, comparison with direct.

    `differs`: good trials and all usable trials disagree. Each estimate lies outside of the other's interval, and the
    difference between them is not negligible (`margins.negligible`).
    """

    blocks: int
    spread: Spread | None
    against_direct: Comparison | None
    differs: bool


@dataclass(frozen=True, slots=True)
class AAPair:
    """Two names of one arm, compared by one metric (A/A test).

    `noise`: the smallest effect that this pair could have shown, as a ratio (1.02: two per cent) or a difference in the
    metric's unit; None if there are too few blocks, or zeros.
    """

    comparison: Comparison
    standing: Standing
    noise: float | None


@dataclass(frozen=True, slots=True)
class AAResult:
    """The A/A judgement over all pairs of twins; arms are ranked only if its `standing` is "agrees"."""

    standing: Standing
    twins: tuple[AAPair, ...]
    explanation: str


@dataclass(frozen=True, slots=True)
class RankRange:
    """The ranks that an arm may have: `first` follows the arms shown to be better, `last` precedes the worse ones."""

    arm: str
    first: int
    last: int
    unreliable: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rank ranges of the arms (without direct) by one metric in one scenario, the best arm first."""

    setting: Scenario
    metric: str
    places: tuple[RankRange, ...]


@dataclass(frozen=True, slots=True)
class LinkShare:
    """The share of a link that direct fills: `share` is `direct` / `rate`, both in bit/s of payload.

    `rate`: what the link's shaped rate carries in full frames. `direct`: the median that direct reaches.
    """

    setting: Scenario
    metric: str
    rate: int
    direct: float
    share: float
    fills: float  # the share that direct must reach
    offered: float | None  # bit/s that the workload offers; None if it sends as fast as it can


@dataclass(frozen=True, slots=True)
class Capacity:
    """The most that generator and lab can do: a workload's median on the bare, unshaped link, in the metric's unit."""

    setting: Scenario
    metric: MetricInfo
    direct: float


What = Literal["sender's core", "receiver's core", "loss", "window", "link", "load", "generator", "emulator", "unknown"]

PROCESSOR = frozenset({"sender's core", "receiver's core"})
"""The bottlenecks that a faster processor would move."""

BY_ITS_TCP = "inside the VPN, whose own TCP was slower"
VPN_BUFFER = "the VPN's receive buffer"
"""Two places of losses. `BY_ITS_TCP`: in a VPN that carries packets over TCP, if its TCP was the limit and its core was
not busy. `VPN_BUFFER`: in front of a VPN that emptied its buffer too late."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The limit of a trial, or of most trials of a cell (`count` of `total`).

    `place`: where packets were lost, if loss was the limit. `why`: the figures that show the limit. `lost`: by place, the
    share (0 to 1) of all lost packets; of a cell, the mean over its trials. `lost_by_trial`: the least and the largest.
    """

    what: What
    place: str = ""
    why: str = ""
    count: int = 1
    total: int = 1
    lost: Mapping[str, float] = field(default_factory=dict[str, float])
    lost_by_trial: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    @property
    def processor(self) -> bool:
        """Whether a faster processor would carry more: a core was busy, or a program emptied a buffer too late."""
        return self.what in PROCESSOR or (self.what == "loss" and "link" not in self.place and self.place != BY_ITS_TCP)

    @property
    def text(self) -> str:
        """The bottleneck in a few words, such as `the receiver's core` or `loss: the link's queue`."""
        words = {"loss": "loss", "unknown": "unknown"}.get(self.what, f"the {self.what}")
        return f"{words}: {self.place}" if self.place else words


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """An arm over all its trials.

    `success`: how many trials succeeded, of those that are not void. `void`: the trials that the laboratory spoilt.
    `first_packet`: over trials, seconds from the first daemon's start until pings were answered in both directions.
    """

    arm: str
    success: SuccessShare
    first_packet: Spread | None
    void: int = 0


@dataclass(frozen=True, slots=True)
class VoidRate:
    """The attempts of an arm that the laboratory spoilt (`void` of `attempts`), and those of all other arms.

    `q`: the p value of Fisher's exact test, corrected over arms. `unlike`: the two rates differ (q is below 5 %).
    """

    arm: str
    void: int
    attempts: int
    void_others: int
    attempts_others: int
    q: float
    unlike: bool


GateStanding = Literal["passed", "not passed", "not judged", "not applicable"]

_NO_PATH = NotReady("").kind  # no ping was answered in time


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that the whole study must meet, and whether it does.

    `passed`: None if no measurement could show whether the condition holds; such a gate does not fail. `applies`: False
    if the condition is about nothing in this study. `judged`: False if the study is too small to judge the condition,
    such as by its blocks or A/A pairs; `passed` is then False, so the gate fails.
    """

    name: str
    passed: bool | None
    explanation: str
    judged: bool = True
    applies: bool = True

    @property
    def standing(self) -> GateStanding:
        """The gate's result in words, for reports."""
        if not self.applies:
            return "not applicable"
        if self.passed is None or not self.judged:
            return "not judged"
        return "passed" if self.passed else "not passed"


@dataclass(frozen=True)
class Analysis:
    """The analysis of a run: all that a report says.

    `reference`: the name of the arm direct; None if the study has none. `missing`: planned trials that have not run.
    `trials`: the attempt that counts of each trial. `failures`: those of `trials` without a result, void ones included.
    `repeated`: all other attempts. `whole`: by setting, the number of blocks in which all trials ran and none is void,
    even by a primary metric. `bound_by`: what limited an arm in a setting, if the run watched it.
    """

    results: Results
    reference: str | None
    same: AAResult
    arms: tuple[ArmSummary, ...]
    cells: tuple[MetricCell, ...]
    pairs: tuple[Comparison, ...]
    rankings: tuple[Ranking, ...]
    link_shares: tuple[LinkShare, ...]
    failures: tuple[TrialRow, ...]
    missing: tuple[str, ...]
    wall: WallTime
    disturbed: tuple[Disturbance, ...]
    capacities: tuple[Capacity, ...] = ()
    trials: tuple[TrialRow, ...] = ()
    repeated: tuple[TrialRow, ...] = ()
    whole: Mapping[Scenario, int] = field(default_factory=dict)
    void_rates: tuple[VoidRate, ...] = ()
    bound_by: Mapping[tuple[str, Scenario], Bottleneck] = field(default_factory=dict)

    @property
    def void(self) -> tuple[TrialRow, ...]:
        """The trials of which the laboratory spoilt every attempt."""
        return tuple(row for row in self.failures if row.outcome == "void")

    @property
    def failed(self) -> tuple[TrialRow, ...]:
        """The trials in which the VPN, or the workload over it, failed.

        In the workload `traversal`, no path found is a result and not a failure.
        """
        asked = {use.name for use in self.results.plan.workloads if use.workload == TRAVERSAL}
        return tuple(
            row
            for row in self.failures
            if row.outcome != "void" and not (row.workload in asked and row.reason == _NO_PATH)
        )

    @property
    def paths_only(self) -> bool:
        """Whether the study asks only which path a VPN finds; such a study ranks nothing."""
        return all(use.workload == TRAVERSAL for use in self.results.plan.workloads)

    @cached_property
    def _by_metric(self) -> Mapping[tuple[Scenario, str], dict[str, MetricCell]]:
        found: dict[tuple[Scenario, str], dict[str, MetricCell]] = {}
        for cell in self.cells:
            found.setdefault((cell.setting, cell.metric.name), {})[cell.arm] = cell
        return found

    def cell(self, arm: str, setting: Scenario, metric: str) -> MetricCell:
        """Return the cell of an arm, a setting and a metric. Raises KeyError if the plan has no such cell."""
        return self._by_metric[setting, metric][arm]

    def cells_of(self, setting: Scenario, metric: str) -> tuple[MetricCell, ...]:
        """Return the cells of one metric in one setting, in the order of the plan's arms; () if the plan has none."""
        return tuple(self._by_metric.get((setting, metric), {}).values())

    def settings(self) -> tuple[Scenario, ...]:
        """Return all settings in which the study's design has at least one arm, in the order of the plan."""
        return tuple(dict.fromkeys(cell.setting for cell in self.cells if cell.verdict != "left out"))
