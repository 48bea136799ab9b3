"""Which way traffic went around an event, read from what the collector `path` writes."""

import json

import pytest

from tunnelmark.workloads import _paths


def read(looks: list[tuple[float, float]], begun: float = 10.0, ended: float = 20.0) -> dict[str, float]:
    """From looks as (time, share that was relayed)."""
    said = [{"time": time, "path_direct": 100 - relayed, "path_relayed": relayed} for time, relayed in looks]
    return {sample.metric: sample.value for sample in _paths.read(json.dumps({"looks": said}), begun, ended)}


def test_a_relay_takes_over_and_gives_back():
    found = read([(9, 0), (10, 0), (10.5, 5), (14, 100), (19, 100), (21, 100), (23, 40), (24, 0), (25, 0)])
    assert found == {
        "relayed_before": 0,
        "relayed_during": pytest.approx(205 / 3),
        "relayed_after": pytest.approx(35),
        "relay_after": 4,
        "direct_again": 4,
    }


def test_a_path_that_stays_with_its_relay_is_never_direct_again():
    assert "direct_again" not in read([(9, 0), (14, 100), (21, 100), (30, 100)])


def test_a_path_that_was_back_before_the_event_ended_took_no_time():
    assert read([(9, 0), (12, 100), (15, 0), (21, 0)])["direct_again"] == 0


def test_without_a_relay_there_is_nothing_to_time():
    assert read([(9, 0), (21, 0)]) == {"relayed_before": 0, "relayed_after": 0}


def test_what_was_not_watched_is_not_said():
    assert _paths.read("", 1.0, 2.0) == []


def test_what_it_says_is_declared():
    found = read([(9, 0), (14, 100), (21, 100), (24, 0)])
    assert set(found) == {metric.name for metric in _paths.METRICS}
