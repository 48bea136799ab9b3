"""How late a machine wakes: what latenesses say, and one look at this machine."""

from __future__ import annotations

import pytest

from tunnelmark.lab import wakeups
from tunnelmark.lab.wakeups import BEAT, summary


def test_pauses_are_a_share_of_the_time():
    found = summary([0.0001] * 98 + [0.004, 0.006], seconds=1.0)
    assert (found.p50, found.p99, found.longest) == (0.0001, 0.004, 0.006)
    assert found.pause_share == pytest.approx(0.01)


def test_nothing_seen_says_nothing():
    assert summary([], 1.0).longest == 0.0


@pytest.mark.root
@pytest.mark.parametrize("awake", [False, True])
def test_this_machine_wakes_at_some_time(awake):
    found = wakeups.measure(0.2, awake)
    assert 0 < found.p50 <= found.p99 <= found.longest
    assert found.p50 < 100 * BEAT
    assert 0 <= found.pause_share <= 1.0 or found.longest > 0.2
