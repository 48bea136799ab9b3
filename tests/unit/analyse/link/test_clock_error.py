"""Looks between two hosts: delays that are wrong together by what their clocks may be are no fault of the link, more than that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse.link.judge import judge
from tunnelmark.plan.impairments import Direction, Jitter
from tunnelmark.units import Duration, Share
from unit.made_looks import flow, lines, observation, profile

STEADY = Direction(delay=Duration(0.02))
WANDERS = Direction(delay=Duration(0.02), jitter=Jitter(Duration(0.002), "normal", Share(0.0), keep_order=False))
ERROR = 0.002
OFF = ("delay_mean", "delay_p50", "delay_p05")


def looked(way: Direction, ahead: float, error: float):
    """What is said of a look at a true link, where one end's clock is ahead."""
    seen = observation(flow(way, "a", 1, late=ahead), flow(way, "b", 2, late=-ahead))
    return judge(profile(way), replace(seen, clock_error=error), "alone")


@pytest.mark.parametrize("way", [STEADY, WANDERS], ids=["steady", "jitter"])
@pytest.mark.parametrize("ahead", [-0.9 * ERROR, 0.9 * ERROR])
def test_what_the_clocks_may_be_wrong_by_is_no_fault_of_the_link(way: Direction, ahead: float):
    check = looked(way, ahead, ERROR)
    assert check.verdict == "verified", check.reason
    assert "clocks are known to 2 ms" in lines(check)["delay_mean"].note
    assert looked(way, ahead, 0.0).verdict == "outside", "with one clock it would be"


@pytest.mark.parametrize("way", [STEADY, WANDERS], ids=["steady", "jitter"])
def test_more_than_that_is_outside(way: Direction):
    found = lines(looked(way, 2 * ERROR, ERROR))
    assert all(found[name].ok is False for name in OFF)


def test_a_delay_that_the_clocks_could_hide_is_not_called_shown():
    parts = {part.name: part for part in looked(Direction(delay=Duration(0.02)), 0.0, 0.05).parts}
    assert parts["delay"].verdict == "not tested"
    assert {part.name: part for part in looked(STEADY, 0.0, ERROR).parts}["delay"].verdict == "shown"
