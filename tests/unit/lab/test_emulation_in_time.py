"""Processes in time become the emulator's configuration; a cut's phase belongs to the block."""

from __future__ import annotations

import pytest

from tunnelmark.lab.backends import describe
from tunnelmark.lab.emulator_config import configuration
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.impairments import Blackout, Bursts, Direction, Jitter
from tunnelmark.plan.load import load_profile
from tunnelmark.plan.model import Profile
from tunnelmark.units import Duration, Share

PORTS = {"a": "a.0", "b": "b.0"}
CUT = Direction(blackouts=(Blackout(None, Duration(0.06), Duration(15)),))


def made(forward: Direction, back: Direction = Direction(), seed: int = 7) -> list[dict]:  # noqa: B008
    return configuration(Profile("p", "T", "S", forward, back), PORTS, seed=seed, link=0)["directions"]


def test_jitter_and_bursts_in_time():
    way = Direction(
        delay=Duration(0.02),
        jitter=Jitter(Duration(0.002), "normal", correlation_time=Duration(0.1)),
        loss=Bursts(Duration(0.02), Duration(1), Share(0.5)),
    )
    stages = made(way)[1]["stages"]
    assert stages["jitter"] == {
        "jitter_us": 2000.0,
        "distribution": "normal",
        "correlation_time_us": 100_000.0,
        "keep_order": True,
    }
    assert stages["loss"] == {
        "kind": "bursts",
        "burst_us": 20_000.0,
        "every_us": 1_000_000.0,
        "probability": 0.5,
        "outside": 0.0,
    }
    assert "in bursts of 20 ms every 1 s" in describe(Profile("p", "T", "S", way))
    assert "2 ms normal in time, correlation time 100 ms" in describe(Profile("p", "T", "S", way))


def test_the_phase_of_a_cut_is_that_of_the_block_for_both_directions():
    back, forward = made(CUT, CUT)
    assert back["blackouts"] == forward["blackouts"] == made(CUT)[1]["blackouts"]
    assert {blackout["every_us"] for blackout in forward["blackouts"]} == {15_000_000}
    assert made(CUT, seed=8)[1]["blackouts"] != forward["blackouts"]


def test_phases_lie_anywhere_in_the_period():
    starts = [made(CUT, seed=seed)[1]["blackouts"][-1]["start_us"] for seed in range(2000)]
    assert sum(starts) / len(starts) == pytest.approx(7_500_000, rel=0.05)
    assert min(starts) < 100_000
    assert max(starts) > 14_900_000


def test_a_cut_that_reaches_into_the_next_period_has_begun_before_zero():
    long = Direction(blackouts=(Blackout(None, Duration(14), Duration(15)),))
    for seed in range(20):
        *begun, window = made(long, seed=seed)[1]["blackouts"]
        over = window["start_us"] + 14_000_000 - 15_000_000
        assert begun == ([{"start_us": 0, "length_us": over}] if over > 0 else [])


def test_gigabit_ethernet_counts_what_a_frame_takes_on_the_wire():
    gigabit = load_profile("gigabit", Files((PACKAGED,)))
    # 1448 bytes of payload in a frame of 1514, and 24 bytes more on the wire.
    assert gigabit.carried == round(1e9 * 1514 / 1538)
    assert float(gigabit.carried or 0) * 1448 / 1514 == pytest.approx(941.5e6, rel=1e-3)
    assert gigabit.only_shaped
    assert describe(gigabit).startswith(
        "cards that split and merge; tbf rate 1 Gbit/s, burst 31250 B, limit 512 KiB, overhead 24 B"
    )
    lan = load_profile("lan", Files((PACKAGED,)))
    stages = configuration(lan, PORTS, seed=1, link=0)["directions"][1]["stages"]
    assert stages["rate"]["overhead_bytes"] == 24
