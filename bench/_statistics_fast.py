"""The decisions of `analyse.analysis` for many studies at once: the same arithmetic on arrays, held against `judge` itself.

Only what needs all pairs of all arms is done here. Thresholds come from `analyse.aa_test`, intervals and "equal" from
`analyse.pairing`, and `agree` compares the decisions with those of `judge` on whole results.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from _statistics_worlds import Array, Drawn, World
from numpy.typing import NDArray

from tunnelmark.analyse import judge
from tunnelmark.analyse.aa_test import judge_twins, noise
from tunnelmark.analyse.model import BlockValue, Scenario
from tunnelmark.analyse.pairing import BlockValues, additive
from tunnelmark.record.results import (
    ArmInfo,
    MetricInfo,
    PlanInfo,
    ProfileInfo,
    Results,
    SampleRow,
    Session,
    TopologyInfo,
    TrialRow,
    WorkloadInfo,
)

SETTING = Scenario("link", "pair", "work")


@dataclass(frozen=True)
class Decided:
    """By study, metric and pair: whether it was called different, and the sign of the effect that was tested.

    `apart`: by study, whether twins were held to be different.
    """

    differs: NDArray[np.bool_]
    apart: NDArray[np.bool_]
    sign: Array
    first: NDArray[np.intp]
    second: NDArray[np.intp]


def plan_of(world: World, drawn: Drawn) -> PlanInfo:
    """The plan of a world's studies, with one workload that yields all metrics."""
    vpns = [f"vpn{number:02d}" for number in range(world.vpns)]
    arms = [ArmInfo("direct", "direct", "", {}), ArmInfo("direct-again", "direct", "", {}, "direct")]
    arms += [ArmInfo(name, name, "", {}) for name in vpns] + [ArmInfo("vpn-again", vpns[0], "", {}, vpns[0])]
    metrics = tuple(
        MetricInfo(f"m{number}", "bit/s", "", "higher", "ratio", primary=True)
        if ratio
        else MetricInfo(f"m{number}", "%", "", "lower", "difference", primary=True)
        for number, ratio in enumerate(drawn.ratio)
    )
    return PlanInfo(
        study="bars",
        title="",
        description="",
        seed=1,
        blocks=world.blocks,
        arms=tuple(arms),
        profiles=(ProfileInfo("link", "", "", None, None),),
        topologies=(TopologyInfo("pair", "", ("a", "b"), {}),),
        workloads=(WorkloadInfo("work", "work", "", {}, metrics, 1.0, 0.0),),
        trials=(),
    )


def decide(world: World, drawn: Drawn) -> Decided:
    """All decisions of all studies."""
    from scipy.special import stdtr

    plan = plan_of(world, drawn)
    arms = len(plan.arms)
    vpns = range(2, world.vpns + 2)
    pairs = [(arm, 0) for arm in (*vpns, arms - 1)] + list(combinations(vpns, 2))
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    p_values, beyond, signs = [], [], []
    least, apart = twins_of(plan, drawn)
    for number, values in enumerate(drawn.values):
        a, b = values[:, :, first], values[:, :, second]
        both = ~(np.isnan(a) | np.isnan(b))
        raw = np.where(both, a - b, np.nan)
        zero: NDArray[np.bool_] = np.any(both & ((a <= 0) | (b <= 0)), axis=1) & drawn.ratio[number]
        tested = raw
        if drawn.ratio[number]:
            with np.errstate(divide="ignore", invalid="ignore"):
                tested = np.where(zero[:, None], raw, np.log(a) - np.log(b))
        count = both.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.nansum(tested, axis=1) / count
            square = np.nansum((tested - mean[:, None]) ** 2, axis=1) / (count - 1)
            t = np.abs(mean) / np.sqrt(square / count)
            largest = np.nanmax(np.where(both, np.abs(tested), 0.0), axis=1)
            p = 2 * stdtr(np.maximum(count - 1, 1), -t)
            p = np.where(np.sqrt(square) <= 1e-12 * np.maximum(largest, 1e-12), largest <= 1e-12, p)
            means = [np.nansum(np.where(both, side, 0.0), axis=1) for side in (a, b)]
            order = np.where(zero, np.log(means[0]) - np.log(means[1]), mean)
        order = np.where(np.isnan(order), 0.0, order)  # both arms carried nothing: alike
        p_values.append(np.where(count >= 3, p, np.nan))
        beyond.append(np.abs(order) > least[:, number, None])
        signs.append(np.sign(order) * (1 if drawn.ratio[number] else -1))
    differs = (holm(np.stack(p_values, axis=1)) < 0.05) & np.stack(beyond, axis=1)
    return Decided(differs, apart, np.stack(signs, axis=1), first, second)


def holm(p_values: Array) -> Array:
    """Holm's corrected p values over all but the first axis; NaN is no question."""
    flat = p_values.reshape(len(p_values), -1)
    place = np.argsort(flat, axis=1)  # NaN stands last
    ranked = np.take_along_axis(flat, place, axis=1)
    asked = (~np.isnan(flat)).sum(axis=1, keepdims=True)
    steps = np.maximum.accumulate(
        np.minimum(1.0, np.nan_to_num(ranked, nan=1.0) * (asked - np.arange(flat.shape[1]))), axis=1
    )
    found = np.empty_like(flat)
    np.put_along_axis(found, place, np.where(np.isnan(ranked), 1.0, steps), axis=1)
    return found.reshape(p_values.shape)


def twins_of(plan: PlanInfo, drawn: Drawn) -> tuple[Array, NDArray[np.bool_]]:
    """The project's own judgement of the twins: by study and metric the smallest effect that counts (on the scale on which
    effects add up), and by study whether it held twins to be different.
    """
    twins = [index for index, arm in enumerate(plan.arms) if arm.same_as is not None]
    names = {arm.name: index for index, arm in enumerate(plan.arms)}
    needed = sorted({*twins, *(names[str(plan.arms[index].same_as)] for index in twins)})
    metrics = plan.workloads[0].metrics
    least = np.empty((len(drawn.values[0]), len(metrics)))
    apart = np.zeros(len(least), dtype=bool)
    for study in range(len(least)):
        values = values_of(plan, drawn, study, list(range(len(metrics))), needed)
        same = judge_twins(plan, [SETTING], {f"work/{metric.name}": metric for metric in metrics}, values)
        apart[study] = same.standing == "differs"
        for number, metric in enumerate(metrics):
            least[study, number] = additive(metric, noise(same, SETTING, metric))
    return least, apart


def values_of(plan: PlanInfo, drawn: Drawn, study: int, numbers: list[int], arms: list[int]) -> BlockValues:
    """One study's values of some metrics and arms, as the analysis takes them."""
    return {
        (plan.arms[arm].name, SETTING, f"m{number}"): tuple(
            BlockValue(block + 1, float(value))
            for block, value in enumerate(drawn.values[number][study, :, arm])
            if not np.isnan(value)
        )
        for number in numbers
        for arm in arms
    }


def results_of(world: World, drawn: Drawn, study: int) -> Results:
    """One study as results that could have been read from a folder."""
    plan = plan_of(world, drawn)
    rows: list[TrialRow] = []
    for block in range(world.blocks):
        for index, arm in enumerate(plan.arms):
            values = [float(found[study, block, index]) for found in drawn.values]
            failed = bool(np.isnan(values).any())
            rows.append(
                TrialRow(
                    trial=f"{block + 1:03d}.{arm.name}",
                    position=len(rows),
                    block=block + 1,
                    arm=arm.name,
                    profile="link",
                    topology="pair",
                    workload="work",
                    link="a>b",
                    outcome="failed" if failed else "ok",
                    started=1e9 + len(rows),
                    phases={"measure": 1.0},
                    samples=() if failed else tuple(SampleRow(f"m{n}", "", value) for n, value in enumerate(values)),
                )
            )
    return Results(Path("bars"), plan, {}, tuple(rows), (Session(1e9, 1e4),))


def agree(world: World, drawn: Drawn, decided: Decided, study: int) -> list[str]:
    """In what `judge` decides otherwise on one study's results; nothing if it does not."""
    analysis = judge(results_of(world, drawn, study))
    names = [arm.name for arm in analysis.results.plan.arms]
    mine = {
        (names[i], names[j], f"m{metric}"): bool(decided.differs[study, metric, pair])
        for pair, (i, j) in enumerate(zip(decided.first, decided.second, strict=True))
        for metric in range(len(drawn.values))
    }
    theirs = {(pair.arm, pair.against, pair.metric): pair.differs for pair in analysis.pairs}
    return [
        f"{world.name}: {key} {theirs.get(key)}, not {value}" for key, value in mine.items() if theirs.get(key) != value
    ]
