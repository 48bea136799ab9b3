"""The first answer names the best arm or the tie, with intervals, what bound it, and what it rests on; it never ranks where nothing may be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.report import html, overview
from tunnelmark.report.answers import MetricAnswer
from unit.builders import TCP, UDP, Study
from unit.conditions import STUDY, analysed

CLEAR = Study(
    arms=("direct", "direct-again", "tinc", "nebula"),
    workloads=(TCP,),
    tcp={"tinc": 0.5, "nebula": 0.8},
    noise=0.01,
    blocks=8,
)


def only(analysis: Analysis) -> MetricAnswer:
    (condition,) = overview.overview(analysis)
    return condition.answers[0]


def test_the_best_arm_is_named_with_its_interval_and_the_next():
    answer = only(judge(CLEAR.results()))
    assert answer.title == "TCP goodput (tcp)"
    assert answer.first == "nebula"
    assert answer.text.startswith(" does best: ")
    assert "of direct’s. Next: tinc 5" in answer.text or "of direct’s. Next: tinc 4" in answer.text
    assert "[" in answer.text


def test_arms_that_no_other_beats_share_the_first_place():
    study = replace(CLEAR, arms=("direct", "direct-again", "tinc", "nebula", "openvpn"), tcp={"tinc": 0.5})
    answer = only(judge(study.results()))
    assert sorted(answer.first.split(" and ")) == ["nebula", "openvpn"]
    assert "share the first place: equal within 5" in answer.text
    assert "The last: tinc" in answer.text


def test_where_no_arm_is_better_than_another_none_is_named():
    answer = only(judge(replace(CLEAR, tcp={}).results()))
    assert answer.first == ""
    assert answer.text.startswith("all are equal within 5")
    unclear = only(judge(replace(CLEAR, tcp={}, noise=0.2).results()))
    assert unclear.first == ""
    assert unclear.text.startswith("no arm is shown to do better than another")


def test_nothing_is_ranked_where_the_aa_pair_differs():
    answer = only(judge(replace(CLEAR, tcp={"tinc": 0.5, "direct-again": 0.7}).results()))
    assert answer.first == ""
    assert answer.text.startswith("not ranked; estimates")


def test_each_condition_has_its_own_answer():
    found = overview.overview(analysed(STUDY, {("nebula", "lossy", None): 0.1}))
    assert [one.title for one in found] == ["gigabit", "lossy"]
    assert [one.answers[0].first for one in found] == ["openvpn", "openvpn"]
    assert "Next: nebula" in found[0].answers[0].text
    assert "Next: tinc" in found[1].answers[0].text


def test_an_arm_that_often_fails_says_so():
    fails = tuple(("nebula", "tcp", block) for block in (1, 2))
    assert "unreliable (6/8 succeeded)" in only(judge(replace(CLEAR, fails=fails).results())).text


def test_what_held_them_back_is_said():
    found = overview.overview(judge(replace(CLEAR, workloads=(UDP,)).results()))
    assert found[0].answers[0].text.endswith("Limited by the offered load.")


@pytest.mark.parametrize("blocks", [1, 8])
def test_it_says_what_it_rests_on(blocks):
    said = overview.rests_on(judge(replace(CLEAR, blocks=blocks).results()))
    assert said[0] == ("One block." if blocks == 1 else "8 blocks, each with every arm in a new order.")
    assert any("good" in one for one in said)


def test_the_answer_leads_the_page():
    text = html.render(judge(CLEAR.results()))
    assert text.index("In short: which one?") < text.index("What was found</h2>")
    assert "<strong>nebula</strong> does best: " in text


def test_it_says_what_the_numbers_do_not_show():
    said = overview.not_shown(analysed(STUDY, {}))
    assert "links other than these 2, traffic other than tcp, and what comes after more than 3 s" in said


def test_direct_alone_has_no_answer_and_arms_without_direct_say_so():
    assert overview.overview(judge(Study(arms=("direct",), same_as={}).results())) == ()
    assert "no direct" in only(judge(Study(arms=("tinc", "nebula"), same_as={}).results())).text
