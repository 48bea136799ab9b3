"""Makes the data that the page's program reads: arms, conditions, metrics, cells and every attempt, by columns.

A column is a list with one entry per row. A row refers to an arm, a condition or a metric by its index in the list
`arms`, `conditions` or `metrics`. Values have six significant digits, in the metric's unit. The attempts of a metric's
values are a list of row numbers of `attempts`. Several metrics share such a list, so each metric has only the list's
index in `attempt_lists`. `SCHEMA` goes up when a member changes its meaning or goes away. `web/src/data.ts` reads the
data. Pure.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from tunnelmark.analyse.attempts import causes_of, grade_for, grade_of
from tunnelmark.analyse.bottleneck import apart_from_direct, bound_of
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.model.attempt import folder_of
from tunnelmark.record.results import RAW, MetricInfo, TrialRow
from tunnelmark.report import formatting, queries, travels, trial_lengths, web_series

SCHEMA = 1
DIGITS = 6

MOST_VALUES = 400_000
"""How many values of attempts a page has at most (about 3 MB).

With more, metrics that are not primary are left out, and the page names them.
"""

Key = tuple[str, str]
"""A metric: the name of its workload in the study, and its own name."""


PACKED = 1_000_000
"""A document of more characters than this is compressed, to about a quarter."""


def script(analysis: Analysis) -> str:
    """Return the document for a script element: JSON without a `<`, or base64 of a zlib stream if it is large."""
    text = json.dumps(document(analysis), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(text) > PACKED:
        return b64encode(zlib.compress(text.encode())).decode()
    return text.replace("<", "\\u003c")


def document(analysis: Analysis) -> dict[str, Any]:
    """Return all that the page's program reads, as data for JSON.

    A table (`cells`, `attempts`) has a list for each column, with an entry per row. Rows refer to arms, conditions and
    metrics by their index in the lists of these names.
    """
    plan = analysis.results.plan
    metrics = _metrics(analysis)
    places = {key: place for place, key in enumerate(metrics)}
    conditions = {
        key: place for place, key in enumerate(dict.fromkeys((s.profile, s.topology) for s in analysis.settings()))
    }
    arms = {arm.name: place for place, arm in enumerate(plan.arms)}
    values, left_out = _values(analysis, metrics)
    series, series_left_out = web_series.series(analysis, metrics)
    lists: dict[tuple[int, ...], int] = {}
    for one in (*values, *series):
        one["attempts"] = lists.setdefault(tuple(one["attempts"]), len(lists))
    return {
        "schema": SCHEMA,
        "study": plan.study,
        "title": plan.title,
        "reference": arms.get(analysis.reference or ""),
        "blocks": plan.blocks,
        "ranked": analysis.same.standing == "agrees",
        "legend": f"{formatting.legend(cell.metric for cell in analysis.cells if cell.metric.primary)} {formatting.OTHERS}",
        "arms": [
            {"name": arm.name, "label": queries.label(analysis, arm.name), "title": arm.title} for arm in plan.arms
        ],
        "conditions": _conditions(analysis, conditions),
        "metrics": [
            {
                "workload": workload,
                "name": metric.name,
                "title": metric.title,
                "unit": metric.unit,
                "better": metric.better,
                "compare": metric.compare,
                "feels": metric.feels,
                "role": "primary" if metric.primary else "watched" if metric.watcher else "other",
            }
            for (workload, _), metric in metrics.items()
        ],
        "cells": _cells(analysis, places, conditions, arms),
        "attempts": _attempts(analysis, conditions, arms),
        "values": values,
        "series": series,
        "attempt_lists": [list(places) for places in lists],
        "left_out": [_titled(metrics, key) for key in left_out],
        "series_left_out": [_titled(metrics, key) for key in series_left_out],
    }


def _titled(metrics: Mapping[Key, MetricInfo], key: Key) -> str:
    """Return the name by which the page says that a metric is left out."""
    return f"{metrics[key].title} ({key[0]})"


def _metrics(analysis: Analysis) -> dict[Key, MetricInfo]:
    """Return all primary metrics, then others that have a value or a series somewhere, those of collectors last."""
    seen = {
        (row.workload, sample.metric)
        for row in analysis.results.trials
        if row.outcome == "ok"
        for sample in row.samples
    }
    asked = {(use.name, metric.name): metric for use in analysis.results.plan.workloads for metric in use.metrics}
    held = [(key, metric) for key, metric in asked.items() if metric.primary or key in seen]
    return dict(sorted(held, key=lambda each: 0 if each[1].primary else 2 if each[1].watcher else 1))


def _conditions(analysis: Analysis, conditions: Mapping[tuple[str, str], int]) -> list[dict[str, str]]:
    plan = analysis.results.plan
    profiles = {profile.name: profile.title for profile in plan.profiles}
    topologies = {topology.name: topology.title for topology in plan.topologies}
    several = len({topology for _, topology in conditions}) > 1
    return [
        {
            "name": f"{profile}, {topology}" if several else profile,
            "title": f"{profiles[profile]}; {topologies[topology]}" if several else profiles[profile],
            "profile": profile,
            "topology": topology,
        }
        for profile, topology in conditions
    ]


def _cells(
    analysis: Analysis, metrics: Mapping[Key, int], conditions: Mapping[tuple[str, str], int], arms: Mapping[str, int]
) -> dict[str, list[Any]]:
    """Return a column for each fact about the cells; a cell has a row if it has a value, or a primary metric."""
    ranks = {
        (one.setting, one.metric, place.arm): [place.first, place.last]
        for one in analysis.rankings
        for place in one.places
    }
    tried: dict[tuple[str, Scenario], list[TrialRow]] = {}
    for row in analysis.trials:
        tried.setdefault((row.arm, Scenario(row.profile, row.topology, row.workload)), []).append(row)
    scales: dict[tuple[Scenario, str], formatting.Scale] = {}
    columns: dict[str, list[Any]] = {}
    for cell in analysis.cells:
        key = (cell.setting.workload, cell.metric.name)
        if key not in metrics or cell.verdict == "left out" or (cell.spread is None and not cell.metric.primary):
            continue
        shared = (cell.setting, cell.metric.name)
        if shared not in scales:
            medians = [other.spread.median for other in analysis.cells_of(*shared) if other.spread]
            scales[shared] = formatting.scale(cell.metric.unit, medians)
        facts = {
            "metric": metrics[key],
            "condition": conditions[cell.setting.profile, cell.setting.topology],
            "arm": arms[cell.arm],
            "rank": ranks.get((cell.setting, cell.metric.name, cell.arm)),
            **_cell(analysis, cell, scales[shared]),
            **_counted(cell, tried.get((cell.arm, cell.setting), [])),
        }
        for name, fact in facts.items():
            columns.setdefault(name, []).append(fact)
    return columns


def _cell(analysis: Analysis, cell: MetricCell, scale: formatting.Scale) -> dict[str, Any]:
    found, against = cell.spread, cell.against_direct
    bound = bound_of(analysis, cell.arm, cell.setting, cell.metric)
    apart = apart_from_direct(analysis, cell)
    ends = against.interval if against else None
    remarks = [
        word for word in formatting.remarks(cell, analysis.reference) if word != formatting.VERDICTS[cell.verdict]
    ]
    if moved := trial_lengths.mark(analysis, cell):
        remarks.append(moved)
    return {
        "median": figure(found.median) if found else None,
        "low": figure(found.low) if found else None,
        "high": figure(found.high) if found else None,
        "text": scale.value(found.median) if found else "",
        "spread": scale.spread(found) if found else "",
        "effect": figure(against.estimate) if against else None,
        "effect_low": figure(ends.low) if ends else None,
        "effect_high": figure(ends.high) if ends else None,
        "effect_text": formatting.judged(cell) + travels.mark(apart) if found and against else "",
        "verdict": formatting.VERDICTS[cell.verdict],
        "ceiling": formatting.CEILINGS[cell.ceiling] if cell.ceiling else "",
        "bound": bound.text if bound else "",
        "why": f"{bound.why} ({bound.count} of {bound.total} trials)" if bound and bound.why else "",
        "apart": apart,
        "remarks": "; ".join(remarks),
        "missing": formatting.reliability(cell) if cell.bounds else "",
    }


def _counted(cell: MetricCell, rows: Iterable[TrialRow]) -> dict[str, int]:
    """Count the good, disturbed, void and failed trials of a cell; of each trial, the attempt that is used."""
    counts = Counter(
        "void" if row.outcome == "void" else "failed" if row.outcome != "ok" else grade_for(row, cell.metric)
        for row in rows
    )
    return {name: counts[name] for name in ("good", "disturbed", "void", "failed")}


def _attempts(
    analysis: Analysis, conditions: Mapping[tuple[str, str], int], arms: Mapping[str, int]
) -> dict[str, list[Any]]:
    """Return columns with every attempt, in the order of the journal.

    `files` is an index into `file_lists`, whose names are below the attempt's folder. `grade` is that of the whole
    attempt. `grades` is an index into `grade_lists`: for what metrics feel, the grades of a result that are not good.
    """
    workloads = {use.name: place for place, use in enumerate(analysis.results.plan.workloads)}
    metrics = {use.name: use.metrics for use in analysis.results.plan.workloads}
    counting = {(row.trial, row.attempt) for row in analysis.trials}
    lists: dict[tuple[str, ...], int] = {}
    grades: dict[tuple[tuple[str, str], ...], int] = {}
    texts: dict[str, int] = {"": 0}
    columns: dict[str, list[Any]] = {}
    for row in analysis.results.trials:
        usual = f"{row.block:03d}.{row.arm}.{row.profile}.{row.topology}.{row.workload}"
        said = "; ".join(causes_of(row)) if row.outcome == "ok" else row.message or row.reason or ""
        folder = f"{RAW}/{folder_of(row.trial, row.attempt)}/"
        files = tuple(path.removeprefix(folder) if path.startswith(folder) else f"/{path}" for path in row.raw)
        facts = {
            "block": row.block,
            "position": row.position + 1,
            "attempt": row.attempt,
            "arm": arms[row.arm],
            "condition": conditions[row.profile, row.topology],
            "workload": workloads[row.workload],
            "outcome": row.outcome,
            "grade": grade_of(row) or "",
            "grades": grades.setdefault(_grades(row, metrics[row.workload]), len(grades)),
            "counts": int((row.trial, row.attempt) in counting),
            "said": texts.setdefault(said, len(texts)),
            "trial": "" if row.trial == usual else row.trial,
            "files": lists.setdefault(files, len(lists)),
        }
        for name, fact in facts.items():
            columns.setdefault(name, []).append(fact)
    columns["texts"] = list(texts)
    columns["file_lists"] = [list(names) for names in lists]
    columns["grade_lists"] = [dict(each) for each in grades]
    columns["workloads"] = list(workloads)
    return columns


def _grades(row: TrialRow, metrics: Sequence[MetricInfo]) -> tuple[tuple[str, str], ...]:
    """Return the grades of a result that are not good, by what metrics feel; empty without a result."""
    if row.outcome != "ok":
        return ()
    graded = {metric.feels: grade_for(row, metric) for metric in metrics}
    return tuple(sorted((feels, grade) for feels, grade in graded.items() if grade != "good"))


def _values(analysis: Analysis, metrics: Mapping[Key, MetricInfo]) -> tuple[list[dict[str, Any]], list[Key]]:
    """Return for each metric the attempts and their values over the whole window; and the metrics left out."""
    found: dict[Key, tuple[list[int], list[float | None]]] = {key: ([], []) for key in metrics}
    for place, row in enumerate(analysis.results.trials):
        if row.outcome == "ok":
            for sample in row.samples:
                if sample.time is None:
                    rows, values = found[row.workload, sample.metric]
                    rows.append(place)
                    values.append(figure(sample.value))
    shown, left_out, total = [], [], 0
    for number, (key, (rows, values)) in enumerate(found.items()):
        if total + len(values) > MOST_VALUES and not metrics[key].primary:
            left_out.append(key)
        elif values:
            total += len(values)
            shown.append({"metric": number, "attempts": rows, "values": values})
    return shown, left_out


def figure(value: float | None, digits: int = DIGITS) -> float | int | None:
    """Round a value to `digits` significant digits; return an int if the result is whole.

    None if the value is None or not finite.
    """
    if value is None or not isfinite(value):
        return None
    rounded = float(f"{value:.{digits - 1}e}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
