"""Reads from an analysis what reports and exports need: groups of settings, metrics, cells, ranks, values over time.

A setting is a scenario: a profile, a topology and a workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunnelmark.analyse.anchor_multiples import anchor_of
from tunnelmark.analyse.attempts import usable
from tunnelmark.analyse.model import Analysis, Comparison, Interval, MetricCell, Ranking, RankRange, Scenario, VoidRate
from tunnelmark.plan.compose import TRAVERSAL
from tunnelmark.plan.profiles import JOIN
from tunnelmark.record.results import MetricInfo, WorkloadInfo


def in_grid(analysis: Analysis, setting: Scenario) -> bool:
    """Return whether a grid of `report.paths_found` shows this setting: paths through several kinds of routers."""
    own = setting.topology.partition(JOIN)[0]
    alike = [one for one in analysis.results.plan.topologies if one.name.partition(JOIN)[0] == own]
    return len(alike) > 1 and workload(analysis, setting).workload == TRAVERSAL


def groups(analysis: Analysis) -> tuple[tuple[str, tuple[Scenario, ...]], ...]:
    """Return (heading, settings) for each profile and topology; the heading is "" if there is only one such group.

    Settings that a grid of `report.paths_found` shows are left out.
    """
    plan = analysis.results.plan
    profiles = {profile.name: profile.title for profile in plan.profiles}
    topologies = {topology.name: topology.title for topology in plan.topologies}
    found: dict[tuple[str, str], list[Scenario]] = {}
    for setting in analysis.settings():
        if not in_grid(analysis, setting):
            found.setdefault((setting.profile, setting.topology), []).append(setting)
    if len(found) == 1:
        return (("", tuple(*found.values())),)
    return tuple(
        (f"{profiles[profile]}; {topologies[topology]}" if len(topologies) > 1 else profiles[profile], tuple(settings))
        for (profile, topology), settings in found.items()
    )


def where(analysis: Analysis, setting: Scenario) -> str:
    """Return a setting's profile and topology, each with a comma before it, to be put after a title: `, wifi, lan-3`.

    The profile is left out if the study has only one profile, and the topology if it has only one topology.
    """
    plan = analysis.results.plan
    profile = f", {setting.profile}" if len(plan.profiles) > 1 else ""
    return profile + (f", {setting.topology}" if len(plan.topologies) > 1 else "")


def workload(analysis: Analysis, setting: Scenario) -> WorkloadInfo:
    """Return the workload of a setting, with its metrics and the options that the study gave it."""
    return next(used for used in analysis.results.plan.workloads if used.name == setting.workload)


def primary_metrics(analysis: Analysis, setting: Scenario) -> tuple[MetricInfo, ...]:
    return tuple(metric for metric in workload(analysis, setting).metrics if metric.primary)


def other_metrics(analysis: Analysis, setting: Scenario) -> tuple[MetricInfo, ...]:
    """Return the setting's metrics for which some arm has a value, without primary ones and those of collectors."""
    return tuple(
        metric
        for metric in workload(analysis, setting).metrics
        if not metric.primary and not metric.watcher and any(cell.spread for cell in cells(analysis, setting, metric))
    )


def metric_of(analysis: Analysis, of: Comparison | Ranking) -> MetricInfo:
    """Return the metric by which two arms were compared, or by which arms were ranked."""
    metrics = workload(analysis, of.setting).metrics
    return next(metric for metric in metrics if metric.name == of.metric)


def cells(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> tuple[MetricCell, ...]:
    """Return the cell of each arm for one metric in a setting, in the order of the plan's arms."""
    return analysis.cells_of(setting, metric.name)


def own_cells(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> tuple[MetricCell, ...]:
    """Return the cells of the arms that are compared: without direct, the anchor, and the repeats of A/A pairs."""
    besides = {analysis.reference, anchor_of(analysis.results.plan.arms)}
    return tuple(
        cell
        for cell in cells(analysis, setting, metric)
        if cell.arm not in besides and twin_of(analysis, cell.arm) is None
    )


def place(analysis: Analysis, setting: Scenario, metric: MetricInfo, arm: str) -> RankRange | None:
    """Return the range of the arm's ranks; None if the metric is not ranked in that setting, or the arm is not."""
    for ranking in analysis.rankings:
        if (ranking.setting, ranking.metric) == (setting, metric.name):
            return next((found for found in ranking.places if found.arm == arm), None)
    return None


def pairs(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> dict[tuple[str, str], Comparison]:
    """Return the comparisons of arms by a primary metric, by (arm, other arm); each is there in both directions."""
    found: dict[tuple[str, str], Comparison] = {}
    for one in analysis.pairs:
        if (one.setting, one.metric) == (setting, metric.name):
            found[one.arm, one.against] = one
            found[one.against, one.arm] = _turned(metric, one)
    return found


def _turned(metric: MetricInfo, pair: Comparison) -> Comparison:
    """Return the comparison with its two arms exchanged."""

    def turn(value: float) -> float:
        if metric.compare != "ratio":
            return -value
        return 1 / value if value else float("inf")

    found = pair.interval
    return replace(
        pair,
        arm=pair.against,
        against=pair.arm,
        estimate=None if pair.estimate is None else turn(pair.estimate),
        interval=None if found is None else Interval(turn(found.high), turn(found.low), found.method),
        order=None if pair.order is None else -pair.order,
    )


def medians(analysis: Analysis, setting: Scenario, metric: str) -> dict[str, float]:
    """Return the medians of a metric over blocks by arm, in its unit, without arms that have none above zero."""
    cells = analysis.cells_of(setting, metric)
    return {cell.arm: cell.spread.median for cell in cells if cell.spread and cell.spread.median > 0}


def twin_of(analysis: Analysis, arm: str) -> str | None:
    """Return the name of the arm that `arm` repeats for an A/A test; None if `arm` does not repeat another arm."""
    return next((info.same_as for info in analysis.results.plan.arms if info.name == arm), None)


def unlike_voids(analysis: Analysis) -> tuple[tuple[VoidRate, ...], bool]:
    """Return the arms that were void more often than the others, and True.

    If there are none, return those that were void less often, and False: where one arm is void more often, the others
    are void less often for that reason alone.
    """
    unlike = [rate for rate in analysis.void_rates if rate.unlike]
    more = tuple(rate for rate in unlike if rate.void * rate.attempts_others > rate.void_others * rate.attempts)
    return more or tuple(unlike), bool(more)


def label(analysis: Analysis, arm: str) -> str:
    """Return an arm's name, followed by ` (A/A)` if it repeats another arm."""
    return f"{arm} (A/A)" if twin_of(analysis, arm) is not None else arm


def placed_tunnels(analysis: Analysis) -> str:
    """Return sentences that name the cascades in series, the nested cascades, and the arms on gateways.

    "" if the study has none of these. An arm on gateways has its VPN on nodes that forward for the traffic's ends.
    """
    kinds = {"series": "a tunnel on each link", "nested": "each tunnel inside the one before"}
    found = [
        f"{kind} ({words}): {', '.join(arms)}"
        for kind, words in kinds.items()
        if (arms := [arm.name for arm in analysis.results.plan.arms if arm.cascade == kind])
    ]
    said = [f"Cascades in {'; '.join(found)}."] if found else []
    if behind := [arm.name for arm in analysis.results.plan.arms if arm.behind_gateways]:
        said.append(f"Between two gateways, with the ends behind them: {', '.join(behind)}.")
    return " ".join([*said, "Other VPNs are on the ends only."]) if said else ""


Series = dict[str, dict[int, list[tuple[float, float]]]]
"""By arm and block: points (seconds since the window began, value in the metric's unit)."""


def series(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> Series:
    """Return a metric's values over time, from trials that are usable for it; arms without such values are left out."""
    found: Series = {}
    for row in analysis.trials:
        if usable(row, metric) and (row.profile, row.topology, row.workload) == (
            setting.profile,
            setting.topology,
            setting.workload,
        ):
            points = [(s.time, s.value) for s in row.samples if s.metric == metric.name and s.time is not None]
            if points:
                found.setdefault(row.arm, {}).setdefault(row.block, []).extend(sorted(points))
    return {arm.name: found[arm.name] for arm in analysis.results.plan.arms if arm.name in found}


def quantile(ordered: Sequence[float], q: float) -> float:
    """Return the q-quantile (0 <= q <= 1) of at least one sorted value, interpolated (Hyndman and Fan's type 7)."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])
