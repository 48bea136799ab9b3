"""Who is in front, in words and at a glance: one name, a tie, some names, all but some, or a count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Ranking
from tunnelmark.report import in_front
from unit.builders import Study

FIVE = ("nebula", "tinc", "openvpn", "yggdrasil", "wireguard-go")
STUDY = Study(tcp={"nebula": 0.6, "tinc": 0.3, "openvpn": 0.3, "yggdrasil": 0.4}, noise=0.01)


@pytest.fixture(scope="module")
def ranked() -> tuple[Analysis, Ranking]:
    analysis = judge(STUDY.results())
    return analysis, next(one for one in analysis.rankings if one.metric == "goodput")


def ordered(ranked: tuple[Analysis, Ranking], front: int, *, equal: bool) -> str:
    """What is said at a glance of five arms of which so many, in the order of FIVE, are in front."""
    analysis, ranking = ranked
    place = {arm: FIVE.index(arm) for arm in FIVE}
    places = sorted(ranking.places, key=lambda one: place[one.arm])
    placed = replace(ranking, places=tuple(replace(one, first=1 if at < front else 2) for at, one in enumerate(places)))
    cells = tuple(replace(one, verdict="equal" if equal else "undecided") for one in analysis.cells)
    pairs = tuple(replace(one, equal=equal) for one in analysis.pairs)
    return in_front.at_a_glance(in_front.of_ranking(replace(analysis, cells=cells, pairs=pairs), placed), placed)


@pytest.mark.parametrize(
    ("front", "equal", "said"),
    [
        (1, False, "nebula"),
        (2, False, "nebula and tinc"),
        (3, True, "nebula, tinc and openvpn"),
        (4, False, "all but wireguard-go"),
        (5, True, "all 5 tie"),
        (5, False, "none of 5 is shown to be ahead"),
    ],
)
def test_at_a_glance(ranked: tuple[Analysis, Ranking], front: int, equal: bool, said: str):
    assert ordered(ranked, front, equal=equal) == said


def test_an_arm_is_ahead_only_of_arms_that_are_behind(ranked: tuple[Analysis, Ranking]):
    analysis, ranking = ranked
    nobody = replace(ranking, places=tuple(replace(one, first=1) for one in ranking.places))
    found = in_front.of_ranking(analysis, nobody)
    assert (found.behind, found.ahead) == ((), ())
