"""The picture of the order of the trials: a mark for each, or, where they would run into each other, for each arm and block."""

from __future__ import annotations

import itertools
import re

from tunnelmark.analyse import judge
from tunnelmark.report.figures import lab
from unit.builders import Study

FAILED = (("tinc", "tcp", 2),)


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
