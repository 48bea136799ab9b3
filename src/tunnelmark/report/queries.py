"""Reads from an analysis what every exporter needs: groups of settings, metrics with values, rows of arms, series."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.analyse.anchor_multiples import anchor_of
from tunnelmark.analyse.attempts import usable
from tunnelmark.analyse.model import Analysis, Comparison, MetricCell, RankRange, Scenario
from tunnelmark.plan.compose import TRAVERSAL
from tunnelmark.plan.profiles import JOIN
from tunnelmark.record.results import MetricInfo, WorkloadInfo


def in_grid(analysis: Analysis, setting: Scenario) -> bool:
    """Whether a setting is a cell of a grid of `report.paths_found`: several kinds of routers, only paths asked for."""
    own = setting.topology.partition(JOIN)[0]
    alike = [one for one in analysis.results.plan.topologies if one.name.partition(JOIN)[0] == own]
    return len(alike) > 1 and workload(analysis, setting).workload == TRAVERSAL


def groups(analysis: Analysis) -> tuple[tuple[str, tuple[Scenario, ...]], ...]:
    """Settings that share profile and topology, under a heading ("" if there is only one group); without grids."""
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
    """A setting's profile and topology, each only if the study has several: `, wifi, lan-3`, or ""."""
    plan = analysis.results.plan
    profile = f", {setting.profile}" if len(plan.profiles) > 1 else ""
    return profile + (f", {setting.topology}" if len(plan.topologies) > 1 else "")


def workload(analysis: Analysis, setting: Scenario) -> WorkloadInfo:
    """The workload of a setting, with the options that the study gave it."""
    return next(used for used in analysis.results.plan.workloads if used.name == setting.workload)


def primary_metrics(analysis: Analysis, setting: Scenario) -> tuple[MetricInfo, ...]:
    return tuple(metric for metric in workload(analysis, setting).metrics if metric.primary)


def other_metrics(analysis: Analysis, setting: Scenario) -> tuple[MetricInfo, ...]:
    """Metrics that are not primary and not of collectors, and that have a value over the whole window."""
    return tuple(
        metric
        for metric in workload(analysis, setting).metrics
        if not metric.primary and not metric.watcher and any(cell.spread for cell in cells(analysis, setting, metric))
    )


def metric_of(analysis: Analysis, comparison: Comparison) -> MetricInfo:
    """The metric by which two arms were compared."""
    metrics = workload(analysis, comparison.setting).metrics
    return next(metric for metric in metrics if metric.name == comparison.metric)


def cells(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> tuple[MetricCell, ...]:
    """The cells of one metric in a setting, in the order of the plan's arms."""
    return analysis.cells_of(setting, metric.name)


def own_cells(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> tuple[MetricCell, ...]:
    """The cells of the arms that are compared: without direct, the anchor, and twins."""
    besides = {analysis.reference, anchor_of(analysis.results.plan.arms)}
    return tuple(
        cell
        for cell in cells(analysis, setting, metric)
        if cell.arm not in besides and twin_of(analysis, cell.arm) is None
    )


def place(analysis: Analysis, setting: Scenario, metric: MetricInfo, arm: str) -> RankRange | None:
    """The arm's range of ranks; None if nothing is ranked, or if the arm is not."""
    for ranking in analysis.rankings:
        if (ranking.setting, ranking.metric) == (setting, metric.name):
            return next((found for found in ranking.places if found.arm == arm), None)
    return None


def twin_of(analysis: Analysis, arm: str) -> str | None:
    return next((info.same_as for info in analysis.results.plan.arms if info.name == arm), None)


def label(analysis: Analysis, arm: str) -> str:
    """An arm's name, with a mark if it is another arm's twin."""
    return f"{arm} (A/A)" if twin_of(analysis, arm) is not None else arm


def placed_tunnels(analysis: Analysis) -> str:
    """Which arms are cascades, and of which kind, and which run on gateways, in sentences; "" if none does."""
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
"""By arm and block: (seconds since the window began, value)."""


def series(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> Series:
    """The values over time of one metric, of trials that are not void for it; arms without any are left out."""
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
    """The q-quantile of sorted values, between neighbours in proportion (Hyndman and Fan's type 7)."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])
