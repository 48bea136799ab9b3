"""`make demo` ends with 0 whenever a report was made, and with the study's own code otherwise."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "demo"
RUNS = """#!/bin/sh
# Writes what a study would into the folder after --out or --resume, and ends as asked.
echo "$@" >> {said}
while [ $# -gt 1 ]; do
    case $1 in --out|--resume) [ {code} -gt 1 ] || [ -n "{crash}" ] || {{ mkdir -p "$2"; echo >> "$2/report.html"; }} ;; esac
    shift
done
exit {code}
"""


@pytest.mark.parametrize(("code", "crash", "ends"), [(0, "", 0), (1, "", 0), (1, "yes", 1), (2, "", 2), (130, "", 130)])
def test_ends_with_0_if_there_is_a_report(tmp_path: Path, code: int, crash: str, ends: int):
    done = demo(tmp_path, "--blocks", "1", "--out", str(tmp_path / "results"), code=code, crash=crash)
    assert done.returncode == ends
    assert ("The demonstration is done" in done.stdout) is (code == 1 and not crash)
    assert (tmp_path / "said").read_text() == f"run quick --blocks 1 --out {tmp_path / 'results'}\n"


def test_an_old_report_is_none(tmp_path: Path):
    results = tmp_path / "results"
    results.mkdir()
    (results / "report.html").write_text("old")
    os.utime(results / "report.html", (1e9, 1e9))
    assert demo(tmp_path, "--out", str(results), code=1, crash="yes").returncode == 1


def test_goes_on_with_what_was_stopped(tmp_path: Path):
    assert demo(tmp_path, "--resume", str(tmp_path / "results"), code=1).returncode == 0
    assert (tmp_path / "said").read_text() == f"run --resume {tmp_path / 'results'}\n"


def demo(folder: Path, *arguments: str, code: int, crash: str = "") -> subprocess.CompletedProcess[str]:
    command = folder / "command"
    command.write_text(RUNS.format(said=folder / "said", code=code, crash=crash))
    command.chmod(0o755)
    environment = os.environ | {"TUNNELMARK_DEMO": str(command)}
    return subprocess.run([SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False)
