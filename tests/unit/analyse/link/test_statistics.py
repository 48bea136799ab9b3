"""Statistics of a link on rows whose truth is known, some of them from the RFCs themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from tunnelmark.analyse.link.statistics import (
    Floats,
    ProbeRow,
    bursts,
    displacements,
    distance,
    lag1,
    reordered,
    statistics,
)


def row(delay: list[float], interval: float = 1.0) -> ProbeRow:
    """A row with these delays in seconds; NaN is lost."""
    values = np.array(delay)
    nothing = np.zeros(len(values), dtype=bool)
    sent: Floats = interval * np.arange(len(values)).astype(float)
    return ProbeRow(sent, np.isnan(values), nothing, nothing, values)


def test_bursts_are_runs_of_losses():
    lost = np.array([1, 1, 0, 0, 1, 0, 1, 1, 1], dtype=bool)
    assert bursts(lost).tolist() == [2, 1, 3]
    assert bursts(np.zeros(4, dtype=bool)).tolist() == []


def test_rfc_4737_counts_those_that_come_after_a_larger_number():
    assert reordered(np.array([1, 2, 3, 7, 4, 5, 6, 8])) == 3 / 8
    assert reordered(np.arange(5)) == 0


def test_rfc_5236_example_of_displacements():
    # Arrivals 1 4 3 5 3(dup) 8 7 6 without the copy, 2 lost: the receive index leaves out 2.
    arrived = np.array([1, 4, 3, 5, 8, 7, 6])
    assert displacements(arrived).tolist() == [0, -1, 1, 0, -2, 0, 2]


def test_one_packet_that_skips_a_delay_of_four_intervals():
    """Packet 5 arrives with the one that was sent four before it: it is early, and four are reordered."""
    found = statistics(row([3.5, 3.5, 3.5, 3.5, 3.5, 0.0, 3.5, 3.5, 3.5, 3.5]))
    assert found["early"] == pytest.approx(10)
    assert found["displaced"] == pytest.approx(40)
    assert found["reordered"] == pytest.approx(30)


def test_delay_loss_and_burst():
    found = statistics(row([0.010, math.nan, math.nan, 0.020, 0.030, math.nan, 0.040, 0.050]))
    assert found["delay_mean"] == pytest.approx(30)
    assert found["delay_p50"] == pytest.approx(30)
    assert found["delay_sd"] == pytest.approx(math.sqrt(200))
    assert found["loss"] == pytest.approx(100 * 3 / 8)
    assert found["burst"] == pytest.approx(1.5)


def test_correlation_of_an_autoregressive_row():
    random = np.random.default_rng(1)
    values = np.zeros(200_000)
    for place in range(1, len(values)):
        values[place] = 0.4 * values[place - 1] + random.standard_normal()
    assert lag1(values) == pytest.approx(0.4, abs=0.01)
    values[::7] = np.nan  # lost ones leave out their pairs and nothing else
    assert lag1(values) == pytest.approx(0.4, abs=0.02)
    assert math.isnan(lag1(np.ones(10)))


def test_nothing_arrives():
    found = statistics(row([math.nan] * 4))
    assert found["loss"] == 100
    assert found["burst"] == 4
    assert math.isnan(found["delay_mean"])


def test_distance_of_distributions():
    one = np.arange(100.0)
    assert distance(one, one) == 0
    assert distance(one, one + 50) == pytest.approx(0.5)
    assert distance(one, one + 200) == 1
    assert math.isnan(distance(one, np.array([])))


def test_distance_is_scipy_s_also_with_equal_values_and_samples_of_other_sizes():
    random = np.random.default_rng(1)
    for _ in range(200):
        one, other = (
            random.integers(0, random.integers(2, 30), random.integers(1, 40)).astype(float) for _ in range(2)
        )
        assert distance(one, other) == pytest.approx(ks_2samp(one, other).statistic, abs=1e-12)
