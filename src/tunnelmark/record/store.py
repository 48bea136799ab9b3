"""A results folder being written and read: made from a plan, appended to by trials, loaded for reports."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from tunnelmark.errors import DiskFull, StoreError, TunnelmarkError
from tunnelmark.host.yardsticks import Yardsticks
from tunnelmark.model.attempt import Attempt, folder_of
from tunnelmark.model.metrics import Metric
from tunnelmark.model.retries import Retries
from tunnelmark.plan.lengths import too_short
from tunnelmark.plan.load import save_inputs
from tunnelmark.plan.model import Plan
from tunnelmark.plan.struck import shares, wandering
from tunnelmark.record import parquet_schema, results
from tunnelmark.record.journal import Journal, entries
from tunnelmark.record.results import LinkProof, PlanInfo, Results, SampleRow, Session, TrialRow, YardstickRow
from tunnelmark.run.collection import COST
from tunnelmark.run.collectors.base import Collector
from tunnelmark.vpns.base import Driver
from tunnelmark.workloads.base import Endpoints, Workload

SPARE = 16 << 20
"""Bytes that must be free before a trial starts: its raw output, the journal and the report."""

_CELL = ("trial", "attempt", "block", "arm", "profile", "topology", "workload", "link")

_REPAIR = "restore the file from a copy, or read the results with the version named in environment.json"

_PLAN = TypeAdapter(PlanInfo)
_TRIAL = TypeAdapter(TrialRow)
_PROOF = TypeAdapter(LinkProof)
_LOOK = TypeAdapter(YardstickRow)


def create(folder: Path, info: PlanInfo, plan: Plan, environment: Mapping[str, Any]) -> None:
    """Make a results folder; StoreError if something is there already."""
    require_empty(folder)
    try:
        (folder / results.RAW).mkdir(parents=True)
        save_inputs(plan.study, folder / results.INPUTS)
        write_plan(folder, info)
        _write(folder / results.ENVIRONMENT, dict(environment))
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}", hint="choose another folder with --out"
        ) from error


def write_plan(folder: Path, info: PlanInfo) -> None:
    """Have a results folder ask for this; the file is whole at every moment. OSError if it cannot be written."""
    written = folder / f"{results.PLAN}.new"
    _write(written, _PLAN.dump_python(info, mode="json"))
    written.replace(folder / results.PLAN)


def as_read(info: PlanInfo) -> PlanInfo:
    """A plan as it comes back from a results folder."""
    return _PLAN.validate_json(_PLAN.dump_json(info))


def require_empty(folder: Path) -> None:
    """StoreError if a folder holds anything but what a virtual machine has written there."""
    if folder.exists() and any(path.name.partition(".")[0] != results.VM for path in folder.iterdir()):
        raise StoreError(
            f"{folder} is not empty", hint=f"choose another folder, or go on with `tunnelmark run --resume {folder}`"
        )


def adopt(scratch: Path, folder: Path) -> None:
    """Move a trial's raw output into a results folder: a study in a virtual machine writes it to memory first."""
    if scratch.exists():  # not there if the trial could not even begin
        move(scratch, folder / results.RAW)


def move(thing: Path, folder: Path) -> None:
    """Move a file or folder into a folder of another file system, but for owners and modes, which that may refuse."""
    if thing.is_dir():
        (folder / thing.name).mkdir(parents=True, exist_ok=True)
        for each in sorted(thing.iterdir()):
            move(each, folder / thing.name)
        thing.rmdir()
    else:
        shutil.copyfile(thing, folder / thing.name)
        thing.unlink()


def require_space(folder: Path) -> None:
    """DiskFull if a further trial might not find room for what it leaves."""
    if shutil.disk_usage(folder).free < SPARE:
        raise DiskFull(
            f"less than {SPARE >> 20} MiB are left for results in {folder}",
            hint=f"free some space, then go on with `tunnelmark run --resume {folder}`; no finished trial is lost",
        )


def discard_unfinished(folder: Path) -> dict[str, Retries]:
    """The attempts of each trial that has any, by its id; raw output of what was cut off is removed."""
    lines = list(entries(folder / results.JOURNAL))
    tries: dict[str, Retries] = {}
    done = set()
    for row in (entry["trial"] for entry in lines if "trial" in entry):
        number = row.get("attempt", 1)
        wanting = row["outcome"] == "void" or row.get("wanting", False)
        settled = row["trial"] in tries and tries[row["trial"]].settled
        tries[row["trial"]] = Retries(number, settled or not wanting)
        done.add(folder_of(row["trial"], number))
    proofs = {Path(file).parent.name for entry in lines if "link" in entry for file in entry["link"]["raw"]}
    for raw in (folder / results.RAW).iterdir():
        if raw.name not in done | proofs:
            shutil.rmtree(raw)
    return tries


def keep(journal: Journal, attempt: Attempt, workload: Workload, watching: Sequence[Collector] = ()) -> TrialRow:
    """Append an attempt to the journal; the row as it will be read."""
    row = row_of(attempt, workload, watching)
    journal.append({"trial": asdict(row)})
    return row


def keep_proof(journal: Journal, proof: LinkProof) -> None:
    """Append a look at a link to the journal."""
    journal.append({"link": asdict(proof)})


def keep_yardsticks(journal: Journal, when: Literal["before", "after"], taken: Callable[[], Yardsticks]) -> None:
    """Take the machine's yardsticks and append them to the journal, or why they could not be taken: no run depends on them."""
    started = time.time()
    try:
        row = YardstickRow(when, started, **asdict(taken()))
    except TunnelmarkError as error:
        row = YardstickRow(when, started, absent={"all": error.message})
    journal.append({"yardsticks": asdict(row)})


def load_plan(folder: Path) -> PlanInfo:
    """What the results of a folder were asked to be; StoreError if it holds none."""
    try:
        return _PLAN.validate_json(_read(folder, results.PLAN))
    except ValidationError as error:
        raise StoreError(
            f"{folder / results.PLAN} was not written by this version of tunnelmark: {error}", hint=_REPAIR
        ) from error


def load_environment(folder: Path) -> dict[str, Any]:
    """Where the results of a folder were measured; StoreError if it holds none."""
    try:
        found: dict[str, Any] = json.loads(_read(folder, results.ENVIRONMENT))
    except ValueError as error:
        raise StoreError(f"{folder / results.ENVIRONMENT} is damaged: {error}", hint=_REPAIR) from error
    return found


def load(folder: Path) -> Results:
    """Read a results folder; StoreError says what is wrong with it."""
    info, environment = load_plan(folder), load_environment(folder)
    trials, sessions, proofs, looks = [], [], [], []
    for entry in entries(folder / results.JOURNAL):
        if "trial" in entry:
            trials.append(_TRIAL.validate_python(entry["trial"]))
        elif "link" in entry:
            proofs.append(_PROOF.validate_python(entry["link"]))
        elif "yardsticks" in entry:
            looks.append(_LOOK.validate_python(entry["yardsticks"]))
        elif "begun" in entry:
            sessions.append(Session(entry["begun"], None, entry.get("boot", "")))
        elif "wall" in entry:
            sessions[-1] = replace(sessions[-1], wall=entry["wall"])
    return Results(folder, info, environment, tuple(trials), tuple(sessions), tuple(proofs), tuple(looks))


def tables(found: Results) -> tuple[pa.Table, pa.Table]:
    """The journal as two Arrow tables in the tidy schema: samples, trials."""
    samples, trials = [], []
    for row in found.trials:
        cell = {key: getattr(row, key) for key in _CELL}
        cell["study"] = found.plan.study
        samples += [cell | asdict(sample) for sample in row.samples]
        plain = {key: value for key, value in asdict(row).items() if key != "samples"}
        trials.append(plain | {"study": found.plan.study})
    return pa.Table.from_pylist(samples, parquet_schema.SAMPLES), pa.Table.from_pylist(trials, parquet_schema.TRIALS)


def export(found: Results) -> None:
    """Write the journal as Parquet files beside it."""
    samples, trials = tables(found)
    pq.write_table(samples, found.path / "samples.parquet", compression="zstd")
    pq.write_table(trials, found.path / "trials.parquet", compression="zstd")


def row_of(attempt: Attempt, workload: Workload, watching: Sequence[Collector] = ()) -> TrialRow:
    """An attempt as a row: names instead of objects, and each sample with its unit."""
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
    """A workload's metrics, followed by those of the trial's watchers that it does not declare itself."""
    found = {metric.name: results.MetricInfo(**asdict(metric)) for metric in own}
    seen = [(collector.name, metric) for collector in watching for metric in collector.metrics]
    for collector, metric in [*seen, *([("cost", COST)] if watching else [])]:
        found.setdefault(metric.name, results.MetricInfo(**asdict(metric), collector=collector))
    return tuple(found.values())


def describe(
    plan: Plan,
    drivers: Mapping[str, Driver],
    workloads: Mapping[str, Workload],
    watching: Callable[[Workload], Sequence[Collector]] = lambda _: (),
) -> PlanInfo:
    """The plan as results keep it, with titles, metrics and figures, so that a report needs nothing else.

    `watching` says which watchers the trials of a workload have.
    """
    study = plan.study
    uses = []
    for use in study.workloads:
        workload = workloads[use.workload]
        options = workload.options.model_validate(use.options)
        over = {p.name: workload.options.model_validate(use.over(p).options) for p in study.profiles}
        planned = {name: workload.traffic(Endpoints.between("a", "b"), own) for name, own in over.items()}
        traffic = next(iter(planned.values()))
        uses.append(
            results.WorkloadInfo(
                name=use.name,
                workload=use.workload,
                title=workload.title,
                options=options.model_dump(mode="json"),
                metrics=metrics(workload.metrics_with(options), watching(workload)),
                window=traffic.window,
                warmup=traffic.warmup,
                offered=None if use.shares else workload.offered(options),
                offered_by={
                    name: offer for name, own in over.items() if use.shares and (offer := workload.offered(own))
                },
                window_by={name: each.window for name, each in planned.items() if each.window != traffic.window},
                short={p.name: why for p in study.profiles if (why := too_short(use, p, workload.options))},
            )
        )
    return PlanInfo(
        study=study.name,
        title=study.title,
        description=study.description,
        seed=study.seed,
        blocks=study.blocks,
        arms=tuple(
            results.ArmInfo(arm.name, arm.vpn, drivers[arm.vpn].title, dict(arm.options), arm.same_as)
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
                strikes=(dict(shares(p.forward, p.model)), dict(shares(p.back, p.model))),
                carried=None if p.carried is None else int(p.carried),
                wanders=(wandering(p.forward), wandering(p.back)),
            )
            for p in study.profiles
        ),
        topologies=tuple(
            results.TopologyInfo(t.name, t.title, t.nodes, {link.name: link.nodes for link in t.links})
            for t in study.topologies
        ),
        workloads=tuple(uses),
        trials=tuple(trial.id for trial in plan.trials),
        smoke=study.smoke,
        watch=study.watch,
        attempts=study.attempts,
        replacements=study.replacements,
        cores=study.cores,
    )


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise StoreError(f"{folder} holds no results", hint="name the folder that a run has written") from None


def _write(path: Path, content: dict[str, Any]) -> None:
    with path.open("w") as file:
        json.dump(content, file, indent=2, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
