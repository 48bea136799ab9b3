"""A results folder is not written over, takes raw output that was written elsewhere first, and opens as earlier versions wrote it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from tunnelmark.errors import StoreError
from tunnelmark.record import results, store
from tunnelmark.record.journal import Journal
from tunnelmark.record.link_check import LinkCheck
from unit.builders import Study
from unit.stored import write


def test_a_folder_with_anything_in_it_is_refused(tmp_path: Path) -> None:
    store.require_empty(tmp_path / "not there")
    store.require_empty(tmp_path)
    (tmp_path / "vm").mkdir()  # what a virtual machine says while it boots, before there are results
    store.require_empty(tmp_path)
    (tmp_path / "plan.json").touch()
    with pytest.raises(StoreError, match="is not empty") as caught:
        store.require_empty(tmp_path)
    assert "--resume" in caught.value.hint


def test_raw_output_is_moved_whole(tmp_path: Path) -> None:
    results, scratch = tmp_path / "results", tmp_path / "scratch" / "001.direct"
    (results / "raw").mkdir(parents=True)
    (scratch / "deeper").mkdir(parents=True)
    (scratch / "ping.a.out").write_text("64 bytes")
    (scratch / "deeper" / "log").write_text("up")
    store.adopt(scratch, results)
    assert (results / "raw/001.direct/ping.a.out").read_text() == "64 bytes"
    assert (results / "raw/001.direct/deeper/log").read_text() == "up"
    assert not scratch.exists()


def test_a_trial_that_could_not_begin_left_nothing_to_move(tmp_path: Path) -> None:
    store.adopt(tmp_path / "001.direct", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_word_for_a_link_that_is_what_its_profile_says_is_read_as_version_0_1_wrote_it(tmp_path: Path) -> None:
    folder = write(Study().results(), tmp_path / "results")
    check = asdict(LinkCheck("gigabit", "pair", "before", 1.0, 1.0, "verified", "", ()))
    with Journal(folder / results.JOURNAL) as journal:
        for word in ("proved", "verified", "outside"):
            journal.append({"link": {**check, "verdict": word}})
    assert [read.verdict for read in store.load(folder).link_checks] == ["verified", "verified", "outside"]
