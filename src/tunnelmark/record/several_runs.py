"""A folder of several runs that belong together: `merged.json` names them, and each is a results folder below `sessions/`.

Layout:

    merged.json        the runs, in order, and the folder from which each was copied
    sessions/01/       if `tunnelmark repeat` measured the run: a whole results folder. If `tunnelmark merge` copied it:
                       its plan, environment, inputs and journal, from which every figure can be made, without raw output.
    report.md, report.html
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tunnelmark
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.record import journal, json_file, results, store
from tunnelmark.record.results import Results

FILE, SESSIONS = "merged.json", "sessions"
SCHEMA = 1

_COPIED = (results.PLAN, results.ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a merged folder: its name there, and the folder from which it was copied ("" if it was measured there)."""

    name: str
    origin: str = ""


def is_merged(folder: Path) -> bool:
    """Return whether a folder is a merged one, which holds several runs."""
    return (folder / FILE).is_file()


def place(folder: Path, number: int) -> Path:
    """Return the folder of a run by its number; the first run has number 1."""
    return folder / SESSIONS / f"{number:02d}"


def members(folder: Path) -> tuple[Member, ...]:
    """Return the runs of a merged folder in order; StoreError if its `merged.json` is damaged."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return tuple(Member(**each) for each in found["sessions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / FILE} is damaged: {error}", hint="merge the runs again") from error


def note(folder: Path, found: Sequence[Member]) -> None:
    """Write `merged.json`, which names a folder's runs."""
    content = {"schema": SCHEMA, "tunnelmark": tunnelmark.__version__, "sessions": [asdict(each) for each in found]}
    folder.mkdir(parents=True, exist_ok=True)
    json_file.write(folder / FILE, content)


def load(folder: Path) -> tuple[tuple[Member, Results], ...]:
    """Read every run of a merged folder. StoreError if one cannot be read, or if the folder has no run yet."""
    if not members(folder):
        raise StoreError(f"{folder} has no session that has ended", hint="go on with `tunnelmark repeat` and its --out")
    return tuple((member, store.load(folder / SESSIONS / member.name)) for member in members(folder))


def join(folder: Path, sources: Sequence[Path]) -> None:
    """Copy runs into a new merged folder, without their raw output. Of a source that is merged, all runs are copied.

    UsageError if the same run is named twice, because it would count as two runs. StoreError if `folder` is not empty
    or cannot be written, or if a run cannot be read.
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
    """Return a key that identifies a run and is the same for its copies: when it was begun, its seed, and its study."""
    return (*(session.started for session in found.sessions[:1]), found.plan.seed, found.plan.study)


def folders(merged: Path) -> list[Path]:
    """Return the folders of a merged folder's runs, in order; StoreError if its `merged.json` is damaged."""
    return [merged / SESSIONS / each.name for each in members(merged)]


def _runs(source: Path) -> list[Path]:
    return folders(source) if is_merged(source) else [source]
