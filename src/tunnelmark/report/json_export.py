"""Writes the analysis as JSON for programs: every judgement with the figures behind it, without the raw samples.

Rates are in bit/s, times in seconds, shares from 0 to 1; values are in the unit that is given with them. A member is
null if there is nothing to say, or if its number is not finite, such as a ratio to zero. `schema` goes up when a member
changes its meaning or goes away. Version 3 changed three things. The verdicts `tie` and `cannot tell` became `equal`
and `undecided`. `q` is corrected after Holm over the whole study. Blocks with a zero are part of the ratios (see
`zeros`, `doubt`); before, they were left out, and a member `unpaired` counted them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import Any

from tunnelmark.analyse.across import Kept, across_conditions, across_workloads, conditions
from tunnelmark.analyse.anchor_multiples import Headline, anchor_of, headlines
from tunnelmark.analyse.attempts import causes_of, grade_of
from tunnelmark.analyse.bottleneck import apart_from_direct, bound_of
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.margins import equal_within
from tunnelmark.analyse.model import Analysis, MetricCell
from tunnelmark.analyse.unpaired import BlockScatter, rank_tests, scatter
from tunnelmark.report import formatting, machine_facts, queries
from tunnelmark.report.cautions import cautions
from tunnelmark.report.findings import findings

SCHEMA = 3


def render(analysis: Analysis) -> str:
    """Return the analysis as one JSON document, indented, with a newline at its end."""
    plan = analysis.results.plan
    document = {
        "schema": SCHEMA,
        "study": plan.study,
        "title": plan.title,
        "seed": plan.seed,
        "blocks": plan.blocks,
        "until": None if plan.enough is None else asdict(plan.enough),
        "decisions": [asdict(decision) for decision in analysis.results.decisions],
        "finished": analysis.results.finished,
        "reference": analysis.reference,
        "anchor": anchor_of(plan.arms),
        "covers": machine_facts.covers(analysis.results),
        "gates": [asdict(gate) for gate in gates(analysis)],
        "cautions": cautions(analysis),
        "findings": [
            {**asdict(found.setting), "metric": found.metric.name, "text": found.text} for found in findings(analysis)
        ],
        "same": {
            "standing": analysis.same.standing,
            "explanation": analysis.same.explanation,
            "twins": [asdict(twins) for twins in analysis.same.twins],
        },
        "arms": [asdict(arm) for arm in analysis.arms],
        "cascades": {arm.name: arm.cascade for arm in plan.arms if arm.cascade},
        "behind_gateways": [arm.name for arm in plan.arms if arm.behind_gateways],
        "cells": [_cell(analysis, cell) for cell in analysis.cells],
        "travels": [_travels(one) for one in headlines(analysis)],
        "pairs": [asdict(pair) for pair in analysis.pairs],
        "rankings": [asdict(ranking) for ranking in analysis.rankings],
        "across_conditions": [_kept(one) for one in across_conditions(analysis)],
        "across_workloads": [_kept(one) for one in across_workloads(analysis)],
        **_unpaired(analysis),
        "capacities": [
            {**asdict(found.setting), "metric": found.metric.name, "unit": found.metric.unit, "direct": found.direct}
            for found in analysis.capacities
        ],
        "link_shares": [asdict(share) for share in analysis.link_shares],
        "failures": [
            {"trial": row.trial, "outcome": row.outcome, "reason": row.reason, "message": row.message, "hint": row.hint}
            for row in analysis.failures
        ],
        "attempts": [
            {"trial": row.trial, "attempt": row.attempt, "outcome": row.outcome, "grade": grade_of(row)}
            | {"causes": causes_of(row), "grades": dict(row.grades), "message": row.message}
            for row in analysis.results.trials
        ],
        "missing": analysis.missing,
        "wall": {**asdict(analysis.wall), "measuring": analysis.wall.measuring},
        "disturbed": [asdict(trial) for trial in analysis.disturbed],
        "void_rates": [asdict(found) for found in analysis.void_rates],
        "yardsticks": [asdict(row) for row in analysis.results.yardsticks],
        "environment": dict(analysis.results.environment),
    }
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Return the value with null in place of each number that is not finite, which JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _cell(analysis: Analysis, cell: MetricCell) -> dict[str, Any]:
    found = queries.place(analysis, cell.setting, cell.metric, cell.arm)
    bound = bound_of(analysis, cell.arm, cell.setting, cell.metric)
    return {
        **asdict(cell),
        "metric": cell.metric.name,
        "unit": cell.metric.unit,
        "better": cell.metric.better,
        "compare": cell.metric.compare,
        "primary": cell.metric.primary,
        "watcher": cell.metric.watcher or None,
        "sign": formatting.sign(cell.metric, cell.verdict, cell.against_direct) or None,
        "equal_within": equal_within(cell.metric),
        "zeros": cell.zeros,
        "rank": [found.first, found.last] if found else None,
        "twin_of": queries.twin_of(analysis, cell.arm),
        "bound": asdict(bound) if bound else None,
        "bound_apart_from_reference": apart_from_direct(analysis, cell) or None,
    }


def _kept(one: Kept) -> dict[str, Any]:
    """Return what an arm keeps of its value in `base`; `over_direct`: that over the reference's, which is judged."""
    return {
        **asdict(one),
        "metric": one.metric.name,
        "sign": formatting.sign(one.metric, one.verdict, one.over_direct) or None,
    }


def _unpaired(analysis: Analysis) -> dict[str, Any]:
    """Return Mann-Whitney's tests of every two arms (`rank_tests`), and `scatter` over blocks, by primary metrics."""
    asked = [
        (conditions(analysis, use.name), metric)
        for use in analysis.results.plan.workloads
        for metric in use.metrics
        if metric.primary
    ]
    tests = [one for settings, metric in asked for one in rank_tests(analysis, settings, metric)]
    return {
        "rank_tests": [{**asdict(one), "metric": one.metric.name, "differs": one.differs} for one in tests],
        "scatter": [_scatter(one) for settings, metric in asked for one in scatter(analysis, settings, metric)],
    }


def _scatter(one: BlockScatter) -> dict[str, Any]:
    cell = one.cell
    return {
        **asdict(cell.setting),
        "arm": cell.arm,
        "metric": cell.metric.name,
        "unit": cell.metric.unit,
        "blocks": one.count,
        "mean": one.mean,
        "standard_deviation": one.deviation,
        "coefficient_of_variation": one.variation,
        "zeros": one.zeros,
        "failed": one.failed,
        "void": one.void,
    }


def _travels(one: Headline) -> dict[str, Any]:
    """Return a cell's headline: `multiple.prediction` is for other machines, `added` is in microseconds."""
    return {
        **asdict(one.setting),
        "arm": one.arm,
        "metric": one.metric.name,
        "first": one.first,
        "bound": asdict(one.bound) if one.bound else None,
        "bound_apart_from_reference": one.apart or None,
        "multiple": asdict(one.multiple) if one.multiple else None,
        "added": asdict(one.added) if one.added else None,
        "cpu_per_gb": {"source": one.cpu[0], "target": one.cpu[1]},
    }
