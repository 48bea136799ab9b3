"""Turns a plan and its attempts into the form that results keep: names, titles and figures instead of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from tunnelmark.model.attempt import Attempt, folder_of
from tunnelmark.model.metrics import Metric
from tunnelmark.plan.lengths import too_short
from tunnelmark.plan.model import Plan, Topology
from tunnelmark.plan.routes import crossed
from tunnelmark.plan.struck import drawn, overtakes_undelayed, shares, wandering
from tunnelmark.record import results
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import PlanInfo, SampleRow, TrialRow, path_key
from tunnelmark.run.collection import COST
from tunnelmark.run.collectors.base import Collector
from tunnelmark.vpns.base import Driver
from tunnelmark.workloads.base import Endpoints, Traffic, Workload


def keep(journal: Journal, attempt: Attempt, workload: Workload[Any], watching: Sequence[Collector] = ()) -> TrialRow:
    """Append an attempt to the journal, and return the row as a reader of the journal will get it."""
    row = row_of(attempt, workload, watching)
    journal.append({"trial": asdict(row)})
    return row


def row_of(attempt: Attempt, workload: Workload[Any], watching: Sequence[Collector] = ()) -> TrialRow:
    """Return an attempt as a row of results: with names instead of objects, and each sample with its unit.

    `watching`: the collectors of the trial, whose metrics have units of their own.
    """
    options = workload.options.model_validate(attempt.trial.use.options)
    units = {metric.name: metric.unit for metric in metrics(workload.metrics_with(options), watching)}
    trial, failure = attempt.trial, attempt.failure
    return TrialRow(
        trial=trial.id,
        position=trial.position,
        block=trial.block,
        arm=trial.arm.name,
        profile=trial.profile.name,
        topology=trial.topology.name,
        workload=trial.use.name,
        link=attempt.link,
        outcome=attempt.outcome,
        started=attempt.started,
        phases=dict(attempt.phases),
        samples=tuple(SampleRow(s.metric, units[s.metric], s.value, s.time) for s in attempt.samples),
        first_packet=dict(attempt.first_packet),
        host=dict(attempt.host),
        reason=failure.kind if failure else None,
        message=failure.message if failure else None,
        hint=failure.hint if failure else None,
        log=failure.log if failure else None,
        raw=tuple(f"{results.RAW}/{folder_of(trial.id, attempt.number)}/{name}" for name in attempt.raw),
        notes=dict(attempt.notes),
        attempt=attempt.number,
        grade=attempt.graded.grade if attempt.graded else None,
        causes=attempt.graded.causes if attempt.graded else (),
        grades=dict(attempt.graded.grades) if attempt.graded else {},
        wanting=attempt.wanting,
        counted=attempt.counted,
        limits=dict(attempt.limits),
    )


def metrics(own: Sequence[Metric], watching: Sequence[Collector]) -> tuple[results.MetricInfo, ...]:
    """Return a workload's metrics (`own`), followed by the metrics of the trial's collectors (`watching`).

    A metric of a collector is left out if the workload declares one of the same name.
    """
    found = {metric.name: results.MetricInfo(**asdict(metric)) for metric in own}
    seen = [(collector.name, metric) for collector in watching for metric in collector.metrics]
    for collector, metric in [*seen, *([("cost", COST)] if watching else [])]:
        found.setdefault(metric.name, results.MetricInfo(**asdict(metric), watcher=collector))
    return tuple(found.values())


def describe(
    plan: Plan,
    drivers: Mapping[str, Driver[Any]],
    workloads: Mapping[str, Workload[Any]],
    watching: Callable[[Workload[Any]], Sequence[Collector]] = lambda _: (),
) -> PlanInfo:
    """Return the plan as results keep it: with titles, metrics and figures, so that a report needs no driver or workload.

    `watching` returns the collectors that run in the trials of a workload.
    """
    study = plan.study
    ways = {(p.name, t.name): (p, crossed(t, p)) for p, t in product(study.profiles, study.topologies)}
    cells = study.cells()
    uses = []
    for use in study.workloads:
        workload = workloads[use.workload]
        options = workload.options.model_validate(use.options)
        own = dict.fromkeys((p.name, t.name) for _, p, t, each in cells if each is use)
        met = {p.name: p for _, p, _, each in cells if each is use}
        over = {name: workload.options.model_validate(use.over(p).options) for name, p in met.items()}
        paths = {path_key(p, t) if len(study.topologies) > 1 else p: ways[p, t] for p, t in own}
        planned = {name: _traffic(workload, use.over(p, path).options) for name, (p, path) in paths.items()}
        traffic = next(iter(planned.values()))
        uses.append(
            results.WorkloadInfo(
                name=use.name,
                workload=use.workload,
                title=workload.title,
                serves=workload.serves,
                options=options.model_dump(mode="json"),
                metrics=metrics(workload.metrics_with(options), watching(workload)),
                window=traffic.window,
                warmup=traffic.warmup,
                offered=None if use.shares else workload.offered(options),
                offered_by={
                    name: offer for name, each in over.items() if use.shares and (offer := workload.offered(each))
                },
                window_by={name: each.window for name, each in planned.items() if each.window != traffic.window},
                warmup_by={name: each.warmup for name, each in planned.items() if each.warmup != traffic.warmup},
                short={
                    name: why for name, (_, path) in paths.items() if (why := too_short(use, path, workload.options))
                },
            )
        )
    return PlanInfo(
        study=study.name,
        title=study.title,
        description=study.description,
        seed=study.seed,
        blocks=study.blocks,
        arms=tuple(
            results.ArmInfo(
                arm.name,
                arm.vpn,
                arm.title or drivers[arm.vpn].title,
                dict(arm.options),
                arm.same_as,
                dict(arm.sysctls),
                str(arm.inner or ""),
                arm.cascade or "",
                dict(arm.programs),
                arm.behind_gateways,
            )
            for arm in study.arms
        ),
        profiles=tuple(
            results.ProfileInfo(
                p.name,
                p.title,
                p.source,
                None if p.rate is None else int(p.rate),
                None if p.queue is None else int(p.queue),
                impaired=not p.only_shaped,
                strikes=(dict(shares(p.forward, p.model, p.unit)), dict(shares(p.back, p.model, p.unit))),
                carried=None if p.carried is None else int(p.carried),
                wanders=(wandering(p.forward), wandering(p.back)),
                drawn=(drawn(p.forward, p.model, p.unit), drawn(p.back, p.model, p.unit)),
                back=None
                if p.back.rate is None or p.back.rate == p.rate
                else (int(p.back.rate), int(p.back.carried or p.back.rate)),
                undelayed=overtakes_undelayed(p.forward) or overtakes_undelayed(p.back),
            )
            for p in study.profiles
        ),
        topologies=tuple(topology_info(topology) for topology in study.topologies),
        workloads=tuple(uses),
        trials=tuple(trial.id for trial in plan.trials),
        smoke=study.smoke,
        full=study.full,
        watch=study.watch,
        attempts=study.attempts,
        replacements=study.replacements,
        cores=study.cores,
        enough=study.enough,
        design=study.design,
    )


def _traffic(workload: Workload[Any], options: Mapping[str, object]) -> Traffic:
    return workload.traffic(Endpoints.between("a", "b"), workload.options.model_validate(options))


def topology_info(topology: Topology) -> results.TopologyInfo:
    """Return a topology as results keep it."""
    return results.TopologyInfo(
        topology.name,
        topology.title,
        topology.nodes,
        {link.name: link.nodes for link in topology.links},
        {router.name: str(router) for router in topology.routers},
        {link.name: link.profile.name for link in topology.links if link.profile is not None},
    )
