"""The table of the README is written by a command from results, and by nobody's hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from unit.builders import TCP, Study
from unit.stored import write

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "readme"


def make(root: Path, results: Path) -> subprocess.CompletedProcess[str]:
    command = root / "command"
    command.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "from tunnelmark.cli import main; raise SystemExit(main())" "$@"\n'
    )
    command.chmod(0o755)
    return subprocess.run(
        [SCRIPT, results],
        env=os.environ | {"TUNNELMARK_ROOT": str(root), "TUNNELMARK_DEMO": str(command)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_table_is_what_a_report_prints_and_the_rest_stays(tmp_path: Path):
    (tmp_path / "docs" / "demo").mkdir(parents=True)
    (tmp_path / "README.md").write_text("above\n<!-- demo:begin -->\nwhat stood here\n<!-- demo:end -->\nbelow\n")
    results = write(Study(workloads=(TCP,)).results(), tmp_path / "results")
    done = make(tmp_path, results)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("above\n<!-- demo:begin -->\n```\nFive VPNs and the bare link\n  TCP goodput: ")
    assert text.endswith("```\n<!-- demo:end -->\nbelow\n")
    assert "what stood here" not in text
    whole = (tmp_path / "docs" / "demo" / "terminal.txt").read_text()
    assert "this run, on this machine, in this boot" in " ".join(whole.split())
    assert "wireguard-go" in whole and "more: " not in whole and "report: " not in whole
    assert "\x1b" not in text and "report: " not in text
    assert max(map(len, text.splitlines())) <= 112
    assert (tmp_path / "docs" / "demo" / "report.md").read_text() == (results / "report.md").read_text()


def test_results_that_are_none_change_nothing(tmp_path: Path):
    (tmp_path / "README.md").write_text("<!-- demo:begin -->\n<!-- demo:end -->\n")
    assert make(tmp_path, tmp_path / "none").returncode == 2
    assert (tmp_path / "README.md").read_text() == "<!-- demo:begin -->\n<!-- demo:end -->\n"
