"""Which arm has the best estimate, at a glance, and how sure it is that it is ahead; who counts as ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Ranking
from tunnelmark.report import in_front
from unit.builders import Study

STUDY = Study(tcp={"nebula": 0.6, "tinc": 0.3, "openvpn": 0.3, "yggdrasil": 0.4}, noise=0.01)


@pytest.fixture(scope="module")
def ranked() -> tuple[Analysis, Ranking]:
    analysis = judge(STUDY.results())
    return analysis, next(one for one in analysis.rankings if one.metric == "goodput")


@pytest.mark.parametrize(
    ("beaten", "said"),
    [
        (4, "nebula 60 %, ahead of all 4 others"),
        (2, "nebula 60 %, ahead of 2 of 4 others"),
        (0, "nebula 60 %, not shown to be ahead"),
    ],
)
def test_the_best_estimate_is_named_with_how_many_it_is_shown_to_beat(
    ranked: tuple[Analysis, Ranking], beaten: int, said: str
):
    """As it was read: "all but zerotier, netbird and tailscale" are in front, and among them one of 15 % where those have 98 %."""
    analysis, ranking = ranked
    places = tuple(replace(one, last=5 - beaten) if one.arm == "nebula" else one for one in ranking.places)
    placed = replace(ranking, places=places)
    assert in_front.at_a_glance(in_front.of_ranking(analysis, placed), placed, "nebula", "60 %") == said


def test_arms_that_are_shown_to_be_equal_tie_whatever_their_estimates(ranked: tuple[Analysis, Ranking]):
    analysis, ranking = ranked
    placed = replace(ranking, places=tuple(replace(one, first=1) for one in ranking.places))
    equal = replace(analysis, cells=tuple(replace(one, verdict="equal") for one in analysis.cells))
    assert in_front.at_a_glance(in_front.of_ranking(equal, placed), placed, "nebula", "60 %") == "all 5 tie"


def test_an_arm_is_ahead_only_of_arms_that_are_behind(ranked: tuple[Analysis, Ranking]):
    analysis, ranking = ranked
    nobody = replace(ranking, places=tuple(replace(one, first=1) for one in ranking.places))
    found = in_front.of_ranking(analysis, nobody)
    assert (found.behind, found.ahead) == ((), ())
