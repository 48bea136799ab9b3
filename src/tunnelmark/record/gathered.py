"""Gathers the blocks of one study from several machines in one folder, which has a session for each machine.

A block counts as measured when its one line is in the journal of its session. Its raw output is written first, then the
plan with its trials, then that line. If the command is killed in between, the next start removes the incomplete parts,
and the block is measured again.
"""

from __future__ import annotations

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
from tunnelmark.record import json_file, results, several_runs, store
from tunnelmark.record.journal import FULL, Journal, entries
from tunnelmark.record.results import PlanInfo
from tunnelmark.record.several_runs import Member

MACHINE = "machine"
"""The file of a session that names its machine."""

_PLAN = TypeAdapter(PlanInfo)


ASKED = "gathered.json"
"""The file with the name and the settings of the study whose blocks are gathered; the study's files are in `inputs/`.

The command that gathers keeps a lock on it (flock(2)).
"""

PROGRAMS = "programs.json"
"""The file that says with which programs the blocks of a folder are measured: the environment of the first worker."""

_LOOK = "link."
"""The prefix of the raw output of a link check. The other folders are those of trials, whose names have the block."""


def is_gathered(folder: Path) -> bool:
    """Return whether a folder is one in which blocks of several machines are gathered."""
    return (folder / ASKED).is_file()


def of_one_machine(folder: Path) -> Path:
    """Return the folder of the only session if one machine has measured all gathered blocks; else the folder itself."""
    if not is_gathered(folder):
        return folder
    places = several_runs.folders(folder)
    return places[0] if len(places) == 1 else folder


def asked_of(folder: Path) -> Mapping[str, Any]:
    """Return the name and settings of the study that a folder gathers (`ASKED`); StoreError if it gathers none."""
    try:
        found: Mapping[str, Any] = json.loads((folder / ASKED).read_text())
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{folder} gathers no blocks: {error}", hint="name the folder of a run over several machines"
        ) from None
    return found


def blocks_of(folder: Path) -> frozenset[int]:
    """Return the numbers of the blocks in a folder. It only reads, so another command may gather there meanwhile."""
    return frozenset(row["block"] for place in _places(folder) for row in _rows(place))


class GatheredRuns:
    """A folder in which one process gathers blocks. When it is opened, incomplete blocks of a killed command are removed.

    The folder is locked until `close` is called or the process ends; StoreError if another command has locked it. The
    journals are read once, when it is opened: so adding the thousandth block costs no more than adding the first one.
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
        """Make and open the folder; StoreError if the folder exists and is not empty, or cannot be written.

        `inputs`: the study's files, text by path. `asked`: the name and the settings of the study (`ASKED`).
        """
        store.require_empty(folder)
        try:
            (folder / results.INPUTS).mkdir(parents=True)
            write_inputs(inputs, folder / results.INPUTS)
            json_file.write(folder / ASKED, asked)
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
        """Unlock the folder, so that another command can gather there."""
        self._lock.close()

    @property
    def programs(self) -> Mapping[str, Any] | None:
        """The environment with which the folder's blocks were measured (see `begun_with`).

        None before the first block.
        """
        file = self._folder / PROGRAMS
        found: Mapping[str, Any] | None = json.loads(file.read_text()) if self.blocks and file.exists() else None
        return found

    def begun_with(self, environment: Mapping[str, Any]) -> None:
        """Record the environment of the first worker, the first host that measures blocks.

        All blocks are measured with the programs of that environment. Call it before the first `keep`; a further call
        replaces the record. StoreError if the record cannot be written.
        """
        with self._writing():
            json_file.write(self._folder / PROGRAMS, environment)

    @property
    def blocks(self) -> frozenset[int]:
        """The numbers of the blocks that are in the results."""
        return frozenset(number for held in self._held.values() for number in held)

    def keep(self, machine: str, number: int, plan: str, environment: str, journal: Sequence[str], raw: bytes) -> bool:
        """Add block `number` to the session of its machine, and return True.

        `machine`: the machine's name. `plan`, `environment`: the texts of these two JSON files. `journal`: the lines of
        the block's journal. `raw`: a tar archive of its raw output. If the block is in the results already, nothing is
        changed, and False is returned. StoreError if it cannot be written (DiskFull if the disk is full).
        """
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
            if error.errno in FULL:
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
        shutil.rmtree(place, ignore_errors=True)  # left by a command that was killed before it wrote the machine's name
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
    """Lock the folder, and return the file that holds the lock while it is open.

    StoreError if another command has it.
    """
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


def _of_block(name: str, number: int) -> str:
    """Return the path of raw output.

    That of a link check gets the block's number, as all blocks give it the same name.
    """
    folder, slash, rest = name.partition("/")
    return f"{folder}.block{number}{slash}{rest}" if folder.startswith(_LOOK) else name


def _renamed(entry: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a journal's entry; the raw output of a link check is named in it as `_of_block` names it."""
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
    """Return the blocks in a session's journal, and remove from the session all plans and raw output of other blocks.

    A session without a block is removed.
    """
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
