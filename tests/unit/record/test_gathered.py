"""Blocks of several machines in one folder: each is there whole or not at all, with raw output of its own, and one command writes at a time."""

from __future__ import annotations

import errno
import os
import tarfile
from pathlib import Path

import pytest

from tunnelmark.errors import DiskFull, StoreError
from tunnelmark.record import several_runs, store
from tunnelmark.record.gathered import GatheredRuns, blocks_of
from unit.gathered_blocks import STUDY, block


def trials(folder: Path) -> list[str]:
    return sorted(row.trial for _, results in several_runs.load(folder) for row in results.trials)


def test_blocks_of_machines_are_sessions_of_one_folder_with_the_plan_of_one_machine(tmp_path: Path) -> None:
    gathered = GatheredRuns.begin(tmp_path / "run", {}, {"study": "study"})
    for number in range(1, 9):
        assert gathered.keep(**block(number, f"m{number % 3}"))
    assert trials(tmp_path / "run") == sorted(STUDY.results().plan.trials)
    sizes = [(results.plan.blocks, results.finished) for _, results in several_runs.load(tmp_path / "run")]
    assert sizes == [(3, True), (3, True), (2, True)]
    assert (
        tmp_path / "run" / "sessions" / "01" / "raw" / "001.direct.gigabit.pair.tcp" / "out"
    ).read_bytes() == b"output"


def test_a_block_that_comes_twice_is_kept_once(tmp_path: Path) -> None:
    gathered = GatheredRuns.begin(tmp_path / "run", {}, {"study": "study"})
    assert gathered.keep(**block(1)) and not gathered.keep(**block(1, "m2"))
    assert len(trials(tmp_path / "run")) == 2


@pytest.mark.parametrize("cut", ["journal line", "plan only", "new session"])
def test_what_a_kill_leaves_of_a_block_is_no_part_of_the_results(cut: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    gathered = GatheredRuns.begin(folder, {}, {"study": "study"})
    gathered.keep(**block(1))
    journal = folder / "sessions" / "01" / "journal.jsonl"
    whole = journal.read_bytes()
    gathered.keep(**block(2, "m2" if cut == "new session" else "m1"))
    gathered.close()  # as the kernel does
    if cut == "new session":
        (folder / "sessions" / "02" / "journal.jsonl").write_bytes(b"")
    else:
        journal.write_bytes(whole + (journal.read_bytes()[len(whole) : -20] if cut == "journal line" else b""))
    again = GatheredRuns(folder)
    assert again.blocks == {1}
    assert len(trials(folder)) == 2
    assert again.keep(**block(2))
    assert sorted(again.blocks) == [1, 2] and len(trials(folder)) == 4
    assert store.load(folder / "sessions" / "01").plan.blocks == 2


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is not empty"):
        GatheredRuns.begin(tmp_path, {}, {})
    with pytest.raises(StoreError, match="gathers no blocks"):
        GatheredRuns(tmp_path)


def test_looks_at_a_link_name_the_raw_output_of_their_own_block(tmp_path: Path) -> None:
    gathered = GatheredRuns.begin(tmp_path / "run", {}, {"study": "study"})
    for number in (1, 2):
        gathered.keep(**block(number))
    session = tmp_path / "run" / "sessions" / "01"
    checks = store.load(session).link_checks
    assert [(session / file).read_text() for check in checks for file in check.raw] == ["look 1", "look 2"]
    gathered.close()
    GatheredRuns(tmp_path / "run").close()
    assert all((session / file).is_file() for check in checks for file in check.raw), "they are not taken for a kill's"


def test_one_command_gathers_at_a_time_and_others_may_look(tmp_path: Path) -> None:
    with GatheredRuns.begin(tmp_path / "run", {}, {"study": "study"}) as gathered:
        gathered.keep(**block(3))
        with pytest.raises(StoreError, match="another command gathers blocks") as caught:
            GatheredRuns(tmp_path / "run")
        assert caught.value.hint
        assert blocks_of(tmp_path / "run") == {3}
    with GatheredRuns(tmp_path / "run") as again:
        assert again.blocks == {3}


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (errno.ENOSPC, DiskFull, "no space is left for results"),
        (errno.EACCES, StoreError, "cannot be written: Permission denied"),
    ],
)
def test_a_block_that_cannot_be_written_is_an_error_that_says_why(
    number: int, kind: type[StoreError], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered = GatheredRuns.begin(tmp_path / "run", {}, {"study": "study"})

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tarfile.TarFile, "extractall", refuse)
    with pytest.raises(kind, match=said) as caught:
        gathered.keep(**block(1))
    assert "--resume" in caught.value.hint and "no finished block is lost" in caught.value.hint
    assert gathered.blocks == frozenset()


def test_with_what_blocks_are_measured_is_known_as_long_as_there_is_one(tmp_path: Path) -> None:
    with GatheredRuns.begin(tmp_path / "run", {}, {"study": "study"}) as gathered:
        gathered.begun_with({"tunnelmark": "0.1.0"})
        assert gathered.programs is None
        gathered.keep(**block(1))
    with GatheredRuns(tmp_path / "run") as again:
        assert again.programs == {"tunnelmark": "0.1.0"}
