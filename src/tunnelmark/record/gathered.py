"""Blocks of one study from several machines, gathered as a folder of several runs: a session for each machine, which grows block by block.

A block is in the results when its one line is in the journal of its session, and not before: raw output is there first, then the plan that names
its trials, then the line. What a kill leaves in between is tidied at the next start, and the block is measured again.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter

from tunnelmark.errors import DiskFull, StoreError
from tunnelmark.plan.load import write_inputs
from tunnelmark.record import results, several_runs, store
from tunnelmark.record.journal import Journal, entries
from tunnelmark.record.results import PlanInfo
from tunnelmark.record.several_runs import Member

MACHINE = "machine"
"""The file of a session that names its machine."""

_PLAN = TypeAdapter(PlanInfo)


ASKED = "gathered.json"
"""What a folder is asked to gather: the study's name and settings; its files are in `inputs/`. The command that gathers holds it (flock(2))."""

PROGRAMS = "programs.json"
"""With which programs the blocks of a folder are measured: what the first worker said of itself, where there is a block."""

_LOOK = "link."
"""How the folder of raw output of a look at a link begins; the others are those of trials, which have their block's number in their names."""


def is_gathered(folder: Path) -> bool:
    """Whether blocks of several machines are gathered in a folder."""
    return (folder / ASKED).is_file()


def of_one_machine(folder: Path) -> Path:
    """The run in a folder whose blocks one machine has measured all, which is a run as any other; else the folder itself."""
    if not is_gathered(folder):
        return folder
    places = several_runs.folders(folder)
    return places[0] if len(places) == 1 else folder


def asked_of(folder: Path) -> Mapping[str, Any]:
    """What a folder is asked to gather; StoreError if it gathers nothing."""
    try:
        found: Mapping[str, Any] = json.loads((folder / ASKED).read_text())
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{folder} gathers no blocks: {error}", hint="name the folder of a run over several machines"
        ) from None
    return found


def blocks_of(folder: Path) -> frozenset[int]:
    """The blocks that are in a folder, also while another command gathers there; nothing is tidied."""
    return frozenset(row["block"] for place in _places(folder) for row in _rows(place))


class GatheredRuns:
    """A folder that blocks are gathered in, by one process. Opening one that was begun tidies what a kill has left.

    It is held until it is closed, or the process ends: StoreError if another command holds it. Which blocks are there is read when it is
    opened and known from then on: keeping the thousandth costs what the first one did.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.asked = asked_of(folder)
        self._lock = _locked(folder)
        self._held = {place: blocks for place in _places(folder) if (blocks := _tidied(place))}
        self._machines = {(place / MACHINE).read_text(): place for place in self._held}
        self._note()

    @classmethod
    def begin(cls, folder: Path, inputs: Mapping[str, str], asked: Mapping[str, Any]) -> GatheredRuns:
        """Make the folder; StoreError if something is there already."""
        store.require_empty(folder)
        try:
            (folder / results.INPUTS).mkdir(parents=True)
            write_inputs(inputs, folder / results.INPUTS)
            _write(folder / ASKED, asked)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be written: {error.strerror}", hint="choose another with --out"
            ) from error
        return cls(folder)

    def __enter__(self) -> GatheredRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others gather there."""
        self._lock.close()

    @property
    def programs(self) -> Mapping[str, Any] | None:
        """With what the blocks that are there were measured, as `begun_with` was given it; None if there is none."""
        file = self._folder / PROGRAMS
        found: Mapping[str, Any] | None = json.loads(file.read_text()) if self.blocks and file.exists() else None
        return found

    def begun_with(self, environment: Mapping[str, Any]) -> None:
        """Write down with what the blocks are measured: what the first worker has said of itself. StoreError if that cannot be."""
        with self._writing():
            _write(self._folder / PROGRAMS, environment)

    @property
    def blocks(self) -> frozenset[int]:
        """The blocks that are in the results."""
        return frozenset(number for held in self._held.values() for number in held)

    def keep(self, machine: str, number: int, plan: str, environment: str, journal: Sequence[str], raw: bytes) -> bool:
        """Put a block into its machine's session. False if it is there already: then nothing is changed. StoreError if it cannot be written."""
        if any(number in held for held in self._held.values()):
            return False
        with self._writing():
            self._put(self._session(machine, environment), number, plan, journal, raw)
        return True

    def _put(self, place: Path, number: int, plan: str, journal: Sequence[str], raw: bytes) -> None:
        held = self._held[place]
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            members = archive.getmembers()
            for member in members:
                member.name = _of_block(member.name, number)
            archive.extractall(place / results.RAW, members, filter="data")
        info = _PLAN.validate_json(plan)
        if (place / results.PLAN).exists():
            known = store.load_plan(place)
            info = replace(info, trials=(*known.trials, *info.trials))
        store.write_plan(place, replace(info, blocks=len(held) + 1, replacements=0))
        with Journal(place / results.JOURNAL) as written:
            written.append({"block": number, "merged": [_renamed(json.loads(line), number) for line in journal]})
        held.add(number)
        if len(held) == 1:
            self._note()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except DiskFull as error:  # of the journal
            raise self._full() from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._full() from error
            raise StoreError(
                f"{self._folder} cannot be written: {error.strerror or error}",
                hint="check the folder and its permissions, then go on with --resume; no finished block is lost",
            ) from error

    def _full(self) -> DiskFull:
        return DiskFull(
            f"no space is left for results in {self._folder}",
            hint=f"free some space, then go on with `tunnelmark run --resume {self._folder}`; no finished block is lost",
        )

    def _session(self, machine: str, environment: str) -> Path:
        if machine in self._machines:
            return self._machines[machine]
        place = several_runs.place(self._folder, max((int(each.name) for each in self._held), default=0) + 1)
        shutil.rmtree(place, ignore_errors=True)  # begun and cut off, before it had a machine
        (place / results.RAW).mkdir(parents=True)
        shutil.copytree(self._folder / results.INPUTS, place / results.INPUTS)
        (place / results.ENVIRONMENT).write_text(environment)
        (place / MACHINE).write_text(machine)
        self._machines[machine] = place
        self._held[place] = set()
        return place

    def _note(self) -> None:
        several_runs.note(self._folder, [Member(place.name) for place, held in self._held.items() if held])


def _locked(folder: Path) -> IO[bytes]:
    """The file that is held as long as it is open; StoreError if another command holds it."""
    lock = (folder / ASKED).open("rb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StoreError(
            f"another command gathers blocks in {folder}", hint="wait for its end, or stop it; it can be gone on with"
        ) from None
    except OSError:  # a file system without such locks
        pass
    return lock


def _write(file: Path, content: Mapping[str, Any]) -> None:
    """The file is whole at every moment."""
    written = file.with_name(f"{file.name}.new")
    written.write_text(json.dumps(dict(content), indent=1))
    written.replace(file)


def _of_block(name: str, number: int) -> str:
    """The path of raw output as that of a block: its first look at a link has the same name as that of every other block."""
    folder, slash, rest = name.partition("/")
    return f"{folder}.block{number}{slash}{rest}" if folder.startswith(_LOOK) else name


def _renamed(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """A journal's entry that names the raw output of a look where `_of_block` has it."""
    if "link" not in entry:
        return entry
    top = f"{results.RAW}/"
    raw = [f"{top}{_of_block(file.removeprefix(top), number)}" for file in entry["link"]["raw"]]
    return {**entry, "link": {**entry["link"], "raw": raw}}


def _places(folder: Path) -> list[Path]:
    return sorted(path.parent for path in (folder / several_runs.SESSIONS).glob(f"*/{MACHINE}"))


def _rows(place: Path) -> list[dict[str, Any]]:
    journal = place / results.JOURNAL
    return [entry["trial"] for entry in entries(journal) if "trial" in entry] if journal.exists() else []


def _tidied(place: Path) -> set[int]:
    """The blocks in the journal of a session, from which all else is removed; a session without any is removed whole."""
    rows = _rows(place)
    blocks = {row["block"] for row in rows}
    if not blocks:
        shutil.rmtree(place)
        return blocks
    with Journal(place / results.JOURNAL):  # cuts a torn line off
        pass
    done = {row["trial"] for row in rows}
    info = store.load_plan(place)
    if set(info.trials) - done:
        kept = tuple(trial for trial in info.trials if trial in done)
        store.write_plan(place, replace(info, trials=kept, blocks=len(blocks)))
    store.discard_unfinished(place)
    return blocks
