"""The A/A pair is judged first, and its word is final."""

from __future__ import annotations

import pytest

from tunnelmark.analyse import gates, judge
from unit.builders import ARMS, PING, TCP, Study


def test_twins_that_are_the_same_agree_and_say_what_they_could_have_seen():
    analysis = judge(Study(noise=0.03).results())
    assert analysis.same.standing == "agrees"
    noise = {pair.comparison.metric: pair.noise for pair in analysis.same.twins}
    assert noise["goodput"] == pytest.approx(1.04, abs=0.03)


def test_twins_that_agree_only_because_their_values_scatter_say_so():
    said = judge(Study(noise=0.6, arms=("direct", "direct-again", "tinc"), workloads=(TCP,)).results()).same
    assert said.standing == "agrees"
    assert "least is known of tcp goodput (gigabit, pair), where a difference below a factor of " in said.explanation
    assert "least" not in judge(Study(noise=0.03).results()).same.explanation


def test_a_bias_of_ten_per_cent_fails_and_nothing_is_ranked():
    analysis = judge(Study(tcp={"direct-again": 0.9}, noise=0.02).results())
    assert analysis.same.standing == "differs"
    assert analysis.rankings == ()
    assert "goodput" in analysis.same.explanation
    assert gates(analysis)[0].standing == "not passed"


def test_a_sure_difference_below_the_margin_does_not_fail():
    analysis = judge(Study(tcp={"direct-again": 0.995}, noise=0.0001).results())
    assert analysis.same.standing == "agrees"


def test_twins_that_are_the_same_fail_seldom():
    standings = [judge(Study(arms=ARMS[:3], seed=seed).results()).same.standing for seed in range(40)]
    assert standings.count("differs") <= 4


@pytest.mark.parametrize(
    "study",
    [
        Study(arms=("direct", "tinc"), same_as={}),
        Study(blocks=1),
        Study(fails=tuple(("direct-again", "tcp", block) for block in (1, 2, 3))),
        Study(stop_after=40),
    ],
    ids=["no pair", "one block", "pair failed", "unfinished"],
)
def test_without_a_judged_pair_nothing_is_ranked(study):
    analysis = judge(study.results())
    assert analysis.same.standing == "not judged"
    assert analysis.rankings == ()
    assert (gates(analysis)[0].passed, gates(analysis)[0].standing) == (False, "not judged")


def test_a_vpn_may_be_the_twin_too():
    study = Study(
        arms=("direct", "tinc", "tinc-again"),
        same_as={"tinc-again": "tinc"},
        vpns={"tinc-again": "tinc"},
        tcp={"tinc": 0.5, "tinc-again": 0.5},
        workloads=(TCP, PING),
    )
    analysis = judge(study.results())
    assert analysis.same.standing == "agrees"
    again = analysis.cell("tinc-again", analysis.settings()[0], "goodput")
    assert again.verdict == "worse"
    assert again.against_direct is not None
    assert again.against_direct.against == "direct"
