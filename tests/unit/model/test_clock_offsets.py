"""What follows from two clocks that were compared: stamps on one of them, and how wrong these may be."""

from __future__ import annotations

import numpy as np
import pytest

from tunnelmark.model.clock_offsets import ClockCourse, ClockOffset, apart, rounded_up

SECOND = 10**9
BEGIN = 1_790_000_000 * SECOND


def test_stamps_of_a_clock_that_is_ahead_and_drifts_are_put_on_ours():
    before, after = ClockOffset(5 * SECOND, 0, 100_000), ClockOffset(5 * SECOND + 200_000, 0, 300_000)
    course = ClockCourse(before, after, BEGIN, BEGIN + 10 * SECOND)
    true = BEGIN + np.arange(0, 11, 5) * SECOND
    theirs = true + 5 * SECOND + np.array([0, 100_000, 200_000])
    assert np.abs(course.ours(theirs) - true).max() <= 10
    assert course.error == 300_000


def test_a_clock_that_was_set_meanwhile_is_wrong_by_what_it_was_set_by():
    course = ClockCourse(ClockOffset(0, 0, 1000), ClockOffset(SECOND, 0, 1000), BEGIN, BEGIN + 3 * SECOND)
    assert course.error == SECOND + 1000


@pytest.mark.parametrize(
    ("seconds", "rounded"), [(0.0, 0.0), (3e-7, 1e-6), (2e-4, 2e-4), (2.1e-4, 5e-4), (6e-4, 1e-3), (0.013, 0.02)]
)
def test_errors_are_rounded_up_to_few_different_ones(seconds: float, rounded: float):
    assert rounded_up(seconds) == pytest.approx(rounded)


def test_two_clocks_differ_by_no_more_than_their_offsets_and_errors_allow():
    offsets = [ClockOffset(0, 1000, 500), ClockOffset(0, -2000, 100)]
    assert apart(offsets) == pytest.approx(3600e-9) and apart([]) == 0
