"""The plain model of a link delivers what is stated, and follows netem where that is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tunnelmark.analyse.link.expected import floor_of
from tunnelmark.analyse.link.simulation import simulate
from tunnelmark.analyse.link.statistics import Floats
from tunnelmark.plan.impairments import (
    Blackout,
    Chance,
    Direction,
    FourState,
    GilbertElliott,
    Jitter,
    Pattern,
    Reordering,
    Schedule,
    ScheduleStep,
)
from tunnelmark.units import Duration, Rate, Share

TIMES: Floats = 0.001 * np.arange(4000, dtype=np.float64) + 0.0001


def fates(way: Direction, model="stated", **more):
    return simulate(way, model, TIMES, runs=100, seed=3, **more)


def pairs(values: np.ndarray) -> float:
    return float(np.corrcoef(values[:, :-1].ravel(), values[:, 1:].ravel())[0, 1])


@pytest.mark.parametrize("correlation", [0.0, 0.25, 0.8])
def test_stated_loss_has_its_rate_and_its_correlation(correlation):
    lost = fates(Direction(loss=Chance(Share(0.05), Share(correlation)))).lost
    assert lost.mean() == pytest.approx(0.05, abs=0.003)
    assert pairs(lost) == pytest.approx(correlation, abs=0.03)


@pytest.mark.parametrize(
    ("loss", "correlation", "real"), [(0.01, 0.25, 0.0), (0.05, 0.25, 0.002), (0.1, 0.25, 0.0175), (0.3, 0.25, 0.233)]
)
def test_netems_correlation_starves_its_loss(loss, correlation, real):
    lost = fates(Direction(loss=Chance(Share(loss), Share(correlation))), "netem").lost
    assert lost.mean() == pytest.approx(real, abs=0.002)


@pytest.mark.parametrize("distribution", ["uniform", "normal", "pareto", "paretonormal"])
def test_stated_jitter_has_its_mean_deviation_and_correlation(distribution):
    jitter = Jitter(Duration(0.002), distribution, Share(0.4), keep_order=False)
    delay = 1e3 * fates(Direction(delay=Duration(0.02), jitter=jitter)).delay
    assert delay.mean() == pytest.approx(20, abs=0.02)
    assert delay.std() == pytest.approx(2 / np.sqrt(3) if distribution == "uniform" else 2, rel=0.02)
    assert pairs(delay) == pytest.approx(0.4, abs=0.01)


def test_netems_pareto_is_narrower_and_its_correlation_is_none():
    jitter = Jitter(Duration(0.002), "pareto", Share(0.5), keep_order=False)
    delay = 1e3 * fates(Direction(delay=Duration(0.02), jitter=jitter), "netem").delay
    assert delay.std() == pytest.approx(1.64, abs=0.02)
    assert pairs(delay) == pytest.approx(0, abs=0.01)


def test_jitter_that_keeps_the_order_never_lets_a_packet_overtake():
    jitter = Jitter(Duration(0.005), "normal")
    leaves = TIMES + fates(Direction(delay=Duration(0.02), jitter=jitter)).delay
    assert (np.diff(leaves, axis=1) >= -1e-12).all()


def test_gilbert_elliott_and_four_states():
    lost = fates(Direction(loss=GilbertElliott(Share(0.01), Share(0.25)))).lost
    assert lost.mean() == pytest.approx(0.01 / 0.26, rel=0.1)
    ends = (lost[:, :-1] & ~lost[:, 1:]).sum()
    assert lost[:, :-1].sum() / ends == pytest.approx(4, rel=0.1)
    lost = fates(Direction(loss=FourState(Share(0), Share(1), p14=Share(0.02)))).lost
    assert lost.mean() == pytest.approx(0.02 / 1.02, rel=0.1)
    assert not (lost[:, :-1] & lost[:, 1:]).any()


def test_a_pattern():
    lost = fates(Direction(loss=Pattern("0001"))).lost
    assert lost[0, :8].tolist() == [False, False, False, True] * 2
    assert not fates(Direction(loss=Pattern("0001", repeat=False))).lost[:, 4:].any()


def test_reordering_skips_the_delay_and_leaves_a_gap():
    way = Direction(delay=Duration(0.01), reordering=Reordering(Share(1), gap=5))
    skipped = fates(way).delay[0] == 0
    assert skipped[:10].tolist() == [False, False, False, False, True] * 2


@pytest.mark.parametrize("model", ["stated", "netem"])
def test_nothing_shortens_the_propagation(model):
    jitter = Jitter(Duration(0.02), keep_order=False)
    near = Direction(delay=Duration(0.01), jitter=jitter, reordering=Reordering(Share(0.1)))
    far = replace(near, propagation=Duration(0.001))
    before, after = fates(near, model).delay, fates(far, model).delay
    assert (before == 0).any()
    assert np.allclose(after, before + 0.001)
    assert floor_of(replace(far, jitter=None)) == pytest.approx(0.006)  # half of the delay, and the propagation


def test_blackouts_and_schedules_cut():
    way = Direction(blackouts=(Blackout(Duration(0.5), Duration(0.1), Duration(1)),))
    lost = fates(way).lost[0]
    assert lost[500:600].all()
    assert lost[1500:1600].all()
    assert lost.sum() == 400
    steps = (
        ScheduleStep(Duration(0.5), Direction(), down=True),
        ScheduleStep(Duration(0.6), Direction(delay=Duration(0.05)), down=False),
    )
    found = fates(Direction(delay=Duration(0.01), schedule=Schedule(steps, Duration(2))))
    assert found.lost[0].sum() == 200
    assert found.delay[0, [0, 700, 2100, 2700]] == pytest.approx([0.01, 0.05, 0.01, 0.05])


def test_netem_passes_one_copy_where_it_loses_and_duplicates():
    found = fates(Direction(loss=Chance(Share(1)), duplication=Chance(Share(1))), "netem")
    assert not found.lost.any()
    assert not found.duplicated.any()


def test_what_a_rate_adds():
    found = fates(Direction(delay=Duration(0.01), rate=Rate(10**6)), serial=0.002, base=0.001)
    assert found.delay == pytest.approx(np.full(found.delay.shape, 0.013))
