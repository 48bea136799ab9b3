"""Shows a machine's runs over time, as tables and as JSON: each run's effect with its interval, and changes marked."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import expm1, isfinite
from typing import Any

from tunnelmark.analyse.change_points import LEAST, ChangePoint
from tunnelmark.analyse.history import History, HistoryPoint, RunSeries
from tunnelmark.analyse.pairing import effect
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting

SCHEMA = 1

COLUMNS = ("run", "begun (UTC)", "version", "blocks", "effect [95 %]", "")

LEGEND = (
    "▲ better and ▼ worse from this run on, by the medians before and after: a change of level that chance shows in any of these series in less "
    "than 5 % of cases (docs/query.md)."
)


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """The effect of one arm by one metric in runs that measured it alike, as a row of text for each run (`COLUMNS`).

    `note`: how many changes of the effect were found, or that the runs are too few for a test.
    """

    heading: str
    rows: tuple[tuple[str, ...], ...]
    note: str


def tables(found: History) -> tuple[HistoryTable, ...]:
    """Return a table for each effect (`RunSeries`) of the history, in the order of the plans."""
    return tuple(_table(found, series) for series in found.series)


def machines(found: History) -> tuple[str, ...]:
    """Return a line for each machine, with its letter and its description: `machine A: ...`."""
    return tuple(f"machine {letter}: {described}" for letter, described in found.machines.items())


def _table(found: History, series: RunSeries) -> HistoryTable:
    where = ", ".join((series.setting.profile, series.setting.topology, series.setting.workload))
    machine = f", machine {series.machine}" if series.machine and len(found.machines) > 1 else ""
    heading = f"{series.arm} against {series.against}: {series.metric.title} ({where}){machine}"
    changes = sum(point.change is not None for point in series.points)
    note = f"{len(series.points)} runs, {changes or 'no'} {'change' if changes == 1 else 'changes'} shown"
    if not series.tested:
        note = f"not tested: a change can be shown from {LEAST} runs on"
    joined = not series.machine and len(found.machines) > 1
    return HistoryTable(heading, tuple(_row(series, point, joined) for point in series.points), note)


def _row(series: RunSeries, point: HistoryPoint, joined: bool) -> tuple[str, ...]:
    when = datetime.fromtimestamp(point.started, UTC).strftime("%Y-%m-%d %H:%M") if point.started is not None else ""
    return (
        f"{point.run} ({point.machine})" if joined else point.run,
        when,
        point.version,
        str(len(point.comparison.blocks)),
        formatting.effect(series.metric, point.comparison) or "no result",
        _mark(series.metric, point.change) if point.change else "",
    )


def _mark(metric: MetricInfo, change: ChangePoint) -> str:
    """Return a change in words: `▼ −12 %, p 0.004`; p is the corrected chance of such a change if there is none."""
    sign = "▲" if (change.after > change.before) == (metric.better == "higher") else "▼"
    step = change.after - change.before
    if metric.compare == "ratio":
        percent = 100 * expm1(step) if isfinite(step) else step
        size = (
            f"{'+' if percent > 0 else ''}{formatting.number(percent)}\N{NO-BREAK SPACE}%" if isfinite(percent) else ""
        )
    else:
        size = formatting.amount(metric, step)
    return ", ".join(part for part in (f"{sign} {size}".strip(), f"p {change.p:.2g}") if part)


def render_json(found: History) -> str:
    """Return the history as a JSON document, with a newline at its end: each effect (`RunSeries`) in each of its runs.

    Effects are ratios, or differences in the metric's unit. A number that is not finite is null.
    """
    document = {
        "schema": SCHEMA,
        "machines": dict(found.machines),
        "cautions": list(found.cautions),
        "series": [_series(each) for each in found.series],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _series(series: RunSeries) -> dict[str, Any]:
    metric = series.metric
    return {
        "arm": series.arm,
        "against": series.against,
        **asdict(series.setting),
        "metric": metric.name,
        "unit": metric.unit,
        "effect": metric.compare,
        "better": metric.better,
        "machine": series.machine or None,
        "tested": series.tested,
        "runs": [
            {
                "run": point.run,
                "started": point.started,
                "machine": point.machine,
                "version": point.version,
                "blocks": len(point.comparison.blocks),
                "estimate": _finite(point.comparison.estimate),
                "low": point.comparison.interval and _finite(point.comparison.interval.low),
                "high": point.comparison.interval and _finite(point.comparison.interval.high),
                "change": point.change
                and {
                    "p": point.change.p,
                    "before": _finite(effect(metric, point.change.before)),
                    "after": _finite(effect(metric, point.change.after)),
                },
            }
            for point in series.points
        ],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
