"""What failed is told once for each reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tunnelmark.analyse.failures import causes, grouped
from tunnelmark.record.results import TrialRow
from unit.builders import Study

ROW = replace(Study().results().trials[0], outcome="failed", reason="missing-part", message="not installed", log=None)


def rows(count: int, **changes: Any) -> list[TrialRow]:
    return [replace(ROW, trial=f"00{number}.x", **changes) for number in range(count)]


def test_trials_of_an_arm_that_say_the_same_are_one_entry() -> None:
    tinc, nebula = rows(4, arm="tinc"), rows(2, arm="nebula")
    assert [group.title for group in grouped([*tinc, *nebula])] == ["tinc, 4 trials", "nebula, 2 trials"]


def test_another_message_or_a_log_is_an_entry_of_its_own() -> None:
    told = [*rows(2, arm="tinc"), *rows(1, arm="tinc", message="it hung"), *rows(2, arm="tinc", log="the end")]
    assert [len(group.rows) for group in grouped(told)] == [2, 1, 1, 1]


def test_few_trials_of_a_cause_are_named_and_many_are_counted_by_arm() -> None:
    few, many = rows(2, reason="workload-failed"), [*rows(3, arm="tinc"), *rows(1, arm="nebula")]
    assert causes([*few, *many]) == "workload-failed: 000.x, 001.x; missing-part: 3 of tinc, 1 of nebula"
