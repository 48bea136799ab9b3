"""SQL about runs is answered from the views alone, which nothing that is asked can change or leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import UsageError
from tunnelmark.report import store_query
from tunnelmark.report.exports.tidy import StoredRuns
from tunnelmark.report.exports.views import VIEWS
from unit.builders import TCP, Study

RUNS = StoredRuns(
    {
        "first": Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3, tcp={"tinc": 0.5}).results(),
        "second": Study(arms=("direct", "nebula"), workloads=(TCP,), blocks=2).results(),
    }
)


def ask(sql: str) -> list[dict]:
    return store_query.ask(RUNS, sql).to_pylist()


def refused(sql: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        store_query.ask(RUNS, sql)
    assert caught.value.hint
    return caught.value


def test_one_query_is_about_all_runs() -> None:
    found = ask("SELECT run, arm, count(*) AS trials FROM trials GROUP BY ALL ORDER BY ALL")
    assert [tuple(row.values()) for row in found] == [
        ("first", "direct", 3),
        ("first", "tinc", 3),
        ("second", "direct", 2),
        ("second", "nebula", 2),
    ]


def test_effects_are_joined_with_what_was_measured() -> None:
    (row,) = ask(
        "SELECT e.estimate, exp(avg(ln(t.value / d.value))) AS by_hand FROM effects e "
        "JOIN metrics t USING (run, arm, metric) JOIN metrics d ON d.run = e.run AND d.metric = e.metric "
        "AND d.arm = e.against AND d.block = t.block WHERE e.arm = 'tinc' AND e.metric = 'goodput' GROUP BY ALL"
    )
    assert row["estimate"] == pytest.approx(row["by_hand"])


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_there_with_the_types_that_are_shown(view: str) -> None:
    described = [(row["column_name"], row["column_type"]) for row in ask(f"DESCRIBE {view}")]
    shown = {name: [(column, kind) for column, kind, _, _ in rows] for name, _, rows in store_query.schema()}
    assert described == shown[view]


def test_what_asks_may_be_said_in_several_ways() -> None:
    for sql in (
        "from runs",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SUMMARIZE trials",
        "PIVOT (SELECT arm, metric, value FROM metrics) ON metric USING avg(value) GROUP BY arm",
        "EXPLAIN SELECT * FROM trials",
    ):
        assert ask(sql), sql


@pytest.mark.parametrize(
    "source",
    ["trials", "TRIALS", '"trials"', "main.trials", "query_table('tri' || 'als')", "query('FROM tri' || 'als')"],
)
def test_a_view_is_never_empty_because_of_how_it_is_named(source: str) -> None:
    assert ask(f"SELECT count(*) AS n FROM {source}") == [{"n": 10}]


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    error = refused("SELECT armm FROM trials")
    assert '"armm" not found' in error.message
    assert "columns of trials: run, study, block, arm," in error.hint


def test_an_unknown_view_is_named_with_those_there_are() -> None:
    error = refused("SELECT * FROM trialz")
    assert "trialz does not exist" in error.message
    assert "views: runs, trials, samples," in error.hint


def test_a_mistake_in_the_language_shows_where() -> None:
    assert "^" in refused("SELEC 1").message
    assert "0 statements" in refused("").message
    assert "2 statements" in refused("SELECT 1; SELECT 2").message


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO trials SELECT * FROM trials",
        "DROP VIEW trials",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH 'other.db'",
        "COPY trials TO 'trials.csv'",
        "COPY (SELECT 1) TO 'one.parquet' (FORMAT parquet)",
        "EXPORT DATABASE 'all'",
        "CALL pragma_version()",
    ],
)
def test_what_would_change_something_is_refused(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "only asks" in refused(sql).message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read", ["read_text('{0}')", "read_csv('{0}')", "'{0}'", "glob('{1}/*')", "read_blob('{0}')"])
def test_files_are_out_of_reach(read: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nhidden\n")
    error = refused("SELECT * FROM " + read.format(secret, tmp_path))
    assert "hidden" not in error.message
    assert "file" in error.message or "does not exist" in error.message


@pytest.mark.parametrize("address", ["https://localhost/x.parquet", "s3://bucket/x.parquet"])
def test_the_network_is_out_of_reach(address: str) -> None:
    assert "disabled by configuration" in refused(f"SELECT * FROM read_parquet('{address}')").message


def test_variables_of_the_program_are_no_tables() -> None:
    assert "sql does not exist" in refused("SELECT * FROM sql").message


def test_the_settings_are_those_that_were_asked_for() -> None:
    for setting, value in store_query._CLOSED.items():
        assert ask(f"SELECT current_setting('{setting}') AS it")[0]["it"] is (value == "true")
