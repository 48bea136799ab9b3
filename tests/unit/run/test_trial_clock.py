"""The seconds of a trial by phase."""

from __future__ import annotations

import pytest

from tunnelmark.run.measurement import Clock


def test_a_phase_that_ends_in_an_error_is_booked_and_seconds_can_be_moved() -> None:
    clock = Clock()
    with pytest.raises(ZeroDivisionError), clock.phase("server"):
        raise ZeroDivisionError
    assert clock.phases["server"] > 0
    before = sum(clock.phases.values())
    clock.move("server", "measure", 0.5)
    assert clock.phases["measure"] == 0.5
    assert sum(clock.phases.values()) == pytest.approx(before)
