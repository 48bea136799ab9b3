"""`packages verify` as a user runs it: arms that pass, that fail and that are not here, and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command import command

pytestmark = [pytest.mark.root, pytest.mark.slow]


def verify(*arguments: str, **environ: str) -> tuple[int, dict[str, Any]]:
    argv = command("peers", "verify", "--json", *arguments)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=os.environ | environ, check=False)
    assert done.stdout, done.stderr
    return done.returncode, {verdict["arm"]: verdict for verdict in json.loads(done.stdout)}


@pytest.fixture
def seen() -> Iterator[Path]:
    """A folder that nodes see, which tmp_path is not."""
    cache = Path.home() / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tunnelmark-test-", dir=cache) as folder:
        yield Path(folder)


@pytest.mark.proof("`packages verify` verifies a VPN that keeps the contract")
def test_an_arm_is_verified_or_skipped_with_its_reason(tmp_path: Path) -> None:
    code, found = verify("tinc", "nebula-1.10", TUNNELMARK_PACKAGES=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert found["tinc"]["result"] == "verified", found
    assert code == 0
    assert found["tinc"]["passed"] >= 10
    assert found["tinc"]["version"]
    assert 0 < found["tinc"]["first_packet"] < 30
    assert found["nebula-1.10"]["result"] == "skipped"
    assert "not installed here" in found["nebula-1.10"]["note"]


def test_an_arm_that_breaks_the_contract_has_failed(tmp_path: Path, seen: Path) -> None:
    """A tinc that says a version and does nothing else, in a folder that stands before all others."""
    (seen / "tincd").write_text("#!/bin/sh\necho tinc version 1.0\nexit 1\n")
    (seen / "tincd").chmod(0o755)
    code, found = verify("tinc", TUNNELMARK_BIN=str(seen), XDG_CACHE_HOME=str(tmp_path))
    assert found["tinc"]["result"] == "failed", found
    assert found["tinc"]["failed"] > 0
    assert "verify-tinc.log" in found["tinc"]["note"]
    assert "tincd" in found["tinc"]["note"], "the note says what went wrong"
    assert code == 1
