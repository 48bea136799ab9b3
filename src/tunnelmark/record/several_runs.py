"""A folder of several runs that belong together: `merged.json` names them, and each is a results folder below `sessions/`.

Layout:

    merged.json        which runs, in order, and where each came from
    sessions/01/       a whole results folder where `tunnelmark repeat` measured it. Where `tunnelmark merge` joined a run from
                       elsewhere: its plan, environment, inputs and journal, from which every figure is made again. Its raw
                       output stays where it was.
    report.md, report.html
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tunnelmark
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.record import journal, results, store
from tunnelmark.record.results import Results

FILE, SESSIONS = "merged.json", "sessions"
SCHEMA = 1

_COPIED = (results.PLAN, results.ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a merged folder: its name there, and the folder that it was copied from (empty: measured in place)."""

    name: str
    origin: str = ""


def is_merged(folder: Path) -> bool:
    """Whether a folder holds several runs, not one."""
    return (folder / FILE).is_file()


def place(folder: Path, number: int) -> Path:
    """The folder of the run of that number, from 1."""
    return folder / SESSIONS / f"{number:02d}"


def members(folder: Path) -> tuple[Member, ...]:
    """The runs of a merged folder in order; StoreError if it is damaged."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return tuple(Member(**each) for each in found["sessions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / FILE} is damaged: {error}", hint="merge the runs again") from error


def note(folder: Path, found: Sequence[Member]) -> None:
    """Write down which runs a folder holds; the file is whole or not there."""
    content = {"schema": SCHEMA, "tunnelmark": tunnelmark.__version__, "sessions": [asdict(each) for each in found]}
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f"{FILE}.new"
    with written.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    written.replace(folder / FILE)


def load(folder: Path) -> tuple[tuple[Member, Results], ...]:
    """Every run of a merged folder, read back; StoreError says what is wrong with one, or that there is none yet."""
    if not members(folder):
        raise StoreError(f"{folder} has no session that has ended", hint="go on with `tunnelmark repeat` and its --out")
    return tuple((member, store.load(folder / SESSIONS / member.name)) for member in members(folder))


def join(folder: Path, sources: Sequence[Path]) -> None:
    """Copy what makes the figures of these results into a new merged folder; those of merged ones one by one.

    UsageError if the same run would be in it twice: it would be taken for two.
    """
    store.require_empty(folder)
    runs = [run for source in sources for run in _runs(source)]
    seen: dict[tuple[object, ...], Path] = {}
    for run in runs:
        found = store.load(run)
        if (known := seen.get(mark(found))) is not None:
            raise UsageError(
                f"{run} is the same run as {known}",
                hint="name each run once; a merged folder holds all of its runs",
            )
        seen[mark(found)] = run
    made = []
    try:
        for number, run in enumerate(runs, start=1):
            to = place(folder, number)
            to.mkdir(parents=True)
            for name in _COPIED:
                shutil.copyfile(run / name, to / name)
            (to / results.JOURNAL).write_bytes(journal.read(run / results.JOURNAL))
            if (run / results.INPUTS).is_dir():
                shutil.copytree(run / results.INPUTS, to / results.INPUTS)
            made.append(Member(to.name, str(run)))
        note(folder, made)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}", hint="choose another with --out") from error


def mark(found: Results) -> tuple[object, ...]:
    """What two copies of a run share, and no two runs: when it was begun, its seed and its study."""
    return (*(session.started for session in found.sessions[:1]), found.plan.seed, found.plan.study)


def folders(merged: Path) -> list[Path]:
    """The folders of the runs of a merged folder, in order; StoreError if it is damaged."""
    return [merged / SESSIONS / each.name for each in members(merged)]


def _runs(source: Path) -> list[Path]:
    return folders(source) if is_merged(source) else [source]
