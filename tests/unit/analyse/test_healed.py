"""What is void is no VPN's failure: one attempt of a trial counts, blocks are replaced, and good trials are told alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tunnelmark.analyse import gates, judge
from tunnelmark.analyse.attempts import chosen, grade_of
from tunnelmark.analyse.failures import grouped
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.analyse.remedy import mostly_void, reasons, remedies
from tunnelmark.model.attempt import NOT_INSTALLED
from tunnelmark.record.results import ProfileInfo, Results, TrialRow
from tunnelmark.report import json_export as as_json
from tunnelmark.report.cautions import cautions
from unit.builders import PING, TCP, Study

LATE = "one in a hundred packets left the emulator 3.30 ms late or more (good up to 0.10 ms, void beyond 1.00 ms)"
SETTING = Scenario("gigabit", "pair", "tcp")


def void(row: TrialRow, message: str = LATE, **more: Any) -> TrialRow:
    return replace(row, outcome="void", samples=(), reason="trial-void", message=message, hint="keep it quiet", **more)


def changed(results: Results, arm: str, block: int, *instead: TrialRow) -> Results:
    """The results with these rows in place of one."""
    rows: list[TrialRow] = []
    for row in results.trials:
        rows += instead if (row.arm, row.block, row.workload) == (arm, block, "tcp") else [row]
    return replace(results, trials=tuple(rows))


def study() -> Study:
    return Study(workloads=(TCP,))


def of(results: Results, arm: str, block: int) -> TrialRow:
    return next(row for row in results.trials if (row.arm, row.block) == (arm, block))


def test_of_several_attempts_the_first_that_is_settled_counts():
    row = study().results().trials[0]
    first, second, third = void(row), replace(row, attempt=2, wanting=True), replace(row, attempt=3)
    assert chosen([first, second, third]) == (third,)
    assert chosen([first, second]) == (second,)
    assert chosen([first, void(row, attempt=2)]) == (void(row, attempt=2),)
    failed = replace(row, outcome="failed", attempt=2)
    assert chosen([first, failed, third]) == (failed,)  # a failure is a result, whatever came later


def test_a_void_attempt_that_was_made_again_leaves_no_trace_in_the_figures():
    results = study().results()
    row = of(results, "tinc", 2)
    healed = judge(changed(results, "tinc", 2, void(row), replace(row, attempt=2)))
    plain = judge(results)
    assert healed.pairs == plain.pairs
    assert healed.arms == plain.arms
    assert [one.attempt for one in healed.repeated] == [1]
    gate = gates(healed)[1]
    assert gate.passed
    assert "1 void attempts were made again" in gate.explanation


def test_an_attempt_that_lacked_a_program_and_was_made_again_leaves_no_trace_in_the_figures_either():
    results = study().results()
    row = of(results, "tinc", 2)
    lacking = replace(row, outcome="failed", samples=(), reason=NOT_INSTALLED)
    made = judge(changed(results, "tinc", 2, lacking, replace(row, attempt=2)))
    assert (made.pairs, made.arms) == (judge(results).pairs, judge(results).arms)
    gate = gates(made)[1]
    assert gate.passed
    assert "1 attempts for which a program was not installed were made again" in gate.explanation


def test_what_is_void_does_not_count_against_an_arm():
    results = study().results()
    analysis = judge(changed(results, "tinc", 2, void(of(results, "tinc", 2))))
    summary = next(arm for arm in analysis.arms if arm.arm == "tinc")
    assert (summary.success.count, summary.success.total, summary.void) == (4, 4, 1)
    cell = analysis.cell("tinc", SETTING, "goodput")
    assert (cell.success.total, cell.void, len(cell.values)) == (4, 1, 4)
    assert [row.arm for row in analysis.void] == ["tinc"]
    assert not analysis.failed
    assert not gates(analysis)[1].passed
    (caution,) = (text for text in cautions(analysis) if "void" in text)
    assert "1 of 35 trials are void, by the laboratory's fault and not a VPN's" in caution
    assert not any("failed" in text or "no result at all" in text for text in cautions(analysis))


def test_a_void_trial_in_a_block_that_another_replaces_is_made_good():
    results = study().results()
    results = changed(results, "tinc", 2, void(of(results, "tinc", 2)))
    extra = [replace(row, trial="006" + row.trial[3:], block=6) for row in results.trials if row.block == 5]
    analysis = judge(replace(results, trials=(*results.trials, *extra)))
    assert analysis.whole[SETTING] == 5
    assert gates(analysis)[1].passed
    assert len(analysis.cell("direct", SETTING, "goodput").values) == 6


def test_a_metric_that_cannot_be_used_is_left_out_and_the_others_are_not():
    results = Study(workloads=(PING,)).results()
    metrics = tuple(replace(m, feels="tail" if m.name == "rtt_p99" else "delay") for m in PING.metrics)
    plan = replace(results.plan, workloads=(replace(PING, metrics=metrics),))
    row = of(results, "tinc", 2)
    worn = replace(row, grade="disturbed", grades={"tail": "void"}, causes=(LATE,))
    rows = tuple(worn if one is row else one for one in results.trials)
    analysis = judge(replace(results, plan=plan, trials=rows))
    setting = Scenario("gigabit", "pair", "ping")
    assert [value.block for value in analysis.cell("tinc", setting, "rtt_p99").values] == [1, 3, 4, 5]
    assert len(analysis.cell("tinc", setting, "rtt_p50").values) == 5
    assert [(found.trial, found.causes) for found in analysis.disturbed] == [(row.trial, (LATE,))]


def mostly(rate: int | None = None, impaired: bool = True, command: tuple[str, ...] = ()) -> Analysis:
    results = Study(workloads=(TCP,), profiles=(ProfileInfo("wifi-bad", "Wi-Fi", "", rate, None, impaired),)).results()
    rows = [
        void(row, LATE.replace("3.30", f"{3 + row.position / 10:.2f}")) if row.position % 4 else row
        for row in results.trials
    ]
    return judge(replace(results, trials=tuple(rows), environment={"command": command}))


def test_a_run_that_is_mostly_void_says_first_what_why_and_what_to_change():
    command = ("tunnelmark", "compare", "tinc", "--profile", "wifi-bad", "--out", "here")
    analysis = mostly(command=command)
    assert mostly_void(analysis)
    first, why, *change = cautions(analysis)[:4]
    assert first.startswith("The laboratory could not do its work: 26 of 35 trials are void")
    assert why.count("left the emulator") == 1  # one reason, however its figures differ
    assert "(26 of 26)" in why
    assert "tunnelmark compare tinc --profile wifi-bad+fast-ethernet" in change[0]
    assert "tunnelmark compare tinc --profile wifi-bad --backend vm" in change[1]
    said = "\n".join(cautions(analysis))
    assert " yet" not in said
    assert "so far" not in said


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (None, 'profiles = ["wifi-bad+fast-ethernet"] in the study'),
        (1_000_000_000, "ask for a lower rate"),
        (20_000_000, "--backend vm"),
    ],
)
def test_the_remedy_fits_the_link_and_the_command(rate, said):
    (first, *_) = remedies(mostly(rate, command=("tunnelmark", "run", "mine.toml", "--resume", "there")))
    assert said in first


def test_other_work_is_named_as_a_remedy():
    analysis = mostly()
    busy = replace(analysis, failures=tuple(replace(row, host={"other_cpu": 1.1}) for row in analysis.failures))
    assert "took 1.1 cores" in remedies(busy)[0]


def test_what_is_void_for_one_reason_is_told_once_with_its_count():
    rows = [void(row, LATE.replace("3.30", f"{row.position}.11")) for row in study().results().trials[:24]]
    (group,) = grouped(rows)
    assert group.title.endswith("24 trials")
    assert len(reasons(rows)) == 1
    assert len(reasons([*rows, void(rows[0], "x" * 700)])[1]) < 320


def test_good_trials_are_told_alone_and_first_where_they_say_something_else():
    results = replace(study(), noise=0.005, blocks=8).results()
    rows = []
    for row in results.trials:
        if row.arm == "tinc" and row.block <= 4:
            halved = tuple(replace(s, value=s.value / 2) if s.metric == "goodput" else s for s in row.samples)
            row = replace(
                row, samples=halved, grade="disturbed", grades={"transfer": "disturbed"}, causes=("other work",)
            )
        else:
            row = replace(row, grade="good")
        rows.append(row)
    analysis = judge(replace(results, trials=tuple(rows)))
    cell = analysis.cell("tinc", SETTING, "goodput")
    assert cell.good is not None
    assert cell.good.blocks == 4
    assert cell.good.differs
    assert analysis.cell("nebula", SETTING, "goodput").good is None
    assert cautions(analysis)[0].startswith(
        "Good trials alone say something else than all usable ones: tinc by TCP goodput"
    )
    assert any("disturbed 4 of 56 usable trials; 52 are good" in text for text in cautions(analysis))
    told = as_json.render(analysis)
    assert '"grade": "disturbed"' in told


def test_results_from_before_there_were_grades_have_them_by_other_work():
    row = study().results().trials[0]
    assert grade_of(replace(row, host={"other_cpu": 0.2, "steal": 0.1})) == "disturbed"
    assert grade_of(row) == "good"
    assert grade_of(replace(row, outcome="failed")) is None


def test_unfinished_and_finished_runs_are_told_apart():
    half = judge(replace(study(), stop_after=3).results())
    assert "yet" in half.same.explanation
    few = study().results()
    rows = tuple(void(row) if row.arm == "direct-again" else row for row in few.trials)
    assert "yet" not in judge(replace(few, trials=rows)).same.explanation
