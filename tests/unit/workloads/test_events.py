"""The schedule of faults: what begins each, what ends it, and in which order."""

import pytest

from tunnelmark.workloads._events import INSTANT, KINDS, PAIRS, Fault, schedule
from tunnelmark.workloads.base import Event


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_that_lasts_is_undone_after_its_outage(kind):
    events = Fault(2.0, kind, "b", 3.0).events
    assert [event.at for event in events] == ([2.0, 5.0] if kind in PAIRS else [2.0])
    assert {event.node for event in events} == {"b"}


@pytest.mark.parametrize("kind", INSTANT)
def test_what_need_not_last_is_one_event(kind):
    assert Fault(2.0, kind, "b").events == (Event(2.0, kind, "b"),)


def test_what_does_not_last_has_no_outage():
    assert Fault(2.0, "change-address", "b", 3.0).end == 2.0
    assert Fault(2.0, "partition", "b", 3.0).end == 5.0


def test_faults_may_overlap_and_are_done_by_time():
    events = schedule([Fault(4.0, "restart", "a"), Fault(1.0, "partition", "b", 5.0), Fault(2.0, "reboot", "c", 2.0)])
    assert events == (
        Event(1.0, "partition", "b"),
        Event(2.0, "power-off", "c"),
        Event(4.0, "restart", "a"),
        Event(4.0, "power-on", "c"),
        Event(6.0, "partition-heal", "b"),
    )
