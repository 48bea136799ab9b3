"""The answers in docs/query.md, and what the notebook shows, are what the published results answer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tunnelmark.report.exports.views import VIEWS

ROOT = Path(__file__).resolve().parents[3]


def test_the_examples_answer_what_the_page_shows() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "query-examples", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr or "write them anew: scripts/query-examples"
    page = (ROOT / "docs" / "query.md").read_text()
    assert page.count("```answer\n") == page.count("```\ntunnelmark ") >= 5
    assert "```answer\n```" not in page


def test_the_page_has_every_view() -> None:
    page = (ROOT / "docs" / "query.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(VIEWS)


def test_the_notebook_runs_and_shows_what_its_cells_give() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "notebook", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr or "write it anew: scripts/notebook"
