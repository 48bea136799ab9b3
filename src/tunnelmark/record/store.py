"""Writes and reads a results folder: makes it from a plan, appends trials to it, and loads it for reports."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from tunnelmark.errors import DiskFull, StoreError, TunnelmarkError
from tunnelmark.model.attempt import NOT_INSTALLED, folder_of
from tunnelmark.model.retries import Retries
from tunnelmark.plan.load import save_inputs
from tunnelmark.plan.model import Plan
from tunnelmark.record import json_file, parquet_schema, results
from tunnelmark.record.journal import Journal, entries
from tunnelmark.record.link_check import LinkCheck
from tunnelmark.record.results import BlockDecision, PlanInfo, Results, Session, TrialRow, YardstickRow

if TYPE_CHECKING:
    from tunnelmark.host.yardsticks import Yardsticks

SPARE = 16 << 20
"""Bytes that must be free before a trial starts, for its raw output, the journal and the report."""

_CELL = ("trial", "attempt", "block", "arm", "profile", "topology", "workload", "link")

_REPAIR = "restore the file from a copy, or read the results with the version named in environment.json"

_PLAN = TypeAdapter(PlanInfo)
_TRIAL = TypeAdapter(TrialRow)
_LINK_CHECK = TypeAdapter(LinkCheck)
_LOOK = TypeAdapter(YardstickRow)
_DECISION = TypeAdapter(BlockDecision)


def create(folder: Path, info: PlanInfo, plan: Plan, environment: Mapping[str, Any]) -> None:
    """Make a results folder. StoreError if the folder is not empty (see `require_empty`), or cannot be written.

    `info`: the plan as reports read it (`record.describe`), written to `plan.json`. `plan`: the plan that is carried
    out; only the files of its study are used, and copied to `inputs/`. `environment`: what `environment.json` will
    hold.
    """
    require_empty(folder)
    try:
        (folder / results.RAW).mkdir(parents=True)
        save_inputs(plan.study, folder / results.INPUTS)
        write_plan(folder, info)
        write_environment(folder, environment)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}", hint="choose another folder with --out"
        ) from error


def write_environment(folder: Path, environment: Mapping[str, Any]) -> None:
    """Write or replace the environment of a results folder. OSError if that fails."""
    json_file.write(folder / results.ENVIRONMENT, environment)


def write_plan(folder: Path, info: PlanInfo) -> None:
    """Write or replace the plan of a results folder. OSError if that fails."""
    json_file.write(folder / results.PLAN, _PLAN.dump_python(info, mode="json"))


def as_read(info: PlanInfo) -> PlanInfo:
    """Return a plan with the values that `load_plan` would return after `write_plan`.

    A tuple among an arm's options becomes a list, for example, because JSON has only lists. Call `as_read` before a new
    plan is compared with one that was read from a folder.
    """
    return _PLAN.validate_json(_PLAN.dump_json(info))


def require_empty(folder: Path) -> None:
    """Raise StoreError if a folder holds anything but output of a virtual machine (`vm`, `vm.2` ...)."""
    if folder.exists() and any(path.name.partition(".")[0] != results.VM for path in folder.iterdir()):
        raise StoreError(
            f"{folder} is not empty", hint=f"choose another folder, or go on with `tunnelmark run --resume {folder}`"
        )


def adopt(scratch: Path, folder: Path) -> None:
    """Move the folder `scratch`, with the raw output of an attempt or a link check, into `raw/` of a results folder.

    In a virtual machine, raw output is first written to memory, in `scratch`. Nothing is done if `scratch` does not
    exist, because the attempt could not begin.
    """
    if scratch.exists():  # it does not exist if the trial could not begin
        move(scratch, folder / results.RAW)


def move(thing: Path, folder: Path) -> None:
    """Move a file or folder into a folder of another file system.

    Owners and modes are not kept, because that file system may refuse them.
    """
    if thing.is_dir():
        (folder / thing.name).mkdir(parents=True, exist_ok=True)
        for each in sorted(thing.iterdir()):
            move(each, folder / thing.name)
        thing.rmdir()
    else:
        shutil.copyfile(thing, folder / thing.name)
        thing.unlink()


def require_space(folder: Path) -> None:
    """Raise DiskFull if less than `SPARE` bytes are free on the folder's disk; one trial may need that many."""
    if shutil.disk_usage(folder).free < SPARE:
        raise DiskFull(
            f"less than {SPARE >> 20} MiB are left for results in {folder}",
            hint=f"free some space, then go on with `tunnelmark run --resume {folder}`; no finished trial is lost",
        )


def discard_unfinished(
    folder: Path, installed: Callable[[str, str], bool] = lambda arm, workload: False
) -> dict[str, Retries]:
    """Remove the raw output of attempts and link checks that did not end, so that the run can go on.

    Return, by trial id, how many attempts at the trial have ended, and whether one of them settled the trial: it had a
    usable result, or the VPN failed, so the trial is not attempted again. A trial without such attempts is left out.
    `installed`: whether the programs of an arm and of a workload (names in the study) are there now. Trials that lacked
    the workload's are then not settled: in their session and block no arm had a result by that workload, so they can
    still be measured together.
    """
    lines = list(entries(folder / results.JOURNAL))
    rows = _by_session(lines)
    could_begin = {(session, _scenario(row)) for session, row in rows if row.get("reason") != NOT_INSTALLED}
    tries: dict[str, Retries] = {}
    done = set()
    for session, row in rows:
        number = row.get("attempt", 1)
        lacked = row.get("reason") == NOT_INSTALLED
        now = lacked and (session, _scenario(row)) not in could_begin and installed(row["arm"], row["workload"])
        wanting = row["outcome"] == "void" or row.get("wanting", False) or now
        tries[row["trial"]] = tries.get(row["trial"], Retries(0, False)).after(number, wanting=wanting, lacked=lacked)
        done.add(folder_of(row["trial"], number))
    checks = {Path(file).parent.name for entry in lines if "link" in entry for file in entry["link"]["raw"]}
    for raw in (folder / results.RAW).iterdir():
        if raw.name not in done | checks:
            shutil.rmtree(raw)
    return tries


def _by_session(lines: Sequence[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return each attempt with the number of its session."""
    found, session = [], 0
    for entry in lines:
        session += "begun" in entry
        if "trial" in entry:
            found.append((session, entry["trial"]))
    return found


def _scenario(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what all trials share that are compared with this one in its block."""
    return tuple(row.get(key) for key in ("block", "profile", "topology", "workload"))


def keep_link_check(journal: Journal, check: LinkCheck) -> None:
    """Append a link check to the journal."""
    journal.append({"link": asdict(check)})


def keep_decision(journal: Journal, decision: BlockDecision) -> None:
    """Append to the journal a run's decision about its number of blocks: to add more, or to end, and why."""
    journal.append({"blocks": asdict(decision)})


def keep_yardsticks(journal: Journal, when: Literal["before", "after"], taken: Callable[[], Yardsticks]) -> None:
    """Measure the yardsticks by calling `taken`, and append the results to the journal.

    If `taken` fails, the reason is appended instead, because a run can go on without yardsticks.
    """
    started = time.time()
    try:
        row = YardstickRow(when, started, **asdict(taken()))
    except TunnelmarkError as error:
        row = YardstickRow(when, started, absent={"all": error.message})
    journal.append({"yardsticks": asdict(row)})


def load_plan(folder: Path) -> PlanInfo:
    """Read the plan of a results folder. StoreError if there is none, or if this version cannot read it."""
    try:
        return _PLAN.validate_json(_read(folder, results.PLAN))
    except ValidationError as error:
        raise StoreError(
            f"{folder / results.PLAN} was not written by this version of tunnelmark: {error}", hint=_REPAIR
        ) from error


def load_environment(folder: Path) -> dict[str, Any]:
    """Read the environment of a results folder. StoreError if there is none, or if it is damaged."""
    try:
        found: dict[str, Any] = json.loads(_read(folder, results.ENVIRONMENT))
    except ValueError as error:
        raise StoreError(f"{folder / results.ENVIRONMENT} is damaged: {error}", hint=_REPAIR) from error
    return found


def load(folder: Path) -> Results:
    """Read a results folder. StoreError if its plan, its environment or its journal is missing or damaged."""
    info, environment = load_plan(folder), load_environment(folder)
    trials, sessions, checks, looks, decisions = [], [], [], [], []
    attempts: list[set[tuple[str, int]]] = [set()]  # by session; the first set is for entries before any session
    seen: list[set[tuple[str, str, float]]] = [set()]
    for entry in entries(folder / results.JOURNAL):
        if "trial" in entry:
            trials.append(row := _TRIAL.validate_python(entry["trial"]))
            attempts[-1].add((row.trial, row.attempt))
        elif "link" in entry:
            checks.append(check := _LINK_CHECK.validate_python(entry["link"]))
            seen[-1].add((check.profile, check.topology, check.started))
        elif "yardsticks" in entry:
            looks.append(_LOOK.validate_python(entry["yardsticks"]))
        elif "blocks" in entry:
            decisions.append(_DECISION.validate_python(entry["blocks"]))
        elif "begun" in entry:
            sessions.append(Session(entry["begun"], None, entry.get("boot", "")))
            attempts.append(set())
            seen.append(set())
        elif "wall" in entry:
            sessions[-1] = replace(sessions[-1], wall=entry["wall"])
    sessions = [
        replace(session, attempts=frozenset(own), looks=frozenset(met))
        for session, own, met in zip(sessions, attempts[1:], seen[1:], strict=True)
    ]
    return Results(
        folder, info, environment, tuple(trials), tuple(sessions), tuple(checks), tuple(looks), tuple(decisions)
    )


def tables(found: Results) -> tuple[pa.Table, pa.Table]:
    """Return two Arrow tables in the tidy schema (`parquet_schema`): a row per sample, and a row per attempt."""
    samples, trials = [], []
    for row in found.trials:
        cell = {key: getattr(row, key) for key in _CELL}
        cell["study"] = found.plan.study
        samples += [cell | asdict(sample) for sample in row.samples]
        plain = {key: value for key, value in asdict(row).items() if key != "samples"}
        trials.append(plain | {"study": found.plan.study})
    return pa.Table.from_pylist(samples, parquet_schema.SAMPLES), pa.Table.from_pylist(trials, parquet_schema.TRIALS)


def export(found: Results) -> None:
    """Write the two tables of `tables` as Parquet files into the results folder."""
    samples, trials = tables(found)
    pq.write_table(samples, found.path / "samples.parquet", compression="zstd")
    pq.write_table(trials, found.path / "trials.parquet", compression="zstd")


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError:
        raise StoreError(f"{folder} holds no results", hint="name the folder that a run has written") from None
