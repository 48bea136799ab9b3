"""The analysis as JSON, for programs: every judgement with the figures behind it, without the raw samples.

Rates are in bit/s, times in seconds, shares from 0 to 1; values are in the unit that stands beside them. A member is
null where there is nothing to say. `schema` goes up when a member changes its meaning or goes away.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tunnelmark.analyse.attempts import causes_of, grade_of
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.model import Analysis, Cell
from tunnelmark.report import view
from tunnelmark.report.findings import cautions, findings

SCHEMA = 2


def render(analysis: Analysis) -> str:
    """One JSON document, indented, with a newline at its end."""
    plan = analysis.results.plan
    document = {
        "schema": SCHEMA,
        "study": plan.study,
        "title": plan.title,
        "seed": plan.seed,
        "blocks": plan.blocks,
        "finished": analysis.results.finished,
        "reference": analysis.reference,
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
        "cells": [_cell(analysis, cell) for cell in analysis.cells],
        "pairs": [asdict(pair) for pair in analysis.pairs],
        "rankings": [asdict(ranking) for ranking in analysis.rankings],
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
        "environment": dict(analysis.results.environment),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _cell(analysis: Analysis, cell: Cell) -> dict[str, Any]:
    found = view.place(analysis, cell.setting, cell.metric, cell.arm)
    return {
        **asdict(cell),
        "metric": cell.metric.name,
        "unit": cell.metric.unit,
        "better": cell.metric.better,
        "compare": cell.metric.compare,
        "primary": cell.metric.primary,
        "watcher": cell.metric.watcher or None,
        "rank": [found.first, found.last] if found else None,
    }
