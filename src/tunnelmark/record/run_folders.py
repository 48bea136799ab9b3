"""Finds the runs in folders that a user names (single runs, merged folders, folders of runs), and names each run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tunnelmark.errors import StoreError, UsageError
from tunnelmark.record import journal, several_runs, store
from tunnelmark.record.results import JOURNAL, Results

DEFAULT = Path("results")
"""The folder in which runs are written, relative to the working directory."""

_log = logging.getLogger(__name__)


def read(sources: Sequence[Path] = ()) -> Mapping[str, Results]:
    """Read the runs in these folders, in their order, by name; without `sources`, those below `results/`.

    A run that is there twice, alone and in a merged folder, is read once, with a warning. A run that cannot be read is
    left out with a warning, unless its own folder is in `sources`: then StoreError is raised. UsageError if no run is
    found.
    """
    named = list(sources) or [DEFAULT]
    if not sources and not DEFAULT.is_dir():
        raise UsageError(f"there is no folder {DEFAULT}/ here", hint="name the folder of a run")
    found: dict[Path, Results] = {}
    seen: dict[tuple[object, ...], Path] = {}
    for folder in sorted(_below(named), key=_copied):
        try:
            results = store.load(folder)
        except StoreError as error:
            if folder in named:
                raise
            _log.warning("%s is left out: %s", folder, error.message)
            continue
        mark = several_runs.mark(results)
        if mark in seen:
            if seen[mark].resolve() != folder.resolve():
                _log.warning("%s is the run that is in %s too, and is read once", folder, seen[mark])
            continue
        seen[mark] = folder
        found[folder] = results
    if not found:
        raise UsageError(
            f"there are no results in {' or '.join(map(str, named))}",
            hint="name the folder of a run, or call this where `results/` is",
        )
    names = _names(list(found))
    return {names[folder]: found[folder] for folder in _below(named) if folder in found}


def folders(sources: Iterable[Path]) -> Mapping[str, Path]:
    """Return the folders of all single runs in `sources`, by name, without reading them. Each name is unique."""
    found = _below(sources)
    names = _names(found)
    return {names[folder]: folder for folder in found}


def _below(sources: Iterable[Path]) -> list[Path]:
    """Return the folders of single runs: each source, the sessions of merged folders, and those in folders of such ones."""
    found: list[Path] = []
    for source in sources:
        if _is_run(source):
            found.append(source)
        elif several_runs.is_merged(source):
            found += several_runs.folders(source)
        elif source.is_dir():  # `results/`, or one run in each of several kernels
            inner = sorted(each for each in source.iterdir() if each.is_dir())
            found += _below(each for each in inner if _is_run(each) or several_runs.is_merged(each) or _has_runs(each))
        else:
            raise StoreError(f"{source} is not there", hint="name the folder of a run, or one that holds such folders")
    return list(dict.fromkeys(found))


def _is_run(folder: Path) -> bool:
    return journal.is_there(folder / JOURNAL)


def _has_runs(folder: Path) -> bool:
    return any(map(_is_run, folder.glob("*")))


def _copied(folder: Path) -> bool:
    """Return whether a run is a session of a merged folder.

    It may be a copy, so if the run is found twice, the other one is read.
    """
    return folder.parent.name == several_runs.SESSIONS


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Return a name for each run: its folder's name, with as many parent folders as are needed to make it unique."""
    made: dict[Path, str] = {}
    for folder in folders:
        parts = [part for part in folder.resolve().parts if part not in ("/", several_runs.SESSIONS)]
        others = [
            [part for part in other.resolve().parts if part not in ("/", several_runs.SESSIONS)]
            for other in folders
            if other != folder
        ]
        inner = 2 if _copied(folder) else 1
        length = next(
            (n for n in range(inner, len(parts)) if not any(other[-n:] == parts[-n:] for other in others)), len(parts)
        )
        made[folder] = "/".join(parts[-length:])
    return made
