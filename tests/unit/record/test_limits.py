"""What held the traffic back stands in journal and tables, and results from before it was watched still open."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import TypeAdapter

from tunnelmark.analyse import judge
from tunnelmark.record import store
from tunnelmark.record.journal import Journal, entries
from tunnelmark.record.results import TrialRow
from unit.record.test_attempts import STUDY

LIMITS = {"core_source": 0.98, "drop_rcvbuf_target": 12.0}


def test_it_is_written_and_read_back(tmp_path: Path) -> None:
    row = replace(STUDY.results().trials[0], limits=LIMITS)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append({"trial": asdict(row)})
    (entry,) = entries(tmp_path / "journal.jsonl")
    assert TypeAdapter(TrialRow).validate_python(entry["trial"]).limits == LIMITS


def test_it_is_a_column_of_the_table_of_trials() -> None:
    results = STUDY.results()
    one, *others = results.trials
    _, trials = store.tables(replace(results, trials=(replace(one, limits=LIMITS), *others)))
    assert dict(trials["limits"].to_pylist()[0]) == LIMITS
    assert trials["limits"].to_pylist()[1] == []


def test_a_row_from_before_opens_and_nothing_is_said_of_what_bound_it() -> None:
    results = STUDY.results()
    rows = []
    for row in results.trials:
        old = json.loads(json.dumps(asdict(row)))
        del old["limits"]
        rows.append(TypeAdapter(TrialRow).validate_python(old))
    assert rows[0].limits == {}
    assert judge(replace(results, trials=tuple(rows))).bound_by == {}
