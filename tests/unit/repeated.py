"""Results of a study that tunnelmark brings, as if it had been run: values as the source printed them where it did, else one for all arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tunnelmark import registry
from tunnelmark.claims import reading
from tunnelmark.claims.model import ClaimsFile
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Trial
from tunnelmark.plan.order import order
from tunnelmark.record.describe import describe
from tunnelmark.record.results import PlanInfo, Results, SampleRow, Session, TrialRow

NOISE = 0.02
"""Of a value, relative: small, so that claims are decided."""


def results(
    study: str,
    blocks: int = 3,
    *,
    full: bool = False,
    smoke: bool = False,
    environment: Mapping[str, Any] | None = None,
    fails: frozenset[str] = frozenset(),
    seed: int = 3,
) -> Results:
    """A run of the study of that name; arms in `fails` never came up."""
    loaded = load_study(study, Files.standard(), registry.catalogue(), full=full, smoke=smoke)
    plan = order(replace(loaded, blocks=blocks))
    info = replace(describe(plan, registry.vpns(), registry.workloads()), full=full, smoke=smoke)
    claims = reading.of_study(study)
    true = _printed(claims) if claims is not None else {}
    random, clock, rows = np.random.default_rng(seed), 1_790_000_000.0, []
    for trial in plan.trials:
        row = _trial(random, trial, info, true, clock, failed=trial.arm.name in fails)
        clock += sum(row.phases.values())
        rows.append(row)
    return Results(Path("results") / study, info, environment or {}, tuple(rows), sessions=(Session(rows[0].started, clock - rows[0].started),))  # fmt: skip


def _printed(claims: ClaimsFile) -> dict[tuple[str, str, str, str], float]:
    """By arm, profile, workload and metric what the source printed, in the metric's unit."""
    found = {}
    for cell, printed in claims.printed.items():
        quantity, condition = claims.quantities[cell.quantity], claims.conditions[cell.condition]
        if cell.arm in claims.arms and quantity.metric and quantity.statistic is None:
            key = (claims.arms[cell.arm], condition.profile, quantity.workload, quantity.metric)
            found[key] = printed.value * quantity.factor
    return found


def _trial(
    random: np.random.Generator,
    trial: Trial,
    info: PlanInfo,
    true: Mapping[tuple[str, str, str, str], float],
    clock: float,
    *,
    failed: bool,
) -> TrialRow:
    use = next(use for use in info.workloads if use.name == trial.use.name)

    def samples() -> Iterator[SampleRow]:
        for metric in use.metrics:
            key = (trial.arm.same_as or trial.arm.name, trial.profile.name, use.name, metric.name)
            if key in true or metric.primary:
                yield SampleRow(metric.name, metric.unit, true.get(key, 1e6) * float(np.exp(random.normal(0, NOISE))))

    row = TrialRow(
        trial=trial.id,
        position=trial.position,
        block=trial.block,
        arm=trial.arm.name,
        profile=trial.profile.name,
        topology=trial.topology.name,
        workload=use.name,
        link="a>b",
        outcome="ok",
        started=clock,
        phases={"lab": 0.2, "ready": 0.3, "warmup": use.warmup, "measure": use.window},
        samples=tuple(samples()),
        first_packet={"a>b": 0.2, "b>a": 0.2},
    )
    if not failed:
        return row
    return replace(row, outcome="failed", samples=(), first_packet={}, reason="not-ready", message="no ping", hint="see the log")  # fmt: skip
