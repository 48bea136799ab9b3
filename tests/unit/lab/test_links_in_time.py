"""Shipped links are the same for every arm: the mean delay at any packet rate, the loss events in any number of pieces.

In virtual time, by the emulator's own decisions; `bench/links_in_time.py` prints the table with more packets.
"""

from __future__ import annotations

import pytest

from support.rehearsal import RARE, Sent, bursts, full, in_time, rehearse, stated

PROFILES = {profile.name: profile for profile in stated()}
ALL = pytest.mark.parametrize("name", PROFILES)

MOST = 400_000  # packets of a schedule
LONG = 4000.0  # seconds at the rare rate, so that chance moves the mean of the slowest jitter by 0.5 %


def test_all_shipped_jitter_but_the_published_ones_is_in_time():
    by_packet = {name for name, profile in PROFILES.items() if not in_time(profile.forward)}
    assert by_packet == {"thesis-low-in-order"}
    assert {name for name, profile in PROFILES.items() if bursts(profile.forward)} == {
        "leo-satellite",
        "train",
        "wifi-bad",
    }


@ALL
def test_the_mean_delay_is_the_stated_one_and_does_not_move_with_the_packet_rate(name: str):
    profile = PROFILES[name]
    for place, way in enumerate((profile.back, profile.forward)):
        if way.jitter is None or not in_time(way):
            continue
        seconds = MOST / full(way)
        (long, rare, dense) = rehearse(
            profile, [Sent(RARE, 1, LONG), Sent(RARE, 1, seconds), Sent(full(way), 1, seconds)], seed=1, place=place
        )
        assert long.delay == pytest.approx(1e3 * float(way.delay or 0.0), rel=0.02)
        # The same seconds of the same path: only what packets do to each other can move the mean.
        assert dense.delay == pytest.approx(rare.delay, rel=0.02)
        assert dense.held < 0.001


@ALL
def test_who_sends_in_two_pieces_meets_the_same_delay_and_bursts(name: str):
    profile = PROFILES[name]
    way = profile.forward
    seconds = MOST / full(way)
    whole, parted = rehearse(profile, [Sent(full(way), pieces, seconds) for pieces in (1, 2)], seed=2)
    if bursts(way):
        assert whole.events > 0
        assert parted.events == whole.events
        assert parted.loss == pytest.approx(whole.loss, rel=1e-9)
    if in_time(way):
        assert parted.delay == pytest.approx(whole.delay, rel=0.002)


def test_a_link_of_packets_fails_both():
    """What these tests are for: the same figures drawn for each packet."""
    profile = PROFILES["thesis-low-in-order"]
    rare, dense = rehearse(profile, [Sent(RARE, 1, 100.0), Sent(full(profile.forward), 1, 5.0)], seed=1)
    assert dense.delay > 1.3 * rare.delay
    assert dense.held > 0.5
