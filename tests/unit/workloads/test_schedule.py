"""The draw of events: from the seed alone, with time to recover, every kind in turn."""

import itertools
from statistics import mean

import pytest

from tunnelmark.workloads import _schedule
from tunnelmark.workloads._schedule import Scheduled, draw, steps
from tunnelmark.workloads.base import Event

KINDS = ("restart", "restart-fresh", "link-flap", "change-address")
HOUR = {"duration": 3600.0, "every": 20.0, "least": 10.0}


def drawn(seed=1, kinds=KINDS, nodes=("source", "target"), **other):
    return draw(seed, kinds, nodes, **(HOUR | other))


def test_is_the_same_for_a_seed_and_another_for_another():
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_is_the_one_that_recorded_studies_have():
    assert [(round(one.at, 3), one.event, one.node) for one in drawn(1)[:4]] == [
        (0.0, "restart", "target"),
        (24.43, "restart-fresh", "source"),
        (40.399, "change-address", "target"),
        (51.384, "link-flap", "target"),
    ]


def test_leaves_the_time_that_was_asked_between_two_events_and_after_the_last():
    for seed in range(20):
        times = [one.at for one in drawn(seed)]
        assert min(after - one for one, after in itertools.pairwise(times)) >= 10
        assert times[0] == 0
        assert times[-1] <= 3600 - 10


def test_has_one_on_average_as_often_as_asked():
    assert mean(len(drawn(seed)) for seed in range(50)) == pytest.approx(3600 / 20, rel=0.03)


def test_is_even_where_no_time_is_left_to_chance():
    times = [one.at for one in drawn(1, every=10.0)]
    assert times == [10.0 * place for place in range(360)]


def test_has_each_kind_before_any_comes_again():
    kinds = [one.event for one in drawn(3)]
    for place in range(0, len(kinds) - 3, 4):
        assert set(kinds[place : place + 4]) == set(KINDS)


def test_has_both_nodes_about_as_often():
    nodes = [one.node for one in drawn(5)]
    assert 0.35 < nodes.count("source") / len(nodes) < 0.65
    assert {one.node for one in drawn(5, nodes=("target",))} == {"target"}


def test_has_one_event_where_no_more_fit():
    assert len(drawn(1, duration=10.0)) == 1


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [("link-flap", "link-down", "link-up"), ("change-address", "change-address", "restore-address")],
)
def test_what_lasts_is_ended_again(kind, first, second):
    assert steps(Scheduled(5.0, kind, "source"), "a", 1.0, 0.5) == (Event(6.0, first, "a"), Event(6.5, second, "a"))


def test_what_does_not_last_is_one_step():
    assert steps(Scheduled(5.0, "restart", "target"), "b", 1.0, 0.5) == (Event(6.0, "restart", "b"),)
    assert _schedule.steps(Scheduled(0.0, "restart-control", "target"), "b", 1.0, 0.5)[0].kind == "restart-control"
