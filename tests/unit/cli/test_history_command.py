"""`tunnelmark history` shows a machine's runs over time, with intervals and changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.cli import main
from unit.builders import PING, TCP, Study
from unit.stored import write

DAY = 86_400


def stored(folder: Path, day: int, speed: float) -> None:
    arms = ("direct", "tinc")
    found = Study(
        arms=arms,
        workloads=(TCP, PING),
        blocks=5,
        seed=day,
        noise=0.01,
        tcp={"tinc": speed},
        environment={"vpns": {"tinc": {"version": "1.0" if speed == 0.5 else "1.1"}}},
    ).results()
    sessions = tuple(replace(each, started=1_790_000_000.0 + DAY * day) for each in found.sessions)
    write(replace(found, sessions=sessions), folder / f"quick-{day:02d}")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for day in range(10):
        stored(tmp_path / "results", day, 0.5 if day < 5 else 0.4)
    return tmp_path / "results"


def test_a_change_is_marked_in_the_line_of_its_first_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(results), "--metric", "goodput"]) == 0
    text = capsys.readouterr().out
    assert "tinc against direct: TCP goodput (gigabit, pair, tcp)" in text
    lines = [line for line in text.splitlines() if line.startswith("quick-")]
    assert len(lines) == 10 and all("%" in line and "[" in line for line in lines)
    (marked,) = [line for line in lines if "▼" in line]
    assert marked.startswith("quick-05  2026-09-26") and " 1.1 " in marked and "p 0.0" in marked
    assert "10 runs, 1 change shown" in text
    assert "▲ better and ▼ worse from this run on" in text


def test_less_of_what_should_be_less_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(10):
        found = Study(
            arms=("direct", "tinc"), workloads=(PING,), seed=day, noise=0.01, rtt={"tinc": 4 if day < 5 else 2}
        )
        results = found.results()
        sessions = tuple(replace(each, started=1_790_000_000.0 + DAY * day) for each in results.sessions)
        write(replace(results, sessions=sessions), tmp_path / "results" / f"quick-{day:02d}")
    assert main(["history", str(tmp_path / "results"), "--metric", "rtt_p50"]) == 0
    (marked,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("quick-") and "p 0.0" in line]
    assert "▲ −" in marked and marked.startswith("quick-05")


def test_programs_get_every_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(results), "--arm", "tinc", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_metric = {series["metric"]: series for series in found["series"]}
    assert set(by_metric) == {"goodput", "rtt_p50"}
    goodput = by_metric["goodput"]
    assert goodput["tested"] and [each["run"] for each in goodput["runs"]] == [f"quick-{day:02d}" for day in range(10)]
    (change,) = [each["change"] for each in goodput["runs"] if each["change"]]
    assert change["before"] == pytest.approx(0.5, rel=0.05) and change["after"] == pytest.approx(0.4, rel=0.05)
    assert all(each["low"] <= each["estimate"] <= each["high"] for each in goodput["runs"])


def test_an_unknown_metric_is_an_error_with_those_near_it(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(results), "--metric", "godput"]) == 2
    assert "did you mean goodput?" in capsys.readouterr().err
