"""What is said of two builds: one sentence first, a table, what it rests on and cannot see; on a terminal, in Markdown, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.build_change import BuildVerdict, builds, decision
from tunnelmark.analyse.model import Analysis
from tunnelmark.plan.enough import Enough
from tunnelmark.report import build_answer, stopped_runs
from unit.analyse.test_build_change import ENOUGH, losing, results

MACHINE = {"cpu": "A processor", "cores": 4, "kernel": "6.12.0"}
GUEST = {"hardware": {"virtual_clock": True, "instruction_ns": 1}}


def answered(new: float = 1.0, **more: Any) -> tuple[Analysis, BuildVerdict]:
    """A study of two builds that were named, on a machine that was."""
    guest: Mapping[str, Any] = more.pop("guest", {})
    same: bool = more.pop("same", False)
    found = results(new, **more)
    enough = more.get("enough", ENOUGH)
    arms = tuple(
        replace(arm, title=title, programs={"tincd": f"/opt/{arm.name}/tincd"}) if title else arm
        for arm, title in zip(found.plan.arms, ("", "1.0", "git:<main>", "1.0"), strict=True)
    )
    hashes = {"old": "a" * 64, "new": ("a" if same else "b") * 64, "old-again": "a" * 64}
    environment = {
        "machine": MACHINE,
        "vpns": {
            f"tinc ({arm})": {"version": "1.0", "programs": {"tincd": {"sha256": hash_}}}
            for arm, hash_ in hashes.items()
        },
        **({"guest": guest} if guest else {}),
    }
    analysis = judge(replace(found, plan=replace(found.plan, arms=arms), environment=environment))
    return analysis, builds(analysis, enough)


def test_the_answer_is_the_first_line():
    first = build_answer.terminal(*answered(0.9)).splitlines()[0]
    assert first.startswith("slower: TCP goodput (tcp, gigabit) slower by ")
    assert build_answer.terminal(*answered(1.0)).splitlines()[0] == "no change of 3 % or more"
    assert build_answer.terminal(*answered(1.1)).splitlines()[0].startswith("faster: ")


def test_undecided_says_how_many_blocks_would_do():
    first = build_answer.terminal(*answered(1.0, noise=0.06, blocks=8)).splitlines()[0]
    words = first.split()
    assert words[:2] == ["undecided:", "with"] and int(words[2]) % 4 == 0
    assert first.endswith("more blocks a change of 3 % would be seen")
    text = build_answer.terminal(*answered(1.0, noise=0.06, blocks=8))
    assert f"  go on: tunnelmark run --extend results/demo --blocks {8 + int(words[2])}\n" in text
    assert "go on" not in build_answer.terminal(*answered(1.0))


def test_an_old_build_that_differs_from_itself_is_said_first_and_nothing_else_is():
    first = build_answer.terminal(*answered(0.8, again=0.9)).splitlines()[0]
    assert first.startswith("undecided: old and old-again are one program under two names, and came out different (TCP")
    assert first.endswith("nothing is said of new")


def test_a_metric_that_could_not_be_judged_is_named_with_the_reason_and_nothing_is_green():
    analysis = judge(losing(2.0))
    verdict = builds(analysis, ENOUGH)
    first = build_answer.terminal(analysis, verdict).splitlines()[0]
    assert first.startswith("undecided: UDP packets lost (udp, gigabit) not judged: it is zero or below in some block")
    assert first.endswith("; no change of 3 % or more by other metrics")
    text = build_answer.comment(analysis, verdict)
    assert text.startswith("### 🟡 tinc: undecided: UDP packets lost")
    assert "- UDP packets lost (udp, gigabit): not judged: it is zero" in text
    assert "Intervals of the judged metrics hold 95 % together" in text
    assert "no change: it is zero in some block, and within the margin in all" in build_answer.terminal(
        judge(losing(0.0)), builds(judge(losing(0.0)), ENOUGH)
    )


def test_both_builds_are_named_with_their_hashes_and_the_machine():
    text = build_answer.terminal(*answered(0.9))
    assert "  old   1.0 (tincd sha256 aaaaaaaaaaaa)" in text  # whose name has its version
    assert "  new   git:<main> (version 1.0, tincd sha256 bbbbbbbbbbbb)" in text
    assert "rests on 12 blocks, of which 12 hold both; A processor, 4 cores, 6.12.0. Attempts: " in text


def test_one_program_under_two_names_is_told():
    assert "old and new are the same program" in build_answer.terminal(*answered(same=True))


def test_a_comment_is_markdown_in_which_names_are_text():
    text = build_answer.comment(*answered(0.9), "https://example.org/runs/1")
    assert text.startswith("### 🔴 tinc: slower: ")
    assert "- **new**: git:&lt;main&gt;" in text
    assert "| metric | old, median | new, median | new / old, by block | verdict |" in text
    assert "[report](https://example.org/runs/1)" in text
    assert "**What this cannot see**" in text
    assert "report: `results/ab`" in build_answer.comment(*answered(), "results/ab")


def test_what_holds_both_builds_back_is_said():
    analysis, verdict = answered()
    held = replace(verdict, lines=tuple(replace(line, bound="the link") for line in verdict.lines))
    text = build_answer.comment(analysis, held)
    assert "the link holds both builds back, and hides what they cost" in text


def test_counted_time_says_what_it_does_not_see_and_counts_instructions():
    analysis, verdict = answered(guest=GUEST)
    assert build_answer.COUNTED_BLIND in build_answer.terminal(analysis, verdict)
    metric = replace(verdict.lines[0].metric, name="cpu_per_packet_source", unit="us", better="lower")
    costs = replace(verdict.lines[0], metric=metric, medians=(12.0, 15.0))
    text = build_answer.terminal(analysis, replace(verdict, costs=(costs,)))
    assert "12,000\N{NO-BREAK SPACE}instructions" in text and "not judged" in text


def test_at_a_fixed_rate_no_packets_wait_for_another():
    analysis, verdict = answered()
    assert build_answer.PACED_BLIND not in build_answer.terminal(analysis, verdict)
    plan = analysis.results.plan
    paced = tuple(replace(use, offered=1e6) for use in plan.workloads)
    slow = replace(analysis, results=replace(analysis.results, plan=replace(plan, workloads=paced)))
    assert build_answer.PACED_BLIND in build_answer.terminal(slow, verdict)


def test_json_has_every_figure_and_no_infinity():
    plain = json.loads(build_answer.as_json(*answered(0.9)), parse_constant=pytest.fail)
    assert (plain["outcome"], plain["blocks"], plain["apart"]) == ("slower", 12, False)
    assert plain["metrics"][0]["metric"] == "goodput"
    assert plain["programs"]["new"] == {"tincd": "b" * 64}
    few = replace(ENOUGH, floor=3)
    json.loads(build_answer.as_json(*answered(blocks=3, enough=few)), parse_constant=pytest.fail)


def test_each_decision_is_told_with_what_more_would_take():
    _, verdict = answered(1.0, noise=0.06, blocks=8)
    made = decision(verdict, ENOUGH, 8, spent=0.0, block_seconds=30.0)
    first, metric, price = build_answer.progress(made, verdict, 30.0)
    assert first == "after 8 blocks, go on: a change of 3 % is neither found nor excluded by 1 of 1 metrics"
    assert metric == "  TCP goodput (tcp, gigabit): undecided"
    assert price.startswith("  about ") and "more blocks would do" in price


def test_the_report_says_why_such_a_run_ended():
    analysis, verdict = answered(0.9)
    made = decision(verdict, ENOUGH, 12, spent=0.0, block_seconds=30.0)
    analysis = replace(analysis, results=replace(analysis.results, decisions=(made,)))
    answer, first, second = stopped_runs.sentences(analysis)
    assert answer.startswith("Old and new: slower: TCP goodput")
    assert "until a change of 3 % between old and new is found or excluded, to 12, with decisions at 12" in first
    assert first.endswith("it ended because that was so (the new build is slower).")
    assert "every look" in second


def test_the_report_of_a_run_that_could_not_be_decided_says_so():
    analysis, verdict = answered(0.8, again=0.9)
    made = decision(verdict, ENOUGH, 12, spent=0.0, block_seconds=30.0)
    analysis = replace(analysis, results=replace(analysis.results, decisions=(made,)))
    said = stopped_runs.sentences(analysis)
    assert said[1].endswith("it ended undecided (the old build came out different from itself).")


def test_a_run_without_a_change_says_nothing_of_builds():
    analysis, _ = answered()
    plain = replace(analysis.results, plan=replace(analysis.results.plan, enough=Enough(8, 40, 0.05)))
    assert "old and new" not in " ".join(stopped_runs.sentences(replace(analysis, results=plain)))
