"""`report --export` writes results for other tools from the store alone, one run or several."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tunnelmark
from tunnelmark.analyse import judge
from tunnelmark.cli import main
from tunnelmark.record import several_runs, store
from tunnelmark.report import json_export
from unit.builders import TCP, Study
from unit.stored import write

VIEWS = ("runs", "trials", "samples", "effects", "verdicts", "environment")


def stored(folder: Path, seed: int = 7) -> Path:
    return write(Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3, seed=seed).results(), folder)


def test_tables_are_files_of_a_folder(tmp_path: Path) -> None:
    results = stored(tmp_path / "run")
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    run = tunnelmark.load(results)
    assert main(["report", str(results), "--export", "csv"]) == 0
    assert main(["report", str(results), "--export", "parquet", "--to", str(tmp_path / "there")]) == 0
    for view in VIEWS:
        table = run._stored.table(view)
        with (results / "export" / f"{view}.csv").open(newline="") as file:
            head, *rows = csv.reader(file)
        assert head == table.column_names and len(rows) == table.num_rows
        found = pq.read_table(tmp_path / "there" / f"{view}.parquet")
        assert found.equals(table)
        assert [field.metadata for field in found.schema] == [field.metadata for field in table.schema]
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for path in results.iterdir()} - {path.name for path in before if path.parent == results} == {
        "export"
    }


def test_numbers_in_csv_are_whole(tmp_path: Path) -> None:
    results = stored(tmp_path / "run")
    main(["report", str(results), "--export", "csv"])
    with (results / "export" / "samples.csv").open(newline="") as file:
        written = [float(row["value"]) for row in csv.DictReader(file)]
    assert written == [sample.value for row in store.load(results).trials for sample in row.samples]
    with (results / "export" / "trials.csv").open(newline="") as file:
        phases = [json.loads(row["phases"]) for row in csv.DictReader(file)]
    assert phases == [dict(row.phases) for row in store.load(results).trials]


def test_documents_are_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = stored(tmp_path / "run")
    assert main(["report", str(results), "--export", "json", "--to", "-"]) == 0
    assert capsys.readouterr().out == json_export.render(judge(store.load(results)))
    assert main(["report", str(results), "--export", "latex"]) == 0
    assert r"\toprule" in (results / "export" / "tables.tex").read_text()


def test_several_runs_are_exported_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged = tmp_path / "merged"
    several_runs.join(merged, [stored(tmp_path / "one", 1), stored(tmp_path / "two", 2)])
    assert main(["report", str(merged), "--export", "parquet"]) == 0
    assert pq.read_table(merged / "export" / "runs.parquet")["run"].to_pylist() == ["merged/01", "merged/02"]
    capsys.readouterr()
    assert main(["report", str(merged), "--export", "latex", "--to", "-"]) == 0
    assert "tab:merged-02-gigabit-pair-tcp-goodput" in capsys.readouterr().out
    assert main(["report", str(merged), "--export", "json", "--to", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "x"], "--to has no format"),
        (["--export", "csv", "--to", "-"], "is several files"),
        (["--export", "csv", "--to", "RESULTS/plan.json"], "is not a folder"),
        (["--export", "latex", "--to", "RESULTS"], "is one file"),
        (["--export", "latex", "--to", "RESULTS/plan.json/x.tex"], "cannot be written"),
    ],
)
def test_a_place_of_the_wrong_kind_is_an_error_with_a_hint(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = str(stored(tmp_path / "run"))
    assert main(["report", results, *(each.replace("RESULTS", results) for each in arguments)]) == 2
    printed = capsys.readouterr().err
    assert said in printed and "hint: " in printed
