"""The model of TCP's congestion window agrees with what the RFCs and Mathis et al. say of it."""

from __future__ import annotations

import pytest

from tunnelmark.plan.tcp_window import Losses, grown


@pytest.mark.parametrize(
    ("trip", "share"), [(0.004, 0.0025), (0.06, 0.005), (0.076, 1e-4), (0.56, 1e-3), (0.008, 0.01)]
)
def test_the_window_that_losses_leave_is_that_of_rfc_9438(trip: float, share: float):
    """Its 5.1 has 1.054 (trip / p)^(3/4) for CUBIC's mean window, and Mathis et al. sqrt(1.5 / p) for Reno's."""
    losses = Losses(trip, share, 0.0)
    window, held, seconds = 1 / share, 0.0, 0.0
    for number in range(600):
        apart = losses.apart(window)
        after = grown(window, trip, apart)
        if number >= 200:
            held, seconds = held + apart * (0.7 * window + after) / 2, seconds + apart
        window = after
    assert held / seconds == pytest.approx(max(1.054 * (trip / share) ** 0.75, (1.5 / share) ** 0.5), rel=0.12)
