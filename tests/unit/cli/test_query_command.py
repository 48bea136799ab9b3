"""`tunnelmark query` prints answers as a table, and writes them for other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tunnelmark.cli import main
from unit.builders import TCP, Study
from unit.stored import write

SQL = (
    "SELECT arm, count(*) AS trials, avg(value) AS mean FROM metrics WHERE metric = 'goodput' GROUP BY arm ORDER BY arm"
)


@pytest.fixture
def results(tmp_path: Path) -> str:
    found = Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3)
    return str(write(found.results(), tmp_path / "results" / "quick"))


def test_a_table_is_for_people(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", SQL, results]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["arm", "trials", "mean"]
    assert [row.split()[:2] for row in rows] == [["direct", "3"], ["tinc", "3"]]


def test_long_answers_are_cut_aloud(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "FROM range(1200)", results]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 1001
    assert "first 1000 of 1200 rows" in printed.err


def test_programs_get_every_digit(results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", SQL, results, "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in expected] == ["direct", "tinc"]
    for form in ("csv", "parquet"):
        assert main(["query", SQL, results, "--format", form, "--to", str(tmp_path / f"x.{form}")]) == 0
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == expected
    with (tmp_path / "x.csv").open() as file:
        assert [float(row["mean"]) for row in csv.DictReader(file)] == [row["mean"] for row in expected]


def test_what_json_cannot_say_is_null_or_text(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT 'inf'::DOUBLE AS a, 'nan'::DOUBLE AS b, DATE '2026-11-24' AS c, MAP {'x': 1} AS d, 1.5::DECIMAL(4, 2) AS e"
    assert main(["query", sql, results, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"a": None, "b": None, "c": "2026-11-24", "d": {"x": 1}, "e": 1.5}


def test_the_schema_needs_no_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--schema"]) == 0
    text = capsys.readouterr().out
    assert "samples: one value" in text
    assert ["phases", "MAP(VARCHAR,", "DOUBLE)", "s"] in [line.split()[:4] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["query"], "there is no query"),
        (["query", "SELECT nothing FROM trials", "RESULTS"], '"nothing" not found'),
        (["query", "FROM trials", "RESULTS", "--to", "out.csv"], "--to has no format"),
        (["query", "FROM trials", "RESULTS", "--format", "csv", "--to", "no/such/folder/x.csv"], "cannot be written"),
        (["query", "FROM trials", "no-such-folder"], "no-such-folder is not there"),
    ],
)
def test_errors_have_hints(arguments: list[str], said: str, results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([results if each == "RESULTS" else each for each in arguments]) == 2
    printed = capsys.readouterr().err
    assert said in printed and "hint: " in printed
