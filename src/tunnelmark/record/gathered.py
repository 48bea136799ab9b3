"""Blocks of one study from several machines, gathered as a folder of several runs: a session for each machine, which grows block by block.

A block is in the results when its one line is in the journal of its session, and not before: raw output is there first, then the plan that names
its trials, then the line. What a kill leaves in between is tidied at the next start, and the block is measured again.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tunnelmark.errors import StoreError
from tunnelmark.plan.load import write_inputs
from tunnelmark.record import results, several_runs, store
from tunnelmark.record.journal import Journal, entries
from tunnelmark.record.results import PlanInfo
from tunnelmark.record.several_runs import Member

MACHINE = "machine"
"""The file of a session that names its machine."""

_PLAN = TypeAdapter(PlanInfo)


ASKED = "gathered.json"
"""What a folder is asked to gather: the study's name and settings; its files are in `inputs/`."""


def is_gathered(folder: Path) -> bool:
    """Whether blocks of several machines are gathered in a folder."""
    return (folder / ASKED).is_file()


def of_one_machine(folder: Path) -> Path:
    """The run in a folder whose blocks one machine has measured all, which is a run as any other; else the folder itself."""
    if not is_gathered(folder):
        return folder
    places = several_runs.folders(folder)
    return places[0] if len(places) == 1 else folder


class GatheredRuns:
    """A folder that blocks are gathered in, by one process. Opening one that was begun tidies what a kill has left.

    Which blocks are there is read when it is opened and known from then on: keeping the thousandth costs what the first one did.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self.asked: Mapping[str, Any] = json.loads((folder / ASKED).read_text())
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{folder} gathers no blocks: {error}", hint="name the folder of a run over several machines"
            ) from None
        self._held = {place: blocks for place in self._places() if (blocks := _tidied(place))}
        self._machines = {(place / MACHINE).read_text(): place for place in self._held}
        self._note()

    @classmethod
    def begin(cls, folder: Path, inputs: Mapping[str, str], asked: Mapping[str, Any]) -> GatheredRuns:
        """Make the folder; StoreError if something is there already."""
        store.require_empty(folder)
        try:
            (folder / results.INPUTS).mkdir(parents=True)
            write_inputs(inputs, folder / results.INPUTS)
            written = folder / f"{ASKED}.new"
            written.write_text(json.dumps(dict(asked), indent=1))
            written.replace(folder / ASKED)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be written: {error.strerror}", hint="choose another with --out"
            ) from error
        return cls(folder)

    @property
    def blocks(self) -> frozenset[int]:
        """The blocks that are in the results."""
        return frozenset(number for held in self._held.values() for number in held)

    def keep(self, machine: str, number: int, plan: str, environment: str, journal: Sequence[str], raw: bytes) -> bool:
        """Put a block into its machine's session. False if it is there already: then nothing is changed."""
        if any(number in held for held in self._held.values()):
            return False
        place = self._session(machine, environment)
        held = self._held[place]
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            archive.extractall(place / results.RAW, filter="data")
        info = _PLAN.validate_json(plan)
        if (place / results.PLAN).exists():
            known = store.load_plan(place)
            info = replace(info, trials=(*known.trials, *info.trials))
        store.write_plan(place, replace(info, blocks=len(held) + 1, replacements=0))
        with Journal(place / results.JOURNAL) as written:
            written.append({"block": number, "merged": [json.loads(line) for line in journal]})
        held.add(number)
        if len(held) == 1:
            self._note()
        return True

    def _session(self, machine: str, environment: str) -> Path:
        if machine in self._machines:
            return self._machines[machine]
        place = several_runs.place(self._folder, max((int(each.name) for each in self._held), default=0) + 1)
        shutil.rmtree(place, ignore_errors=True)  # begun and cut off, before it had a machine
        try:
            (place / results.RAW).mkdir(parents=True)
            shutil.copytree(self._folder / results.INPUTS, place / results.INPUTS)
            (place / results.ENVIRONMENT).write_text(environment)
            (place / MACHINE).write_text(machine)
        except OSError as error:
            raise StoreError(
                f"{place} cannot be written: {error.strerror}", hint="choose another folder with --out"
            ) from error
        self._machines[machine] = place
        self._held[place] = set()
        return place

    def _places(self) -> list[Path]:
        return sorted(path.parent for path in (self._folder / several_runs.SESSIONS).glob(f"*/{MACHINE}"))

    def _note(self) -> None:
        several_runs.note(self._folder, [Member(place.name) for place, held in self._held.items() if held])


def _tidied(place: Path) -> set[int]:
    """The blocks in the journal of a session, from which all else is removed; a session without any is removed whole."""
    journal = place / results.JOURNAL
    rows = [entry["trial"] for entry in entries(journal) if "trial" in entry] if journal.exists() else []
    blocks = {row["block"] for row in rows}
    if not blocks:
        shutil.rmtree(place)
        return blocks
    with Journal(journal):  # cuts a torn line off
        pass
    done = {row["trial"] for row in rows}
    info = store.load_plan(place)
    if set(info.trials) - done:
        kept = tuple(trial for trial in info.trials if trial in done)
        store.write_plan(place, replace(info, trials=kept, blocks=len(blocks)))
    store.discard_unfinished(place)
    return blocks
