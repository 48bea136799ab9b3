"""The journal keeps every line that was written whole, whatever happened while it was written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tunnelmark.errors import StoreError
from tunnelmark.record.journal import Journal, compressed, entries, is_there


def test_what_is_appended_is_read_in_order(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append({"trial": 1})
        journal.append({"trial": 2})
    with Journal(path) as journal:
        journal.append({"trial": 3})
    assert [entry["trial"] for entry in entries(path)] == [1, 2, 3]


def test_a_line_is_on_the_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not in the page cache alone: what the file holds when the kernel is asked to write it out."""
    path, written, fsync = tmp_path / "journal.jsonl", [], os.fsync

    def seen(fd: int) -> None:
        written.append(path.read_text())
        fsync(fd)

    with Journal(path) as journal:
        monkeypatch.setattr(os, "fsync", seen)
        journal.append({"trial": 1})
        assert written == ['{"trial":1}\n']


def test_a_torn_line_is_not_read_and_is_cut_off_before_the_next(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"trial":1}\n{"tri')
    assert [entry["trial"] for entry in entries(path)] == [1]
    with Journal(path) as journal:
        journal.append({"trial": 2})
    assert [entry["trial"] for entry in entries(path)] == [1, 2]


def test_a_damaged_line_is_named(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"trial":1}\nnonsense\n{"trial":3}\n')
    with pytest.raises(StoreError, match="line 2"):
        list(entries(path))


def test_a_compressed_journal_is_read_and_not_added_to(tmp_path: Path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"trial":1}\n')
    subprocess.run(["gzip", path], check=True)
    assert is_there(path) and not path.exists()
    assert [entry["trial"] for entry in entries(path)] == [1]
    with pytest.raises(StoreError, match="is compressed") as error, Journal(path):
        pass
    assert "gunzip" in error.value.hint
    compressed(path).write_bytes(compressed(path).read_bytes()[:-12])
    with pytest.raises(StoreError, match="is damaged"):
        list(entries(path))


def test_a_folder_without_a_journal_holds_no_results(tmp_path: Path):
    with pytest.raises(StoreError, match="holds no results"):
        list(entries(tmp_path / "journal.jsonl"))


def test_nothing_is_left_beside_it(tmp_path: Path):
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append({})
    assert os.listdir(tmp_path) == ["journal.jsonl"]


FILL = """
    import json, sys
    from pathlib import Path
    from tunnelmark.errors import DiskFull
    from tunnelmark.record.journal import Journal, compressed, entries, is_there

    path = Path(sys.argv[1]) / "journal.jsonl"
    kept, refused = [], None
    with Journal(path) as journal:
        for number in range(10_000):
            try:
                journal.append({"number": number, "text": "x" * 20_000})
            except DiskFull as full:
                refused, hint = number, full.hint
                break
    print(json.dumps({"refused": refused, "hint": hint, "read": [e["number"] for e in entries(path)]}))
"""


@pytest.mark.root
def test_on_a_full_disk_even_the_last_attempt_is_kept(tmp_path: Path):
    """On a file system of 3 MiB the line that found no room goes into the reserve, and DiskFull says what to do."""
    script = ["mount -t tmpfs -o size=3m tmpfs", str(tmp_path), "&& exec", sys.executable, "-c", '"$1"', str(tmp_path)]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", " ".join(script), "sh", textwrap.dedent(FILL)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["refused"] > 50
    assert found["read"] == list(range(found["refused"] + 1))
    assert "--resume" in found["hint"]
