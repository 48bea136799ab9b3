"""Makes the whole analysis of a run from its results, with the A/A judgement first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from tunnelmark.analyse.aa_test import judge_twins, noise
from tunnelmark.analyse.arms import ranked, reference_of, spread, summaries
from tunnelmark.analyse.attempts import chosen, good, usable
from tunnelmark.analyse.bottleneck import bound_by
from tunnelmark.analyse.ceilings import capacities, ceiling_of, link_shares
from tunnelmark.analyse.good_trials import with_good_alone
from tunnelmark.analyse.intervals import level_of, share
from tunnelmark.analyse.link_gate import voided
from tunnelmark.analyse.missing import bounds
from tunnelmark.analyse.model import (
    RELIABLE,
    AAResult,
    Analysis,
    Capacity,
    Comparison,
    LinkShare,
    MetricCell,
    Scenario,
    Verdict,
)
from tunnelmark.analyse.pairing import BlockValues, compare, decide, is_planned, setting_of, values_by_block, verdict
from tunnelmark.analyse.ranks import rank
from tunnelmark.analyse.voids import void_rates
from tunnelmark.analyse.wall_time import disturbances, wall_time
from tunnelmark.record.results import MetricInfo, PlanInfo, Results, TrialRow


def judge(results: Results) -> Analysis:
    """Analyse the results of a run, finished or not. The same results always give the same analysis."""
    results = voided(results)
    plan = results.plan
    reference = reference_of(plan)
    metrics = {f"{use.name}/{metric.name}": metric for use in plan.workloads for metric in use.metrics}
    settings = [
        Scenario(profile.name, topology.name, use.name)
        for profile in plan.profiles
        for topology in plan.topologies
        for use in plan.workloads
    ]
    trials = chosen(results.trials)
    values = values_by_block(trials, _may(plan, usable))
    same = judge_twins(plan, settings, metrics, values, finished=results.finished)
    pairs = _pairs(plan, reference, settings, metrics, values, same)
    cells = _cells(plan, trials, reference, settings, pairs, values, same)
    shares = link_shares(plan, cells, reference)
    free = capacities(plan, cells, reference)
    cells = _with_ceilings(plan, cells, shares, free)
    disturbed = disturbances(trials)
    if disturbed:
        cells = with_good_alone(plan, cells, values_by_block(trials, _may(plan, good)), reference)
    counted = {id(row) for row in trials}
    ran = {row.trial for row in results.trials}
    return Analysis(
        results=results,
        reference=reference,
        same=same,
        arms=summaries((arm.name for arm in plan.arms), trials),
        cells=cells,
        pairs=pairs,
        rankings=rank([arm.name for arm in ranked(plan, reference)], cells, pairs, metrics)
        if same.standing == "agrees"
        else (),
        link_shares=shares,
        failures=tuple(row for row in trials if row.outcome != "ok"),
        missing=tuple(trial for trial in plan.trials if trial not in ran),
        wall=wall_time(results.sessions, results.trials),
        disturbed=disturbed,
        capacities=free,
        trials=trials,
        repeated=tuple(row for row in results.trials if id(row) not in counted),
        whole=_whole(plan, settings, trials),
        void_rates=void_rates((arm.name for arm in plan.arms), results.trials),
        bound_by=bound_by(plan, trials),
    )


def _may(plan: PlanInfo, rule: Callable[[TrialRow, MetricInfo], bool]) -> Callable[[TrialRow, str], bool]:
    """Return `rule` as a function of an attempt and a metric's name; True for a metric that no workload declares."""
    metrics = {(use.name, metric.name): metric for use in plan.workloads for metric in use.metrics}

    def may(row: TrialRow, name: str) -> bool:
        metric = metrics.get((row.workload, name))
        return metric is None or rule(row, metric)

    return may


def _whole(plan: PlanInfo, settings: Sequence[Scenario], trials: Sequence[TrialRow]) -> Mapping[Scenario, int]:
    """Return, for each setting of the design, in how many blocks each planned arm has an attempt that lacks nothing.

    An attempt lacks something if it is void, or if one of its primary metrics is.
    """
    arms = {setting: sum(is_planned(plan, setting, arm.name) for arm in plan.arms) for setting in settings}
    found: dict[tuple[Scenario, int], int] = {}
    for row in trials:
        if row.outcome != "void" and not row.wanting:
            key = setting_of(row), row.block
            found[key] = found.get(key, 0) + 1
    return {
        setting: sum(of == setting and count == arms[setting] for (of, _), count in found.items())
        for setting in settings
        if arms[setting]
    }


def _pairs(
    plan: PlanInfo,
    reference: str | None,
    settings: list[Scenario],
    metrics: Mapping[str, MetricInfo],
    values: BlockValues,
    same: AAResult,
) -> tuple[Comparison, ...]:
    """Compare every two arms by each primary metric, and every arm with direct by each other metric (see `asked`).

    All primary questions of the study are one family, so that any false difference among them is rare. The other
    metrics explain, and each is a family of its own.
    """
    level = level_of(plan.enough)
    families: dict[str, list[Comparison]] = {"": []}
    for key, metric in metrics.items():
        families.setdefault("" if metric.primary else key, []).extend(
            compare(arm, against, setting, metric, values, noise(same, setting, metric), level)
            for setting in settings
            if key == f"{setting.workload}/{metric.name}"
            for arm, against in asked(plan, reference, primary=metric.primary)
            if is_planned(plan, setting, arm, against)
        )
    return tuple(pair for family in families.values() for pair in decide(family, metrics, level))


def asked(plan: PlanInfo, reference: str | None, *, primary: bool) -> list[tuple[str, str]]:
    """Return the pairs of arms that are compared by primary metrics, or by all other metrics (`primary=False`).

    A pair has the arm first, and then the arm that it is compared with. By metrics that are not primary, every other
    arm is compared with direct, and there are no further pairs. By primary metrics, every other arm except direct's
    twins is compared with direct; the A/A judgement compares those twins. In addition, every two of the other arms are
    compared, in the order of the plan; second names of an arm (`same_as`), anchors and, next to VPNs, bare links are left
    out here. `reference`: the name of direct; if it is None, no arm is compared with direct.
    """
    others = [arm for arm in plan.arms if reference is not None and arm.name != reference]
    to_direct = [(arm.name, str(reference)) for arm in others if not (primary and arm.same_as == reference)]
    unique = [arm.name for arm in ranked(plan, reference)]
    return [*to_direct, *(combinations(unique, 2) if primary else [])]


def _cells(
    plan: PlanInfo,
    trials: Sequence[TrialRow],
    reference: str | None,
    settings: list[Scenario],
    pairs: tuple[Comparison, ...],
    values: BlockValues,
    same: AAResult,
) -> tuple[MetricCell, ...]:
    # A twin of direct is judged by the A/A judgement alone, wherever there is one.
    known = [*pairs, *(twins.comparison for twins in same.twins)]
    to_direct = {(pair.arm, pair.setting, pair.metric): pair for pair in known if pair.against == reference}
    attempts: dict[tuple[str, Scenario], list[TrialRow]] = {}
    for row in trials:
        attempts.setdefault((row.arm, setting_of(row)), []).append(row)
    workloads = {use.name: use for use in plan.workloads}
    cells = []
    for setting in settings:
        for metric in workloads[setting.workload].metrics:
            for arm in plan.arms:
                tried = attempts.get((arm.name, setting), [])
                outcomes = ["void" if _spoilt(row, metric) else row.outcome for row in tried]
                void = outcomes.count("void")
                found = values.get((arm.name, setting, metric.name), ())
                comparison = to_direct.get((arm.name, setting, metric.name))
                success = share(outcomes.count("ok"), len(outcomes) - void)
                cells.append(
                    MetricCell(
                        arm=arm.name,
                        setting=setting,
                        metric=metric,
                        planned=plan.blocks,
                        success=success,
                        values=found,
                        spread=spread([value.value for value in found]),
                        against_direct=comparison,
                        verdict=_verdict(arm.name == reference, outcomes, comparison, metric)
                        if is_planned(plan, setting, arm.name)
                        else "left out",
                        void=void,
                        bounds=bounds(comparison.effects, tried, plan.blocks) if comparison is not None else None,
                        unreliable=success.total > 0 and success.count < RELIABLE * success.total,
                    )
                )
    return tuple(cells)


def _spoilt(row: TrialRow, metric: MetricInfo) -> bool:
    return row.outcome == "void" or (row.outcome == "ok" and not usable(row, metric))


def _verdict(is_reference: bool, outcomes: Sequence[str], comparison: Comparison | None, metric: MetricInfo) -> Verdict:
    if not outcomes:
        return "not run"
    if "ok" not in outcomes:
        return "failed" if "failed" in outcomes else "void"
    return "reference" if is_reference else verdict(metric, comparison)


def _with_ceilings(
    plan: PlanInfo, cells: tuple[MetricCell, ...], shares: tuple[LinkShare, ...], free: tuple[Capacity, ...]
) -> tuple[MetricCell, ...]:
    uses = {use.name: use for use in plan.workloads}
    filled = {(found.setting, found.metric): found for found in shares}
    medians = {
        (cell.arm, cell.setting, cell.metric.name): cell.spread.median for cell in cells if cell.spread is not None
    }
    own = {(found.setting, found.metric.name): found for found in free}
    most = {
        (found.setting.topology, found.setting.workload, found.metric.name): found
        for found in sorted(free, key=lambda found: found.direct)
    }
    return tuple(
        replace(
            cell,
            ceiling=ceiling_of(
                cell,
                filled.get((cell.setting, cell.metric.name)),
                uses[cell.setting.workload].offers(cell.setting.profile),
                own.get(
                    (cell.setting, cell.metric.name),
                    most.get((cell.setting.topology, cell.setting.workload, cell.metric.name)),
                ),
                ended_by_lab=medians.get((cell.arm, cell.setting, cell.metric.limited_by), 0.0) > 0,
            ),
        )
        for cell in cells
    )
