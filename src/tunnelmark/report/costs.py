"""Selects the few metrics of collectors to show next to a result as its cost, and says why others are missing."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries

SHOWN = {
    "cpu_per_gb_source": "CPU per GB, sender",
    "cpu_per_gb_target": "CPU per GB, receiver",
    "cpu_per_gb_others": "CPU per GB, other nodes",
    "cpu_per_gb_shared": "CPU per GB, kernel on shared cores",
    "cpu_per_gb_lab": "CPU per GB, the lab's links",
    "cpu_per_packet_source": "CPU per packet, sender",
    "cpu_per_packet_target": "CPU per packet, receiver",
    "memory_load_source": "memory, sender",
    "memory_load_target": "memory, receiver",
    "wire_bytes_per_byte": "bytes outside / inside",
}
"""The metrics that are shown as costs, each with the heading of its column."""

EXPLAINED = (
    "CPU is that of the whole node, generator and kernel with its threads included; memory is the PSS of the VPN's daemons under load; bytes "
    "are those of IP packets."
)


_OVERHEAD = "wire_bytes_per_byte"
_WHOLE = 0.995  # below that, "1.00 outside for 1 inside" would be wrong


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of a setting's trials.

    `columns`: the metrics of `SHOWN` that have a value, each with its heading. `absent`: texts that say which metrics
    were not measured with which arms, and why.
    """

    setting: Scenario
    columns: tuple[tuple[MetricInfo, str], ...]
    absent: tuple[str, ...]


def costs(analysis: Analysis) -> tuple[Cost, ...]:
    """Return the costs of each setting in which a metric of `SHOWN` has a value.

    Settings in which `traversal` finds paths through several kinds of routers are left out (`queries.in_grid`).
    """
    found = []
    for setting in (one for one in analysis.settings() if not queries.in_grid(analysis, one)):
        metrics = {metric.name: metric for metric in watched(analysis, setting)}
        columns = tuple((metrics[name], title) for name, title in SHOWN.items() if name in metrics)
        if columns:
            found.append(Cost(setting, columns, _absent(analysis, setting)))
    return tuple(found)


def explained(analysis: Analysis) -> str:
    """Explain the columns of costs; if an arm has fewer bytes outside of its tunnel than inside, also explain that."""
    less = dict.fromkeys(
        cell.arm
        for cell in analysis.cells
        if cell.metric.name == _OVERHEAD and cell.spread is not None and cell.spread.median < _WHOLE
    )
    if not less:
        return EXPLAINED
    return (
        f"{EXPLAINED} Less outside than inside ({formatting.listed(list(less))}): the VPN took bytes from its interface that at the "
        "end were still in a queue of its own, or that it dropped or compressed."
    )


def watched(analysis: Analysis, setting: Scenario) -> tuple[MetricInfo, ...]:
    """Return all metrics of a setting that collectors measured and that have a value."""
    return tuple(
        metric
        for metric in queries.workload(analysis, setting).metrics
        if metric.watcher and any(cell.spread for cell in queries.cells(analysis, setting, metric))
    )


def value(analysis: Analysis, cell: MetricCell) -> str:
    """Return a cell's median as text, with its unit.

    A cell without a median has its verdict as the text, if the verdict is failed, void, not run or left out. With any
    other verdict the text is "–", which means that the metric was not measured.
    """
    if cell.spread is None:
        return formatting.VERDICTS[cell.verdict] if cell.verdict in formatting.WITHOUT_VALUE else "–"
    medians = [other.spread.median for other in queries.cells(analysis, cell.setting, cell.metric) if other.spread]
    return formatting.scale(cell.metric.unit, medians).value(cell.spread.median)


def _absent(analysis: Analysis, setting: Scenario) -> tuple[str, ...]:
    """Return each reason why something was not measured in a setting, with the metrics and arms that it concerns."""
    arms: dict[tuple[str, str], dict[str, None]] = {}
    for row in analysis.results.trials:
        if (row.profile, row.topology, row.workload) == (setting.profile, setting.topology, setting.workload):
            for name, reason in row.notes.items():
                arms.setdefault((name, reason), {})[row.arm] = None
    by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    everybody = tuple(arm.name for arm in analysis.results.plan.arms)
    for (name, reason), those in arms.items():
        by_reason.setdefault((reason, tuple(arm for arm in everybody if arm in those)), []).append(name)
    return tuple(
        f"{', '.join(name.replace('_', ' ') for name in names)} ({'all arms' if those == everybody else formatting.listed(those)}): {reason}"
        for (reason, those), names in by_reason.items()
    )
