"""What the analysis says, as frozen data: cells with intervals and verdicts, the A/A judgement, ranks, ceilings.

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
"""`reference`: this is direct. `better`, `worse`: different. `equal`: shown to lie within a stated margin (`margins`).
`undecided`: neither is shown. `failed`: attempts, but none succeeded. `void`: attempts, and every one measured something
other than it says. `not run`: no attempt yet. `left out`: the study's design does not have it."""

JUDGED: tuple[Verdict, ...] = ("better", "worse", "equal", "undecided")
"""The verdicts on an arm that was compared with direct in enough blocks."""

Doubt = Literal["zeros", "mostly zero", "far off"]
"""Why a comparison gives a median and not a mean: a side of a ratio is zero in some block, a quarter of the differences or more are zero,
or some block lies far from the others (`robust`)."""

Ceiling = Literal["link", "near the link", "load", "lab"]
"""What held a throughput down other than the arm: the link's rate, nearly so, the load that was offered, or what generator
and lab can do at all, which is what the bare link carries where nothing is shaped."""

Standing = Literal["agrees", "differs", "not judged"]

RELIABLE = 0.9
"""The share of an arm's trials that must succeed: an arm that fails more often than once in ten is unreliable, however
fast it is when it works."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The conditions under which arms are compared: a cell without its arm."""

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
    """`count` of `total`, with Wilson's 95 % interval of the rate behind it; all three are 0 to 1 except the counts."""

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
    """A metric's value in one block, in the metric's unit (the mean where a block holds several good attempts)."""

    block: int
    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """`arm` against `against`: the effect in each block that has both, their mean, its interval and its test.

    `estimate` is the geometric mean of ratios or the mean of differences, None without a block that has both; where a
    `doubt` says that a mean misleads, it is the median, with the exact interval that signs give. A ratio may be 0, or
    infinite where `against` is zero; `zeros` counts such blocks of either arm.
    `p` and `q` (corrected) are None where blocks are too few for a test. `threshold` is the smallest effect that
    counts, as a ratio above 1 or a difference above 0. `differs`: q is below 5 % and the effect is beyond the threshold;
    `equal`: the 92 % interval of the mean lies within the margin (never both).
    `order` is the effect that was tested on the scale on which effects add up: the mean, and with zeros the log of the ratio
    of both means. `left_out` are the least and largest estimate without one block. `detectable`: see `analyse.detectable`.
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
    doubtful: int = 0  # blocks that make the doubt


@dataclass(frozen=True, slots=True)
class MetricCell:
    """One arm in one setting by one metric: its values by block, and how it compares with direct."""

    arm: str
    setting: Scenario
    metric: MetricInfo
    planned: int
    success: SuccessShare
    values: tuple[BlockValue, ...]
    spread: Spread | None
    against_direct: Comparison | None
    verdict: Verdict
    ceiling: Ceiling | None = None
    void: int = 0  # trials without a value through the laboratory's fault
    good: GoodAlone | None = None
    bounds: Bounds | None = None
    unreliable: bool = False  # fewer than `RELIABLE` of the trials that say something of the arm succeeded

    @property
    def zeros(self) -> int:
        """Blocks in which a value that is compared by its ratio was zero."""
        return sum(value.value <= 0 for value in self.values) if self.metric.compare == "ratio" else 0


@dataclass(frozen=True, slots=True)
class GoodAlone:
    """What a cell says by good trials alone, where others were disturbed: blocks, values, how it compares with direct.

    `differs`: the good trials and all usable ones disagree: either estimate is outside of the other's interval.
    """

    blocks: int
    spread: Spread | None
    against_direct: Comparison | None
    differs: bool


@dataclass(frozen=True, slots=True)
class AAPair:
    """Two names of one arm, compared by one metric (A/A): `noise` is the smallest effect that this pair could have shown.

    It has the form of an effect (1.02: two per cent; 0.1: a tenth of the unit); None with too few blocks.
    """

    comparison: Comparison
    standing: Standing
    noise: float | None


@dataclass(frozen=True, slots=True)
class AAResult:
    """The A/A judgement over all twins; nothing is ranked unless it agrees."""

    standing: Standing
    twins: tuple[AAPair, ...]
    explanation: str


@dataclass(frozen=True, slots=True)
class RankRange:
    """An arm's rank as a range: from one more than the arms shown to be better, to all but those shown to be worse."""

    arm: str
    first: int
    last: int
    unreliable: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rank ranges of all arms but direct, best first, in one scenario by one metric."""

    setting: Scenario
    metric: str
    places: tuple[RankRange, ...]


@dataclass(frozen=True, slots=True)
class LinkShare:
    """How much the bare link reaches of what the shaped rate carries in full frames: both in bit/s, `share` their ratio."""

    setting: Scenario
    metric: str
    rate: int
    direct: float
    share: float
    fills: float  # the share that is asked of direct
    offered: float | None  # bit/s that the workload offers; None when it takes all it gets


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a workload's generator reaches on the bare link that is not shaped, in the metric's unit."""

    setting: Scenario
    metric: MetricInfo
    direct: float


What = Literal["sender's core", "receiver's core", "loss", "window", "link", "load", "generator", "emulator", "unknown"]

PROCESSOR = frozenset({"sender's core", "receiver's core"})
"""The bottlenecks that another machine changes."""


BY_ITS_TCP = "inside the VPN, whose own TCP was slower"
"""Where packets were lost that a VPN took in and its transfer by TCP had no room for, while its core had rest."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What bound a trial, or most trials of a cell (`count` of `total`); `place` is where packets were lost, `why` the figures."""

    what: What
    place: str = ""
    why: str = ""
    count: int = 1
    total: int = 1

    @property
    def processor(self) -> bool:
        """Whether a faster processor would have carried more: a core, or a buffer that its program served too late."""
        return self.what in PROCESSOR or (self.what == "loss" and "link" not in self.place and self.place != BY_ITS_TCP)

    @property
    def text(self) -> str:
        """In a few words: `the receiver's core`, `loss: the link's queue`."""
        words = {"loss": "loss", "unknown": "unknown"}.get(self.what, f"the {self.what}")
        return f"{words}: {self.place}" if self.place else words


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """An arm over all its trials; `first_packet` in seconds, until both directions had answered.

    `success` is of the trials that say something of the arm; `void` are those that the laboratory has spoilt.
    """

    arm: str
    success: SuccessShare
    first_packet: Spread | None
    void: int = 0


@dataclass(frozen=True, slots=True)
class VoidRate:
    """How many of an arm's attempts the laboratory spoilt, and how many of all other arms'; `q` is Fisher's, corrected."""

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
    """A condition that the whole study must meet, and whether it does; `passed` None: nothing could show it.

    `judged` False: a study of this kind shows it, and this one is too small, which does not pass. `applies` False: the study has
    nothing that the condition is about.
    """

    name: str
    passed: bool | None
    explanation: str
    judged: bool = True
    applies: bool = True

    @property
    def standing(self) -> GateStanding:
        """In words, for a reader."""
        if not self.applies:
            return "not applicable"
        if self.passed is None or not self.judged:
            return "not judged"
        return "passed" if self.passed else "not passed"


@dataclass(frozen=True)
class Analysis:
    """Everything a report says; `reference` is the arm that is direct, None when the study has none.

    `trials` holds the attempt that counts of each trial; `failures` are those without a result, void ones included;
    `repeated` the attempts that a later one has replaced; `whole` the blocks of each setting that lack nothing; `bound_by` what bound an arm in a
    setting, where that was watched.
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
        """Trials that the laboratory has spoilt for good."""
        return tuple(row for row in self.failures if row.outcome == "void")

    @property
    def failed(self) -> tuple[TrialRow, ...]:
        """Trials in which the VPN, or the workload over it, failed; that a VPN found no path is a result where that is asked."""
        asked = {use.name for use in self.results.plan.workloads if use.workload == TRAVERSAL}
        return tuple(
            row
            for row in self.failures
            if row.outcome != "void" and not (row.workload in asked and row.reason == _NO_PATH)
        )

    @property
    def paths_only(self) -> bool:
        """Whether nothing is asked but which path is found, so that nothing is ranked."""
        return all(use.workload == TRAVERSAL for use in self.results.plan.workloads)

    @cached_property
    def _by_metric(self) -> Mapping[tuple[Scenario, str], dict[str, MetricCell]]:
        found: dict[tuple[Scenario, str], dict[str, MetricCell]] = {}
        for cell in self.cells:
            found.setdefault((cell.setting, cell.metric.name), {})[cell.arm] = cell
        return found

    def cell(self, arm: str, setting: Scenario, metric: str) -> MetricCell:
        """The cell of that arm, setting and metric; KeyError when the plan has none."""
        return self._by_metric[setting, metric][arm]

    def cells_of(self, setting: Scenario, metric: str) -> tuple[MetricCell, ...]:
        """The cells of one metric in one setting, in the order of the plan's arms; none when the plan has none."""
        return tuple(self._by_metric.get((setting, metric), {}).values())

    def settings(self) -> tuple[Scenario, ...]:
        """All settings of which something is planned, in the order of the plan."""
        return tuple(dict.fromkeys(cell.setting for cell in self.cells if cell.verdict != "left out"))
