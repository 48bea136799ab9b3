"""Runs are found in the folders that hold them, each once, under names that tell them apart."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.errors import StoreError, UsageError
from tunnelmark.record import run_folders, several_runs
from tunnelmark.record.results import JOURNAL, Results
from unit.builders import TCP, Study
from unit.stored import write

SMALL = Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=2)


def run(seed: int) -> Results:
    found = replace(SMALL, seed=seed).results()
    return replace(found, sessions=tuple(replace(each, started=each.started + seed) for each in found.sessions))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two runs, and the folder in which the command is called."""
    monkeypatch.chdir(tmp_path)
    for seed, name in ((1, "quick-1"), (2, "quick-2")):
        write(run(seed), tmp_path / "results" / name)
    return tmp_path / "results"


def test_without_a_name_all_runs_below_results_are_read(results: Path) -> None:
    assert {name: found.plan.seed for name, found in run_folders.read().items()} == {"quick-1": 1, "quick-2": 2}


def test_runs_in_several_kernels_are_runs_of_their_own(results: Path) -> None:
    write(run(3), results / "vm" / "linux-6.1")
    write(run(4), results / "vm" / "linux-6.12")
    assert list(run_folders.read([results / "vm"])) == ["linux-6.1", "linux-6.12"]
    assert len(run_folders.read()) == 4


def test_a_run_and_its_copy_in_a_merged_folder_are_one(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    several_runs.join(results / "merged", [results / "quick-1", results / "quick-2"])
    with caplog.at_level(logging.WARNING):
        assert list(run_folders.read()) == ["quick-1", "quick-2"]
    assert caplog.text.count("is read once") == 2
    shutil.rmtree(results / "quick-2")
    assert list(run_folders.read()) == ["merged/02", "quick-1"]
    assert list(run_folders.read([results / "merged"])) == ["merged/01", "merged/02"]


def test_a_folder_that_is_named_twice_is_read_once_without_a_word(
    results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert list(run_folders.read([results / "quick-1", results, Path("results/quick-1")])) == ["quick-1", "quick-2"]
    assert caplog.text == ""


def test_a_damaged_run_is_left_out_aloud_unless_it_was_named(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    (results / "quick-1" / "plan.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert list(run_folders.read()) == ["quick-2"]
    assert "quick-1 is left out" in caplog.text
    with pytest.raises(StoreError):
        run_folders.read([results / "quick-1"])


def test_where_there_is_nothing_an_error_says_so(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="not there"):
        run_folders.read([results / "none"])
    (results / "empty").mkdir()
    with pytest.raises(UsageError, match="no results in"):
        run_folders.read([results / "empty"])
    assert (results / "quick-1" / JOURNAL).exists()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no folder results/"):
        run_folders.read()
