"""Compares what netem did to numbered probes with what the emulator's model does to the same ones.

The model is run with many seeds on the arrival times that netem met, so its figures have a distribution. netem is one
more draw from it if the model is right: each of its figures must then lie in the prediction interval of the model's.
That holds for bursts too, where a binomial interval would be too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from vm.settings import Setting

FAMILY = 0.01  # probability that any of all comparisons of a run fails though the model is right
STALL_US = 5000.0  # once in a setting the guest's kernel may be busy for so long with something else (seen: 1 ms)


@dataclass(frozen=True)
class Probes:
    """Numbered probes: when each was offered, and which left when, in the order of leaving; ns of one clock."""

    arrived: NDArray[np.int64]
    number: NDArray[np.int64]
    left: NDArray[np.int64]
    damaged: int

    @classmethod
    def read(cls, found: Mapping[str, Any], arrived_ns: Sequence[int] | NDArray[np.int64]) -> Probes:
        """From what the guest's script or the emulator's example wrote."""
        arrived, number, left = (
            np.asarray(column, dtype=np.int64) for column in (arrived_ns, found["number"], found["left_ns"])
        )
        return cls(arrived, number, left, len(found["damaged"]))

    def delays_us(self) -> NDArray[np.float64]:
        """Of every packet that left, copies included, in the order of leaving."""
        return (self.left - self.arrived[self.number]) / 1e3


def lost(probes: Probes) -> float:
    return float(len(probes.arrived) - len(np.unique(probes.number)))


def loss_runs(probes: Probes) -> float:
    """How many runs of consecutive losses there are: with the losses, the mean length of a burst."""
    gone = np.ones(len(probes.arrived) + 1, dtype=bool)
    gone[-1] = False
    gone[probes.number] = False
    return float(np.count_nonzero(gone[:-1] & ~gone[1:]))


def duplicates(probes: Probes) -> float:
    return float(len(probes.number) - len(np.unique(probes.number)))


def damaged(probes: Probes) -> float:
    return float(probes.damaged)


def reordered(probes: Probes) -> float:
    """Packets that RFC 4737 calls reordered: a number below one that has come before; copies are set aside."""
    _, first = np.unique(probes.number, return_index=True)
    order = probes.number[np.sort(first)]
    return float(np.count_nonzero(order < np.maximum.accumulate(order))) if len(order) else 0.0


def delay_mean(probes: Probes) -> float:
    return float(np.mean(probes.delays_us()))


def delay_deviation(probes: Probes) -> float:
    return float(np.std(probes.delays_us()))


def delay_lag_1(probes: Probes) -> float:
    """Correlation of the delays of packets whose numbers follow each other; 0 where delays hardly differ."""
    order = np.argsort(probes.number, kind="stable")
    number, delay = probes.number[order], probes.delays_us()[order]
    follows = np.diff(number) == 1
    before, after = delay[:-1][follows], delay[1:][follows]
    if len(before) < 3 or min(np.std(before), np.std(after)) < 20.0:
        return 0.0
    return float(np.corrcoef(before, after)[0, 1])


COUNTS: Mapping[str, Callable[[Probes], float]] = {
    "lost": lost,
    "loss runs": loss_runs,
    "duplicates": duplicates,
    "damaged": damaged,
    "reordered": reordered,
}
DELAYS: Mapping[str, Callable[[Probes], float]] = {
    "delay mean": delay_mean,
    "delay deviation": delay_deviation,
    "delay lag-1": delay_lag_1,
}

_RARE = 50  # a count below this is not normal enough; the binomial interval holds it


@dataclass(frozen=True)
class Row:
    """One figure of one setting: netem's, the model's mean and deviation over its seeds, and where netem's may lie."""

    setting: str
    asked: str
    figure: str
    netem: float
    model: float
    deviation: float
    low: float
    high: float

    @property
    def agrees(self) -> bool:
        return self.low <= self.netem <= self.high


def comparisons(settings: Sequence[Setting]) -> int:
    """How many comparisons a run makes, for Bonferroni's correction."""
    return sum(len(COUNTS) + len(DELAYS) + setting.ks for setting in settings)


def compare(setting: Setting, netem: Probes, model: Sequence[Probes], level: float, late_us: float) -> list[Row]:
    """All figures of a setting.

    `level`: probability of a false alarm in one comparison. `late_us`: by how much the guest's timers are late.
    """
    rows = []

    def add(figure: str, found: float, draws: NDArray[np.float64], low: float, high: float) -> None:
        deviation = float(draws.std(ddof=1))
        rows.append(Row(setting.name, setting.netem, figure, found, float(draws.mean()), deviation, low, high))

    for name, count in COUNTS.items():
        draws = np.array([count(probes) for probes in model])
        low, high = predicted(draws, level)
        if 0 < draws.mean() < _RARE:
            rare = stats.binom(len(netem.arrived), draws.mean() / len(netem.arrived)).interval(1 - level)
            low, high = min(low, float(rare[0])), max(high, float(rare[1]))
        add(name, count(netem), draws, low - setting.slack, high + setting.slack)
    stalled, mean_slack, variance_slack = stall(setting)
    for name, figure in DELAYS.items():
        draws = np.array([figure(probes) for probes in model])
        low, high = predicted(draws, level)
        if name == "delay mean":
            low, high = low - late_us, high + late_us + mean_slack
        elif name == "delay deviation":
            low, high = low - late_us, float(np.hypot(high + late_us, np.sqrt(variance_slack)))
        else:
            low, high = low - 0.005, high + 0.005
        add(name, figure(netem), draws, low, high)
    if setting.ks:
        pooled = np.sort(np.concatenate([probes.delays_us() for probes in model]))
        observed = netem.delays_us()
        distances = np.array([ks_distance(probes.delays_us(), pooled, late_us) for probes in model[:20]])
        bound = ks_bound(len(observed), len(pooled), level) + stalled
        add("delay KS", ks_distance(observed, pooled, late_us), distances, 0, bound)
    return rows


def stall(setting: Setting) -> tuple[float, float, float]:
    """What one stall of the guest can do to a setting's delays: share of packets that are late, by how much (us) the
    mean grows and by how much (us²) the variance. Packets that are due during it leave at its end.
    """
    share = STALL_US / (setting.interval_us * setting.count)
    return share, share * STALL_US / 2, share * STALL_US**2 / 3


def predicted(draws: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Where one more draw lies with probability 1 - level, if draws are about normal (Student's t)."""
    spread = float(draws.std(ddof=1)) * np.sqrt(1 + 1 / len(draws))
    half = float(stats.t.ppf(1 - level / 2, len(draws) - 1)) * spread
    return float(draws.mean()) - half, float(draws.mean()) + half


def ks_distance(observed: NDArray[np.float64], expected: NDArray[np.float64], late: float) -> float:
    """The largest distance of two distribution functions, where `observed` may be late by 0 to `late`.

    `expected` is sorted. Without lateness it is the two-sample statistic of Kolmogorov and Smirnov.
    """
    observed = np.sort(observed)

    def share(sample: NDArray[np.float64], at: NDArray[np.float64], side: Literal["left", "right"]) -> Any:
        return np.searchsorted(sample, at, side=side) / len(sample)

    # Late observations move their function F to the right: the expected one may lie between F(x) and F(x + late). The
    # distances are largest where F steps: at a step for F above the expected function, just before it for F below.
    above = np.max(share(observed, observed, "right") - share(expected, observed, "right"))
    below = np.max(share(expected, observed - late, "left") - share(observed, observed, "left"))
    return float(max(above, below, 0.0))


def ks_bound(observed: int, expected: int, level: float) -> float:
    """The distance that two samples of one distribution exceed with this probability (Smirnov's asymptotic form)."""
    return float(np.sqrt(-np.log(level / 2) / 2 * (1 / observed + 1 / expected)))


def table(rows: Sequence[Row]) -> str:
    """What was asked, what netem did, what the model does; figures that are zero on both sides are left out."""
    lines = [f"{'asked of netem':<62} {'figure':<16} {'netem':>10} {'model':>10} {'±':>8}  may lie in"]
    before = ""
    for row in rows:
        if row.netem == row.model == 0 and row.deviation == 0:
            continue
        asked, before = ("" if row.asked == before else row.asked), row.asked
        lines.append(
            f"{asked:<62} {row.figure:<16} {_short(row.netem):>10} {_short(row.model):>10} {_short(row.deviation):>8}  "
            f"{_short(row.low)} .. {_short(row.high)}{'' if row.agrees else '   DIFFERS'}"
        )
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.1f}"
