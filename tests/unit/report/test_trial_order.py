"""The picture of the order of the trials: a mark for each, or, where they would run into each other, for each arm and block."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.report import html, overview
from tunnelmark.report.figures import lab, series
from unit.builders import PING, Study

FAILED = (("tinc", "tcp", 2),)
PINGS = Scenario("gigabit", "pair", "ping")


def titles(study: Study) -> list[str]:
    return re.findall(r"<title>([^<]*)</title>", lab.order(judge(study.results())))


def test_of_few_trials_each_has_its_mark() -> None:
    study = Study(arms=("direct", "tinc"), fails=FAILED)
    marks = titles(study)[1:]
    assert len(marks) == len(study.results().trials)
    assert [mark for mark in marks if mark.endswith("failed")] == [
        f"{row.position + 1}: {row.trial}, failed" for row in study.results().trials if row.outcome == "failed"
    ]


def test_of_many_trials_each_arm_has_one_mark_a_block_with_its_counts() -> None:
    marks = titles(Study(arms=("direct", "tinc"), blocks=150, fails=FAILED))[1:]
    assert len(set(marks)) == 2 * 150
    assert "tinc, block 1: 3 good" in marks
    assert "tinc, block 2: 2 good, 1 failed" in marks


def test_labels_of_many_blocks_do_not_run_into_each_other() -> None:
    drawn = lab.order(judge(Study(arms=("direct", "tinc"), blocks=150).results()))
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*>block ', drawn)]
    assert places[0] < 150
    assert all(after - before > 6.6 * len("block 1") for before, after in itertools.pairwise(places))


def again(study: Study) -> Analysis:
    """The study, of which one trial was void at first and made again."""
    results = study.results()
    first = next(row for row in results.trials if (row.arm, row.block) == ("tinc", 1))
    void = replace(first, outcome="void", samples=(), reason="trial-void", message="late", wanting=True)
    rows = tuple(replace(row, attempt=2) if row is first else row for row in results.trials)
    return judge(replace(results, trials=(void, *rows)))


def test_a_trial_that_was_made_again_is_counted_once_and_its_attempts_apart() -> None:
    analysis = again(Study(arms=("direct", "tinc"), blocks=5))
    assert overview.ran(analysis) == "30 of 30 trials, 31 attempts"
    assert "Order of the trials: 30 of 30 trials, 31 attempts, in 5 randomised blocks" in lab.order(analysis)
    assert "30 of 30 trials, 31 attempts" in html.render(analysis)
    assert overview.ran(judge(Study(arms=("direct", "tinc"), blocks=5).results())) == "30 of 30 trials"


def test_what_the_laboratory_spoilt_is_not_called_failed() -> None:
    marks = re.findall(r"<title>([^<]*)</title>", lab.order(again(Study(arms=("direct", "tinc"), blocks=150))))
    assert "tinc, block 1: 3 good, 1 void" in marks
    assert not any("failed" in mark for mark in marks)


def test_long_names_of_arms_have_the_room_that_they_need() -> None:
    long = "wireguard-go-2023-normalised-nested"
    drawn = lab.order(judge(Study(arms=("direct", long)).results()))
    place = re.search(rf'<text x="([\d.]+)"[^>]*>{long}<', drawn)
    assert place is not None and float(place[1]) > 6.5 * len(long)
    drawn = series.spread(
        judge(Study(arms=("direct", long), workloads=(PING,), series=True).results()), PINGS, PING.metrics[3]
    )
    place = re.search(rf'<text x="([\d.]+)"[^>]*>{long}<', drawn)
    assert place is not None and float(place[1]) > 8 * len(long)
