"""A study repeated, added to and merged, as a user does it: sessions with orders of their own become one report."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.command import journal, run, settled, small_study

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, subprocess.CompletedProcess[str]]:
    """A tiny study repeated twice: its file, the folder, and how the command ended."""
    folder = tmp_path_factory.mktemp("repeat")
    study = small_study(folder, blocks=2)
    done = run("repeat", study, "--sessions", "2", "--measure", "--out", folder / "out")
    assert done.returncode in (0, 1), done.stderr + done.stdout  # 1: a gate may fail on a busy machine
    return study, folder / "out", done


def enough(results: Path) -> bool:
    """Whether a block has a result of both arms: on a machine that is overloaded a trial may fail, and that is kept."""
    done = [trial["block"] for trial in settled(results) if trial["outcome"] == "ok"]
    return any(done.count(block) == 2 for block in set(done))


def entries(results: Path, name: str) -> list[dict]:
    lines = map(json.loads, (results / "journal.jsonl").read_text().splitlines())
    return [line[name] for line in lines if name in line]


def test_each_session_is_a_run_of_its_own_with_another_order(repeated: tuple[Path, Path, object]):
    _, out, _ = repeated
    plans = [json.loads((out / "sessions" / name / "plan.json").read_text()) for name in ("01", "02")]
    assert [plan["seed"] for plan in plans] == [7, 8]
    assert sorted(plans[0]["trials"]) == sorted(plans[1]["trials"])
    for name in ("01", "02"):
        assert len(settled(out / "sessions" / name)) == 2 * 2
        assert (out / "sessions" / name / "report.html").is_file()


def test_the_whole_says_what_an_interval_covers(repeated: tuple[Path, Path, subprocess.CompletedProcess[str]]):
    _, out, done = repeated
    assert "A small study: 2 sessions" in done.stdout
    assert "An interval here covers this run, on this machine, in this boot" in done.stdout  # of each
    assert "this machine in so few runs that there is no interval over them" in done.stdout  # of both
    assert "2 sessions" in (out / "report.html").read_text()


def test_the_machine_is_on_record_with_what_it_takes(repeated: tuple[Path, Path, object]):
    _, out, _ = repeated
    for name in ("01", "02"):
        found = json.loads((out / "sessions" / name / "environment.json").read_text())["fingerprint"]
        assert found["boot"] and found["cpu"]["flags"] and found["hz"]
        looks = entries(out / "sessions" / name, "yardsticks")
        assert [look["when"] for look in looks] == ["before", "after"]
        for look in looks:
            assert {"system call", "timer", "TUN read", "TUN write", "veth"} <= look["lengths"].keys(), look["absent"]


def test_more_sessions_and_more_blocks_are_added_to_what_there_is(repeated: tuple[Path, Path, object]):
    study, out, _ = repeated
    before = journal(out / "sessions" / "01")
    done = run("repeat", study, "--sessions", "3", "--out", out)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    assert journal(out / "sessions" / "01") == before
    assert "further runs like the 3 measured, on this machine in this boot" in done.stdout

    done = run("run", "--resume", out / "sessions" / "01", "--blocks", "3")
    assert done.returncode in (0, 1), done.stderr + done.stdout
    assert {trial["block"] for trial in settled(out / "sessions" / "01")} == {1, 2, 3}
    assert "Blocks were added" in done.stdout

    done = run("report", out, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["blocks"] for each in found["sessions"]] == [3, 2, 2]
    assert len({each["plan"] for each in found["sessions"]}) == 1
    expected = [name for name in ("01", "02", "03") if enough(out / "sessions" / name)]
    rows = [row for row in found["rows"] if row["metric"] == "rtt_median"]
    assert [each["session"] for row in rows for each in row["each"]] == expected
    if len(expected) == 3:
        assert (rows[0]["unit"], rows[0]["units"]) == ("session", 3)
        assert rows[0]["next_low"] < rows[0]["mean"] < rows[0]["next_high"]
    else:
        assert any("no block with both" in said for said in found["not_joined"])


def test_a_run_that_was_begun_on_another_machine_is_refused(repeated: tuple[Path, Path, object]):
    _, out, _ = repeated
    place = out / "sessions" / "02" / "environment.json"
    kept = place.read_text()
    found = json.loads(kept)
    found["fingerprint"]["cpu"]["model"] = "0"
    place.write_text(json.dumps(found))
    try:
        done = run("run", "--resume", place.parent, "--blocks", "4", "--other-boot")
    finally:
        place.write_text(kept)
    assert done.returncode == 2
    assert "CPU model: 0, now" in done.stderr
