"""What a trial is told about pauses: windows cut them, and cores that stood still together count once for the share."""

import pytest

from tunnelmark.host.pauses import Pause, host

MS = 1_000_000


def test_nothing_seen_is_no_pause():
    assert host([], 0, 100 * MS) == {"pause_share": 0.0, "pause_longest": 0.0, "pauses": 0.0}


def test_cores_that_stood_still_together_count_once_for_the_share():
    pauses = [Pause(0, 0, 10 * MS, 20 * MS), Pause(1, 0, 12 * MS, 24 * MS), Pause(0, 20 * MS, 50 * MS, 51 * MS)]
    found = host(pauses, 0, 100 * MS)
    assert found["pause_share"] == pytest.approx(0.14), "the last is no longer than the kernel's own work on packets"
    assert found["pause_longest"] == pytest.approx(0.012)
    assert found["pauses"] == 3


def test_a_window_cuts_pauses():
    pauses = [Pause(0, 0, 5 * MS, 15 * MS), Pause(1, 80 * MS, 95 * MS, 130 * MS), Pause(0, 0, 1 * MS, 2 * MS)]
    found = host(pauses, 10 * MS, 100 * MS)
    assert found["pause_share"] == pytest.approx(10 / 90)
    assert (found["pause_longest"], found["pauses"]) == (0.005, 2)
