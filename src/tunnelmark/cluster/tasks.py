"""The tasks for workers and their results, as plain data, because both ends may be machines of different kinds."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Study
from tunnelmark.record.fingerprint_diff import KEY

HOST = "worker_host"
"""The key of an environment (what a run records of its machine) for the name of the worker's machine."""


QEMU = "qemu"
"""The key of an environment for QEMU's version; it is there if blocks run in virtual machines."""


@dataclass(frozen=True, slots=True)
class BlockTask:
    """One block of a study, which one worker is to measure as a whole.

    `number`: the block's number; None: the worker only returns its facts (`WorkerFacts`).
    `inputs`: the texts of the study's files, by path. `settings`: the study's values that a command can change.
    `kernels`: the kernel of the virtual machine; (): the worker's own kernel.
    `measure`: the worker also measures its machine before and after the block, as `run` does. `wait`: the worker waits
    for other work to end. `command`: the words after `tunnelmark` of the command that spreads the study, which results record.
    """

    study: str
    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    number: int | None = None
    kernels: tuple[str, ...] = ()
    measure: bool = True
    wait: bool = True
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockDone:
    """A block that a worker has measured.

    `plan`, `environment`: the run's files as JSON. `journal`: the lines of its journal.
    `raw`: the run's raw output as a gzipped tar archive.
    `seconds`: how long the worker took, from getting the block until it had packed the result.
    """

    number: int
    worker: str
    plan: str
    environment: str
    journal: Sequence[str]
    raw: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """The facts of a worker: its environment as runs record it, and a hash of all programs that it measures with."""

    worker: str
    environment: Mapping[str, Any]
    programs: str


def task_of(
    study: Study, number: int | None, kernels: tuple[str, ...] = (), *, measure: bool = True, wait: bool = True
) -> BlockTask:
    """Return the task for a block; with `number` None, the task that asks a worker for its facts.

    The parameters are those of `BlockTask`; its command is that of this process. The task leaves out the study's `replacements` and `enough`, because a run
    over a cluster neither replaces blocks nor adds any.
    """
    settings = {
        "blocks": study.blocks,
        "seed": study.seed,
        "smoke": study.smoke,
        "full": study.full,
        "watch": list(study.watch),
        "attempts": study.attempts,
        "cores": study.cores,
    }
    return BlockTask(
        study.name, dict(study.inputs), settings, number, kernels, measure, wait, command=tuple(sys.argv[1:])
    )


def study_of(asked: Mapping[str, Any], inputs: Path, catalogue: Catalogue) -> Study:
    """Return the study of a task, read again from the study's files in the folder `inputs`.

    `asked`: the fields of a `BlockTask`, by name; only `study` and `settings` are used. PlanError if a file is wrong.
    """
    settings = dict(asked["settings"])
    attempts, cores = settings.pop("attempts"), settings.pop("cores")
    study = load_study(asked["study"], Files((inputs,)), catalogue, grows=False, **settings)
    return replace(study, attempts=attempts, cores=cores, replacements=0, enough=None)


def programs_hash(environment: Mapping[str, Any]) -> str:
    """Return a hash of all that must be equal on all workers: this program's version, and the bytes of every program
    that takes part.

    The programs' paths may differ.
    """
    kept = {
        "tunnelmark": environment.get("tunnelmark"),
        QEMU: environment.get(QEMU),
        "vpns": _programs(environment.get("vpns") or {}),
        "workloads": _programs(environment.get("workloads") or {}),
    }
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def differing(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return in words which programs of `theirs` differ from those of `mine` (two environments); [] if none does."""
    found = []
    if mine.get("tunnelmark") != theirs.get("tunnelmark"):
        found.append(f"tunnelmark {theirs.get('tunnelmark')}, not {mine.get('tunnelmark')}")
    if mine.get(QEMU) != theirs.get(QEMU):
        found.append(f"QEMU {theirs.get(QEMU)}, not {mine.get(QEMU)}")
    for kind in ("vpns", "workloads"):
        here, there = _programs(mine.get(kind) or {}), _programs(theirs.get(kind) or {})
        found += [f"{name} is not the same program" for name in {**here, **there} if here.get(name) != there.get(name)]
    return found


def machine_of(environment: Mapping[str, Any]) -> str:
    """Return a short hash (12 hex digits) that identifies one machine in one boot.

    All virtual machines whose clock counts instructions count as one machine, on whichever host they run.
    """
    look = environment.get(KEY) or {}
    counted = ((environment.get("guest") or {}).get("hardware") or {}).get("virtual_clock")
    kept = [look.get("identity"), look.get("boot"), None if counted else environment.get(HOST)]
    return hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:12]


def _programs(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {program: each.get("sha256") for program, each in (part.get("programs") or {}).items()}
        for name, part in parts.items()
        if name != "direct"  # the kernel and ip, which machines may differ in: the record has them
    }
