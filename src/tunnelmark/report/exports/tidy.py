"""Makes the tidy tables of runs (see `views`) from their results and analyses. A table is held in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tunnelmark.analyse import Analysis, judge
from tunnelmark.analyse.attempts import chosen, grade_for, grade_of, usable
from tunnelmark.analyse.bottleneck import bound_of
from tunnelmark.analyse.link_gate import voided
from tunnelmark.record import fingerprint_diff
from tunnelmark.record.flent_files import FlentFile
from tunnelmark.record.results import MetricInfo, Results, TrialRow
from tunnelmark.report import queries
from tunnelmark.report.exports import flent_rows
from tunnelmark.report.exports.moments import moment
from tunnelmark.report.exports.views import VIEWS

_Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class StoredRuns:
    """Runs by name; all of them are analysed once, when a table first needs an analysis.

    `flent`: data files of flent by name; they are not analysed.
    """

    results: Mapping[str, Results]
    flent: Mapping[str, FlentFile] = field(default_factory=dict)

    @cached_property
    def analyses(self) -> Mapping[str, Analysis]:
        """The analysis of each run, by its name."""
        return {name: judge(found) for name, found in self.results.items()}

    def table(self, view: str) -> pa.Table:
        """Return a view's table, with the rows of all runs and data files. Raises KeyError if no view has that name."""
        made = [_TABLES[view](self, name) for name in self.results]
        if view in flent_rows.VIEWS:
            foreign = [{"run": name, **row} for name, file in self.flent.items() for row in flent_rows.rows(view, file)]
            made.append(pa.Table.from_pylist(foreign, VIEWS[view].schema))
        return pa.concat_tables([*made, VIEWS[view].schema.empty_table()])


def _rows(view: str, make: Callable[[StoredRuns, str], _Rows]) -> Callable[[StoredRuns, str], pa.Table]:
    """Return a function that makes a run's table of a view, given a function that makes its rows."""
    schema = VIEWS[view].schema

    def table(runs: StoredRuns, name: str) -> pa.Table:
        own = {"run": name, "study": runs.results[name].plan.study}
        return pa.Table.from_pylist([own | dict(row) for row in make(runs, name)], schema)

    return table


def _run(runs: StoredRuns, name: str) -> _Rows:
    found = runs.results[name]
    machines = fingerprint_diff.machines({each: of.environment for each, of in runs.results.items()})
    yield {
        "title": found.plan.title,
        "folder": str(found.path),
        "started": moment(found.sessions[0].started) if found.sessions else None,
        "finished": found.finished,
        "blocks": found.plan.blocks,
        "seed": found.plan.seed,
        "smoke": found.plan.smoke,
        "machine": machines[name],
        "described": fingerprint_diff.name(found.environment),
        "tunnelmark": found.environment.get("tunnelmark"),
    }


def _trials(runs: StoredRuns, name: str) -> _Rows:
    rows = voided(runs.results[name]).trials
    counting = {id(row) for row in chosen(rows)}
    for row in rows:
        kept = ("phases", "first_packet", "host", "limits")
        yield _attempt(row) | {
            "grade": grade_of(row),
            "counts": id(row) in counting,
            "causes": list(row.causes),
            "reason": row.reason,
            "message": row.message,
            "position": row.position,
            "started": moment(row.started),
            **{key: list(getattr(row, key).items()) for key in kept},
            "raw": list(row.raw),
        }


def _samples(runs: StoredRuns, name: str) -> pa.Table:
    """Return all values of a run, made by columns: row by row, repeating each attempt's columns would take minutes."""
    results = runs.results[name]
    rows = voided(results).trials
    metrics = {(use.name, metric.name): metric for use in results.plan.workloads for metric in use.metrics}
    counting = {id(row) for row in chosen(rows)}
    kept: dict[str, list[Any]] = {key: [] for key in ("metric", "unit", "value", "time", "grade", "used")}
    for row in rows:
        known = {each: metrics.get((row.workload, each)) for each in {s.metric for s in row.samples}}
        grades = {each: _grade(row, metric) for each, metric in known.items()}
        may = row.outcome == "ok" and id(row) in counting
        for sample in row.samples:
            kept["metric"].append(sample.metric)
            kept["unit"].append(sample.unit)
            kept["value"].append(sample.value)
            kept["time"].append(sample.time)
            kept["grade"].append(grades[sample.metric])
            metric = known[sample.metric]
            kept["used"].append(may and sample.time is None and (metric is None or usable(row, metric)))
    schema = VIEWS["samples"].schema
    own = {"run": name, "study": results.plan.study}
    attempts = pa.Table.from_pylist(
        [own | _attempt(row) for row in rows], pa.schema([field for field in schema if field.name not in kept])
    )
    repeated = attempts.take(pa.array(np.repeat(np.arange(len(rows)), [len(row.samples) for row in rows])))
    columns = [
        pa.array(kept[field.name], field.type) if field.name in kept else repeated[field.name] for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _metrics(runs: StoredRuns, name: str) -> pa.Table:
    samples = _samples(runs, name)
    return samples.filter(samples["time"].is_null()).select(VIEWS["metrics"].names).cast(VIEWS["metrics"].schema)


def _effects(runs: StoredRuns, name: str) -> _Rows:
    analysis = runs.analyses[name]
    metrics = {(cell.setting, cell.metric.name): cell.metric for cell in analysis.cells}
    for pair in (*analysis.pairs, *(twins.comparison for twins in analysis.same.twins)):
        metric, interval, setting = metrics[pair.setting, pair.metric], pair.interval, pair.setting
        yield {
            "profile": setting.profile,
            "topology": setting.topology,
            "workload": setting.workload,
            **_of_metric(metric),
            "arm": pair.arm,
            "against": pair.against,
            "effect": metric.compare,
            "estimate": pair.estimate,
            "low": interval and interval.low,
            "high": interval and interval.high,
            "method": interval and interval.method,
            "blocks": len(pair.blocks),
            "p": pair.p,
            "q": pair.q,
            "differs": pair.differs,
            "equal": pair.equal,
            "detectable": pair.detectable,
            "doubt": pair.doubt,
        }


def _verdicts(runs: StoredRuns, name: str) -> _Rows:
    analysis = runs.analyses[name]
    for cell in analysis.cells:
        place = queries.place(analysis, cell.setting, cell.metric, cell.arm)
        bound = bound_of(analysis, cell.arm, cell.setting, cell.metric)
        yield {
            "profile": cell.setting.profile,
            "topology": cell.setting.topology,
            "workload": cell.setting.workload,
            **_of_metric(cell.metric),
            "arm": cell.arm,
            "verdict": cell.verdict,
            "median": cell.spread and cell.spread.median,
            "least": cell.spread and cell.spread.low,
            "most": cell.spread and cell.spread.high,
            "blocks": len(cell.values),
            "succeeded": cell.success.count,
            "tried": cell.success.total,
            "void": cell.void,
            "unreliable": cell.unreliable,
            "ceiling": cell.ceiling,
            "bound": bound and bound.text,
            "rank_first": place and place.first,
            "rank_last": place and place.last,
        }


def _environment(runs: StoredRuns, name: str) -> _Rows:
    yield from ({"key": key, "value": value} for key, value in _flat(runs.results[name].environment, ""))


_TABLES: Mapping[str, Callable[[StoredRuns, str], pa.Table]] = {
    "runs": _rows("runs", _run),
    "trials": _rows("trials", _trials),
    "samples": _samples,
    "metrics": _metrics,
    "effects": _rows("effects", _effects),
    "verdicts": _rows("verdicts", _verdicts),
    "environment": _rows("environment", _environment),
}


def _attempt(row: TrialRow) -> dict[str, Any]:
    kept = ("block", "arm", "profile", "topology", "workload", "link", "trial", "attempt", "outcome")
    return {key: getattr(row, key) for key in kept}


def _grade(row: TrialRow, metric: MetricInfo | None) -> str | None:
    return grade_of(row) if row.outcome != "ok" or metric is None else grade_for(row, metric)


def _of_metric(metric: MetricInfo) -> dict[str, Any]:
    return {"metric": metric.name, "unit": metric.unit, "better": metric.better, "is_primary": metric.primary}


def _flat(value: Any, place: str) -> Iterable[tuple[str, str | None]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{place}.{key}" if place else str(key))
    elif value is None or isinstance(value, str):
        yield place, value
    else:
        yield place, json.dumps(value, ensure_ascii=False)
