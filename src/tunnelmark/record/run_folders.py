"""Which runs are in the folders that are named: single runs, sessions of merged ones, folders of several; each once, by a name of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tunnelmark.errors import StoreError, UsageError
from tunnelmark.record import journal, several_runs, store
from tunnelmark.record.results import JOURNAL, Results

DEFAULT = Path("results")
"""Where runs are written, below the folder in which the command is called."""

_log = logging.getLogger(__name__)


def read(sources: Sequence[Path] = ()) -> Mapping[str, Results]:
    """The runs in these folders by name, in their order; without any, those below `results/`.

    A run that is there twice, itself and in a merged folder, is read once, and a warning says so. A folder that was not named
    and cannot be read is left out with a warning; StoreError for one that was named, UsageError where there is no run at all.
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
    """The folders of single runs in these, each by the name that tells it apart, without reading them."""
    found = _below(sources)
    names = _names(found)
    return {names[folder]: folder for folder in found}


def _below(sources: Iterable[Path]) -> list[Path]:
    """The folders of single runs: each source itself, the sessions of a merged one, or what is in a folder of either."""
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
    """Whether a run is a session of a merged folder, which may be a copy: of two, the other one is the run."""
    return folder.parent.name == several_runs.SESSIONS


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The shortest names that tell runs apart: of the folder, with those above it where two are alike."""
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
