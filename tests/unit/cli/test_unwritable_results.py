"""Results that another user may only read are shown, and what is not written is said."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunnelmark.cli import report

NOBODY = 65534


@pytest.fixture
def anothers() -> Iterator[Path]:
    """A folder of this user that every user may read, looked at as another user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_report_that_cannot_be_written_is_a_warning_with_the_owner_and_a_hint(anothers: Path) -> None:
    said = report._written(anothers, lambda: report._write_pages(anothers, "text", "page"))
    assert "no report was written: the results belong to root" in said
    assert f'chown -R "$(id -un)" {anothers}' in said


def test_else_the_place_of_the_report_is_said(tmp_path: Path) -> None:
    said = report._written(tmp_path, lambda: report._write_pages(tmp_path, "text", "page"))
    assert said == f"report: {tmp_path / 'report.html'}"
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["report.html", "report.md"]
