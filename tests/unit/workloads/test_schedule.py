"""The draw of events: from the seed alone, with time to recover, every kind in turn."""

import itertools
from statistics import mean

import pytest

from tunnelmark.workloads._schedule import Scheduled, draw, kind_of
from tunnelmark.workloads.base import ENDINGS, Event

KINDS = ("restart", "restart-fresh", "link-flap", "change-address")
HOUR = {"duration": 3600.0, "every": 20.0, "outage": 2.0, "recover": 8.0}


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


def test_a_restart_is_over_at_once_and_all_else_lasts():
    outages = {one.event: one.outage for one in drawn(2)}
    assert outages == {"restart": 0.0, "restart-fresh": 0.0, "link-flap": 2.0, "change-address": 2.0}


LASTING = [
    ("link-flap", "link-down", "link-up"),
    ("change-address", "change-address", "restore-address"),
    ("reboot", "power-off", "power-on"),
    ("partition", "partition", "partition-heal"),
    ("udp-cut", "udp-cut", "udp-heal"),
    ("udp-blocked", "udp-blocked", "udp-open"),
    ("restart", "stop", "start"),
    ("restart-control", "stop-control", "start-control"),
]


@pytest.mark.parametrize(("kind", "first", "last"), LASTING)
def test_what_lasts_is_ended_again(kind, first, last):
    done = Scheduled(5.0, kind, "source", 0.5).events("a", 1.0)
    assert done == (Event(6.0, first, "a"), Event(6.5, last, "a"))
    assert last in ENDINGS
    assert first not in ENDINGS
    assert kind_of(first, last) == kind


@pytest.mark.parametrize(("kind", "first", "last"), LASTING)
def test_what_has_begun_and_not_ended_is_no_fault(kind, first, last):
    assert kind_of(first, None) is None
    assert kind_of(last, None) is None


@pytest.mark.parametrize("kind", ["restart", "restart-fresh", "restart-control"])
def test_what_does_not_last_is_one_step(kind):
    assert Scheduled(5.0, kind, "target", 0.0).events("b", 1.0) == (Event(6.0, kind, "b"),)
    assert kind_of(kind, None) == kind
