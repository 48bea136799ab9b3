"""A results folder is not written over, and takes raw output that was written elsewhere first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import StoreError
from tunnelmark.record import store


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
