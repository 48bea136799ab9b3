"""Every attempt stays in journal and tables; a run goes on with what its attempts have left open, of older journals too."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tunnelmark.analyse.attempts import chosen
from tunnelmark.model.attempt import NOT_INSTALLED
from tunnelmark.model.retries import Retries
from tunnelmark.record import store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import TrialRow
from unit.builders import TCP, Study

STUDY = Study(workloads=(TCP,), blocks=1, arms=("direct", "direct-again", "tinc"))


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "raw").mkdir(parents=True)
    with Journal(folder / "journal.jsonl") as journal:
        for row in rows:
            journal.append({"trial": row})
            number = row.get("attempt", 1)
            (folder / "raw" / (row["trial"] + (f"~{number}" if number > 1 else ""))).mkdir()
    return folder


def rows() -> tuple[TrialRow, ...]:
    return STUDY.results().trials


def both(arm: str, workload: str) -> bool:
    """Whether an arm's and a workload's programs are installed."""
    return True


def neither(arm: str, workload: str) -> bool:
    """The same, of a machine without any."""
    return False


def lacking(row: TrialRow) -> TrialRow:
    """Return the trial as it ends where a program is not installed."""
    return replace(row, outcome="failed", reason=NOT_INSTALLED, samples=())


def test_attempts_are_counted_and_their_raw_output_is_kept(tmp_path: Path):
    one, two, three = rows()
    void = replace(one, outcome="void", wanting=True)
    folder = written(
        tmp_path / "r",
        asdict(void),
        asdict(replace(one, attempt=2)),
        asdict(replace(two, outcome="void", wanting=True)),
        asdict(replace(three, wanting=True, grade="disturbed", grades={"tail": "void"})),
    )
    (folder / "raw" / f"{two.trial}~2").mkdir()  # was cut off
    assert store.discard_unfinished(folder) == {
        one.trial: Retries(2, True),
        two.trial: Retries(1, False),
        three.trial: Retries(1, False),
    }
    assert {path.name for path in (folder / "raw").iterdir()} == {one.trial, f"{one.trial}~2", two.trial, three.trial}


def test_a_journal_from_before_there_were_attempts_still_opens(tmp_path: Path):
    one, two, three = rows()
    old: list[dict[str, Any]] = [
        asdict(row) | {"outcome": end} for row, end in ((one, "ok"), (two, "void"), (three, "failed"))
    ]
    for row in old:
        for key in ("attempt", "grade", "causes", "grades", "wanting"):
            del row[key]
    found = store.discard_unfinished(written(tmp_path / "r", *old))
    assert [found[row.trial] for row in (one, two, three)] == [Retries(1, True), Retries(1, False), Retries(1, True)]


def test_trials_of_a_workload_whose_program_was_installed_later_are_still_to_be_measured(tmp_path: Path):
    """As it was met: two hours of a study had begun without the program of one of its workloads."""
    *others, three = rows()
    folder = written(tmp_path / "r", *(asdict(lacking(row)) for row in rows()))
    for installed, settled in (neither, True), (both, False):
        found = store.discard_unfinished(folder, installed)
        assert found == {row.trial: Retries(1, settled, not_begun=1) for row in rows()}
    # A VPN that lacks its own, too, still could not begin: its block would never be whole, and be replaced for nothing.
    found = store.discard_unfinished(folder, lambda arm, workload: arm != "tinc")
    assert [found[row.trial].settled for row in rows()] == [row.arm == "tinc" for row in rows()]
    # A VPN that is not installed is another matter: direct was measured, and the VPN would be in another hour.
    folder = written(tmp_path / "v", *map(asdict, others), asdict(lacking(three)))
    found = store.discard_unfinished(folder, both)
    assert found[three.trial] == Retries(1, True, not_begun=1)


def test_what_a_second_session_did_not_come_to_is_still_to_be_measured(tmp_path: Path):
    one, two, three = rows()
    folder = written(tmp_path / "r", *(asdict(lacking(row)) for row in rows()))
    with Journal(folder / "journal.jsonl") as journal:
        journal.append({"begun": 1.0, "boot": "one"})
        journal.append({"trial": asdict(replace(one, attempt=2))})
        journal.append({"trial": asdict(replace(two, attempt=2, outcome="void", wanting=True))})
    found = store.discard_unfinished(folder, both)
    assert found == {
        one.trial: Retries(2, True, not_begun=1),
        two.trial: Retries(2, False, not_begun=1),
        three.trial: Retries(1, False, not_begun=1),
    }


def test_an_attempt_without_a_program_does_not_count_once_there_is_another():
    one, *_ = rows()
    later = replace(one, attempt=2)
    assert chosen([lacking(one), later]) == (later,)
    assert chosen([lacking(one)]) == (lacking(one),)


def test_tables_hold_every_attempt_with_its_grade():
    results = STUDY.results()
    one, *others = results.trials
    void = replace(one, outcome="void", samples=(), wanting=True)
    worn = replace(one, attempt=2, grade="disturbed", causes=("late",), grades={"transfer": "disturbed"})
    samples, trials = store.tables(replace(results, trials=(void, worn, *others)))
    found = trials.select(["attempt", "outcome", "grade", "causes", "grades", "wanting"]).to_pylist()
    assert found[0] == {
        "attempt": 1,
        "outcome": "void",
        "grade": None,
        "causes": [],
        "grades": [],
        "wanting": True,
    }
    assert (found[1]["attempt"], found[1]["grade"], found[1]["causes"]) == (2, "disturbed", ["late"])
    assert found[1]["grades"] == [("transfer", "disturbed")]
    assert set(samples["attempt"].to_pylist()[:2]) == {2}


def test_the_folder_of_an_attempt_is_its_own():
    row = rows()[0]
    assert row.folder == row.trial
    assert replace(row, attempt=3).folder == f"{row.trial}~3"
