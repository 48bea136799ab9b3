"""Makes titles of metrics, with their workload if another workload of the study has a metric of the same title."""

from __future__ import annotations

from collections.abc import Iterable

from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record.results import MetricInfo, PlanInfo
from tunnelmark.report import queries


def title(plan: PlanInfo, workload: str, metric: MetricInfo) -> str:
    """Return a metric's title: `TCP goodput`; if other workloads have a metric of that title, `TCP goodput (ring)`."""
    return among(((use.name, one) for use in plan.workloads for one in use.metrics), workload, metric)


def heading(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> str:
    """Return the title with profile and topology, each only if the study has several: `TCP goodput (ring), wifi`."""
    return title(analysis.results.plan, setting.workload, metric) + queries.where(analysis, setting)


def among(found: Iterable[tuple[str, MetricInfo]], workload: str, metric: MetricInfo) -> str:
    """Return a metric's title, with its workload in brackets if another workload has a metric of that title in `found`.

    `found`: pairs of workload and metric. If `metric` is primary, only primary metrics of other workloads count.
    """
    alike = {name for name, one in found if one.title == metric.title and (one.primary or not metric.primary)} - {
        workload
    }
    return f"{metric.title} ({workload})" if alike else metric.title
