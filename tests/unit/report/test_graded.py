"""Every report says what the results are worth: attempts by grade, why, and what good trials alone say."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.model.attempt import NOT_INSTALLED
from tunnelmark.record.results import TrialRow
from tunnelmark.report import graded, html, markdown, queries, terminal
from unit.builders import TCP, Study

WHY = "one in a hundred packets left the emulator 1.40 ms late or more (good up to 1.00 ms)"


def analysis(factor: float = 1.0) -> Analysis:
    """Four of tinc's eight trials are disturbed, and their goodput is so many times what it would be; one was made again."""
    results = Study(workloads=(TCP,), noise=0.005, blocks=8, arms=("direct", "direct-again", "tinc")).results()
    rows: list[TrialRow] = []
    for row in results.trials:
        good = replace(row, grade="good", host={"pause_share": 0.02, "pause_longest": 0.011})
        if row.arm == "tinc" and row.block <= 4:
            changed = tuple(replace(s, value=s.value * factor) if s.metric == "goodput" else s for s in row.samples)
            good = replace(good, samples=changed, grade="disturbed", grades={"transfer": "disturbed"}, causes=(WHY,))
        if row.arm == "direct" and row.block == 1:
            rows.append(replace(row, outcome="void", samples=(), reason="trial-void", message="late", wanting=True))
            good = replace(good, attempt=2)
        rows.append(good)
    return judge(replace(results, trials=tuple(rows)))


def on_terminal(found: Analysis) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(terminal.render(found))
    return console.export_text()


def test_attempts_are_counted_by_grade_with_pauses_everywhere():
    said = graded.summary(analysis())
    assert said == (
        "Attempts: 20 good, 4 disturbed, 1 void; 1 of them was made again. "
        "Long pauses of the machine took 2.00 % of the time; its longest pause was 11.0 ms."
    )
    assert said in on_terminal(analysis())
    assert said in markdown.render(analysis())
    assert said in html.render(analysis())


def test_attempts_that_lacked_a_program_are_no_failures_once_they_were_made():
    found = analysis()
    first = [row for row in found.results.trials if row.block == 2]
    lacked = [replace(row, outcome="failed", reason=NOT_INSTALLED, samples=()) for row in first]
    later = [replace(row, attempt=row.attempt + 1) for row in found.results.trials]
    rows = (*lacked, *later)
    said = graded.summary(judge(replace(found.results, trials=rows)))
    assert said.startswith(
        "Attempts: 20 good, 4 disturbed, 1 void; 1 of them was made again; "
        "3 more could not begin, as a program was not installed, and were made later. "
    ), said
    never = judge(replace(found.results, trials=tuple(lacked)))
    assert graded.summary(never).startswith("Attempts: 3 failed")


def test_pauses_are_a_share_of_the_time_and_not_the_mean_of_each_attempt_s_share():
    found = analysis()
    rows = [
        replace(
            row,
            host={"pause_share": 0.1 if row.block <= 4 else 0.0, "pause_longest": 0.011},
            phases={**row.phases, "warmup": 0.0, "measure": 2.0 if row.block <= 4 else 38.0},
        )
        for row in found.results.trials
        if row.attempt == 1 and not row.wanting
    ]
    found = judge(replace(found.results, trials=tuple(rows)))
    even = len([row for row in rows if row.block <= 4]) / len(rows)
    share = 100 * 0.1 * 2 * even / (2 * even + 38 * (1 - even))
    assert f"took {share:.2f} % of the time" in graded.summary(found)


def test_what_was_made_again_need_not_have_been_void_and_pauses_are_those_of_all_attempts():
    found = analysis()
    first = next(row for row in found.results.trials if row.arm == "direct-again")
    others = [row for row in found.results.trials if row is not first]
    again = replace(first, attempt=2, host={**first.host, "pause_share": 0.27, "pause_longest": 0.5})
    wanting = replace(first, wanting=True, host={**first.host, "pause_share": 0.02})
    rows = (wanting, again, *others)
    said = graded.summary(judge(replace(found.results, trials=rows)))
    assert "2 of them were made again" in said and "were void" not in said
    assert "Long pauses of the machine took 3.00 % of the time; its longest pause was 500.0 ms" in said


def test_the_page_says_what_became_of_each_arms_attempts():
    rows = {row[0]: row[1:] for row in graded.by_arm(analysis())}
    assert rows["tinc"] == ("8", "4", "4", "0", "0", "2.00\N{NO-BREAK SPACE}%", "11.0\N{NO-BREAK SPACE}ms")
    assert rows["direct"][:5] == ("9", "8", "0", "1", "0")
    failing = judge(Study(workloads=(TCP,), fails=(("tinc", "tcp", 2),)).results())
    assert {row[0]: row[5] for row in graded.by_arm(failing)}["tinc"] == "1"
    assert '<td class="bad">1</td>' in html.render(failing)


def test_reasons_are_told_once_with_their_count():
    assert graded.causes(analysis()) == [f"{WHY} (4 of 4 disturbed)"]
    assert f"{WHY} (4 of 4 disturbed)" in html.render(analysis())


def test_good_trials_alone_stand_beside_all_and_are_marked_where_they_differ():
    (same,) = graded.alone(analysis())
    assert (same.arm, same.differs) == ("tinc", False)
    assert "(8 blocks)" in same.usable
    assert "(4 blocks)" in same.good
    (other,) = graded.alone(analysis(factor=0.5))
    assert other.differs
    assert other.good in on_terminal(analysis(factor=0.5))
    assert f"{other.good} ⚠" in markdown.render(analysis(factor=0.5))
    assert "which say something else" in html.render(analysis(factor=0.5))
    assert "which say something else" not in html.render(analysis())


def test_attempts_are_named_in_the_raw_data():
    page = html.render(analysis())
    assert "ok (attempt 2)" in page
    assert "ok, disturbed" in page


def test_figures_over_time_lack_the_trials_that_are_void_for_their_metric():
    results = Study(workloads=(TCP,), series=True, blocks=3, arms=("direct", "tinc")).results()
    trials = tuple(
        replace(row, grade="good", grades={"transfer": "void"}) if (row.arm, row.block) == ("tinc", 2) else row
        for row in results.trials
    )
    found = judge(replace(results, trials=trials))
    series = queries.series(found, found.settings()[0], TCP.metrics[0])
    assert {arm: list(blocks) for arm, blocks in series.items()} == {"direct": [1, 2, 3], "tinc": [1, 3]}
