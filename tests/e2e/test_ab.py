"""Two builds compared as a user does it: which programs ran, what is said of them, and the exit code."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from support.command import journal, run
from tunnelmark.host.programs import find

pytestmark = pytest.mark.root

PATIENCE = 1200.0  # seconds: eight blocks of four arms


def copied(folder: Path) -> Path:
    """The anchor's program under another name."""
    target = folder / "anchor-of-mine"
    shutil.copy2(find("tunnelmark-anchor"), target)
    return target


@pytest.mark.proof("a build that does not work is told from one that does, with the exit code of a slower one")
def test_a_new_build_that_ends_at_once_is_slower_than_one_that_works(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo tunnelmark-anchor 9 && exit 0\nexit 7\n')
    broken.chmod(0o755)
    results, comment = tmp_path / "results", tmp_path / "comment.md"
    done = run(
        *("ab", "anchor", "--old", copied(tmp_path), "--new", broken, "--profile", "gigabit"),
        *("--no-repeat", "--out", results, "--comment", comment, "--json"),
        timeout=PATIENCE,
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["outcome"] == "slower"
    assert [line["state"] for line in found["metrics"]] == ["fails"]
    assert "trials fail with the new build" in comment.read_text()
    outcomes = {(trial["arm"], trial["outcome"]) for trial in journal(results)}
    assert ("new", "failed") in outcomes and ("new", "ok") not in outcomes
    assert ("old", "ok") in outcomes


@pytest.mark.proof("each of two builds runs its own program, and is recorded with its hash")
def test_equal_builds_are_recorded_and_not_held_to_be_different(tmp_path: Path) -> None:
    mine = copied(tmp_path)
    results = tmp_path / "results"
    done = run(
        *("ab", "anchor", "--old", mine, "--new", find("tunnelmark-anchor"), "--profile", "gigabit"),
        *("--change", "30%", "--max-blocks", "8", "--out", results, "--json"),
        timeout=PATIENCE,
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    sha = hashlib.sha256(mine.read_bytes()).hexdigest()
    found = json.loads(done.stdout)
    assert found["programs"] == {arm: {"tunnelmark-anchor": sha} for arm in ("old", "new", "old-again")}
    recorded = json.loads((results / "environment.json").read_text())["vpns"]
    assert {name for name in recorded if name.startswith("anchor")} == {
        "anchor (old)",
        "anchor (new)",
        "anchor (old-again)",
    }
    assert "old and new are the same program, byte for byte" in " ".join(found["not_seen"])
