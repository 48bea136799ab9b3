"""The tidy tables hold what the journal holds, and say of each value what the analysis makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark.analyse import judge
from tunnelmark.model.grades import Grade
from tunnelmark.record import run_folders
from tunnelmark.record.results import Results, SampleRow
from tunnelmark.report.exports.tidy import StoredRuns
from tunnelmark.report.exports.views import VIEWS
from unit.builders import PING, TCP, Study
from unit.stored import write

SMALL = Study(arms=("direct", "direct-again", "tinc"), workloads=(PING, TCP), blocks=3)


def of(found: Results) -> StoredRuns:
    return StoredRuns({"here": found})


def rows(found: Results, view: str) -> list[dict]:
    return of(found).table(view).to_pylist()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_its_schema_also_where_nothing_was_run(view: str) -> None:
    for study in (SMALL, replace(SMALL, stop_after=0)):
        assert of(study.results()).table(view).schema.equals(VIEWS[view].schema)


def test_each_sample_is_a_row_with_its_trial() -> None:
    found = replace(SMALL, series=True).results()
    expected = [(row.trial, row.arm, s.metric, s.unit, s.value, s.time) for row in found.trials for s in row.samples]
    keys = ("trial", "arm", "metric", "unit", "value", "time")
    assert [tuple(row[key] for key in keys) for row in rows(found, "samples")] == expected
    whole = [row for row in expected if row[-1] is None]
    assert [(row["trial"], row["metric"], row["value"]) for row in rows(found, "metrics")] == [
        (trial, metric, value) for trial, _, metric, _, value, _ in whole
    ]


def test_used_values_are_those_of_the_analysis() -> None:
    """Through a void attempt that was made again, a failure, and a value that its grade excludes."""
    found = replace(SMALL, fails=(("tinc", "ping", 2),)).results()
    spoilt, disturbed = (next(row for row in found.trials if row.workload == "tcp" and row.block == b) for b in (1, 2))
    void: dict[str, Grade] = {"transfer": "void"}
    again = replace(spoilt, attempt=2, samples=(SampleRow("goodput", "bit/s", 5e8),))
    trials = [
        replace(row, outcome="void") if row is spoilt
        else replace(row, grade="void", grades=void) if row is disturbed
        else row
        for row in found.trials
    ]  # fmt: skip
    found = replace(found, trials=(*trials, again))
    used: dict[tuple[str, str, str], set[tuple[int, float]]] = {}
    for row in rows(found, "metrics"):
        if row["used"]:
            used.setdefault((row["arm"], row["workload"], row["metric"]), set()).add((row["block"], row["value"]))
    cells = {
        (cell.arm, cell.setting.workload, cell.metric.name): {(each.block, each.value) for each in cell.values}
        for cell in judge(found).cells
        if cell.values
    }
    assert used == cells
    assert (spoilt.block, 5e8) in used[spoilt.arm, "tcp", "goodput"]
    assert disturbed.block not in {block for block, _ in used[disturbed.arm, "tcp", "goodput"]}
    trial = [row for row in rows(found, "trials") if row["trial"] == spoilt.trial]
    assert [(row["attempt"], row["outcome"], row["counts"]) for row in trial] == [(1, "void", False), (2, "ok", True)]


def test_failures_are_rows_too() -> None:
    found = replace(SMALL, fails=(("tinc", "tcp", 1),)).results()
    (row,) = [row for row in rows(found, "trials") if row["outcome"] == "failed"]
    assert (row["arm"], row["block"], row["reason"], row["grade"]) == ("tinc", 1, "not-ready", None)
    verdict = next(row for row in rows(found, "verdicts") if (row["arm"], row["metric"]) == ("tinc", "goodput"))
    assert (verdict["succeeded"], verdict["tried"], verdict["blocks"]) == (2, 3, 2)


def test_the_environment_is_flat() -> None:
    recorded = {"vpns": {"tinc": {"version": "1.0"}}, "machine": {"cores": 2}, "command": ["tunnelmark", "run"]}
    found = rows(replace(SMALL, environment=recorded).results(), "environment")
    assert {row["key"]: row["value"] for row in found} == {
        "vpns.tinc.version": "1.0",
        "machine.cores": "2",
        "command": '["tunnelmark", "run"]',
    }


def test_runs_of_several_folders_are_told_apart(tmp_path: Path) -> None:
    first = write(SMALL.results(), tmp_path / "one" / "quick")
    second = write(replace(SMALL, seed=8).results(), tmp_path / "two" / "quick")
    table = StoredRuns(run_folders.read([first, second])).table("runs").to_pylist()
    assert [(row["run"], row["seed"]) for row in table] == [("one/quick", 7), ("two/quick", 8)]
