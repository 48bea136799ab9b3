"""The independent simulation of processes in time: their laws, by formulas that are written down elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from tunnelmark.analyse.link import processes, statistics
from tunnelmark.analyse.link.simulation import simulate
from tunnelmark.plan.impairments import Blackout, Bursts, Direction, Jitter
from tunnelmark.units import Duration, Share

TIMES: statistics.Floats = np.arange(2000, dtype=np.float64) * 1e-3


def test_the_wandering_process_is_standard_normal_and_1_in_e_correlated_after_its_time():
    values = processes.wandering(np.linspace(0, 3, 31), 40_000, np.random.default_rng(1))
    assert values.mean(axis=0) == pytest.approx(0, abs=0.025)
    assert values.std(axis=0) == pytest.approx(1, abs=0.02)
    assert np.mean(values[:, :-10] * values[:, 10:], axis=0) == pytest.approx(np.exp(-1), abs=0.03)
    assert np.mean(values[:, 0] * values[:, 30]) == pytest.approx(0, abs=0.025)


def test_jitter_in_time_has_its_distribution_at_any_packet_rate():
    jitter = Jitter(Duration(0.004), "pareto", correlation_time=Duration(0.04))
    way = Direction(delay=Duration(0.008), jitter=jitter)
    for interval in (0.01, 0.0001):
        times: statistics.Floats = np.arange(1000, dtype=np.float64) * interval
        delay = simulate(way, "stated", times, runs=2000, seed=1).delay
        assert delay[:, ::200].mean() == pytest.approx(0.008, rel=0.05)
        assert delay[:, ::200].std() == pytest.approx(0.004, rel=0.08)


def test_bursts_last_their_time_and_take_their_share():
    loss = Bursts(Duration(0.02), Duration(0.2), Share(1))
    lost = simulate(Direction(loss=loss), "stated", TIMES, runs=2000, seed=1).lost
    assert lost.mean() == pytest.approx(0.1, rel=0.05)
    assert lost[:, 0].mean() == pytest.approx(0.1, rel=0.2)  # it begins as it goes on
    ends = (lost[:, :-1] & ~lost[:, 1:]).sum()
    # Packets a millisecond apart see a burst of 20 ms as 1 / (1 - exp(-1/20)) packets, and two for one now and then.
    assert lost[:, :-1].sum() / ends == pytest.approx(1 / (1 - np.exp(-0.05)), rel=0.05)
    apart = Bursts(Duration(0.1), Duration(0.2), Share(0.5), Share(0.1))
    assert simulate(Direction(loss=apart), "stated", TIMES, runs=500, seed=1).lost.mean() == pytest.approx(
        0.3, rel=0.05
    )


def test_a_cut_without_a_start_begins_anywhere_in_its_period_in_each_run():
    way = Direction(blackouts=(Blackout(None, Duration(0.1), Duration(1)),))
    lost = simulate(way, "stated", TIMES, runs=2000, seed=1).lost
    assert (abs(lost.sum(axis=1) - 200) <= 2).all()
    assert lost.mean(axis=0) == pytest.approx(0.1, abs=0.035)


def test_which_directions_have_processes_in_time():
    jitter = Jitter(Duration(0.001))
    assert not processes.in_time(Direction(delay=Duration(0.01), jitter=jitter))
    assert processes.in_time(Direction(loss=Bursts(Duration(0.02), Duration(1))))
    assert processes.in_time(Direction(blackouts=(Blackout(None, Duration(0.1), Duration(1)),)))
    assert not processes.in_time(Direction(blackouts=(Blackout(Duration(1), Duration(0.1), Duration(1)),)))
