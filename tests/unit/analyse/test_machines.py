"""What is between machines is found again in runs that are made of it, with as many degrees of freedom as it deserves."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from tunnelmark.analyse.machines import BETWEEN, fit


def made(
    shared: float, own: float, noise: float, machines: int, seed: int
) -> tuple[list[list[float]], list[list[float]]]:
    """Log multiples of ten arms: what all share on a machine (the anchor's deviation), each arm's own, and a run's noise."""
    random = np.random.default_rng(seed)
    values = random.normal(-1, 0.5, (10, 1)) + random.normal(0, shared, (1, machines)) if shared else 0
    values = values + random.normal(0, own, (10, machines)) + random.normal(0, noise, (10, machines))
    return values.tolist(), [[noise**2] * machines] * 10


@pytest.mark.parametrize(("shared", "own"), [(0.1, 0.05), (0.0, 0.1), (0.1, 0.0)])
def test_it_is_found_again_without_the_noise(shared: float, own: float) -> None:
    found = [fit(*made(shared, own, 0.05, 4, seed)).deviation ** 2 for seed in range(400)]
    assert sqrt(float(np.mean(found)) / 2) == pytest.approx(sqrt(shared**2 + own**2), rel=0.1)


def test_what_all_arms_share_counts_once_a_machine_and_what_each_has_of_its_own_counts_for_each() -> None:
    freedom = [[fit(*made(*kind, 0.0, 4, seed)).freedom for seed in range(200)] for kind in ((0.1, 0.001), (0.0, 0.1))]
    assert np.median(freedom[0]) == pytest.approx(3, abs=0.2), "four machines, less one"
    assert np.median(freedom[1]) > 15


def test_noise_alone_is_no_machine() -> None:
    values, noise = made(0.0, 0.0, 0.1, 3, 1)
    assert fit(values, [[1.0] * 3] * 10).deviation == 0
    assert fit(values, noise).deviation < 0.15


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [[1.0], [2.0]]])
def test_one_arm_or_one_machine_tells_nothing(values: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="two arms"):
        fit(values, values)


def test_the_constant_says_what_it_was_made_of() -> None:
    assert 0 < BETWEEN.deviation < 1
    assert BETWEEN.freedom >= 1
    assert BETWEEN.source
