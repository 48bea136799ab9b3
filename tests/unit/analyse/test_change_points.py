"""A change of level is found where there is one, rarely where there is none, and never in so few runs that no test could show it."""

from __future__ import annotations

from math import inf
from statistics import median

import numpy as np
import pytest

from tunnelmark.analyse.change_points import LEAST, _look, change_points


def noise(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def stepped(n: int, at: int, size: float, seed: int = 1) -> list[float]:
    return [float(value) + (size if place >= at else 0) for place, value in enumerate(noise(n, seed))]


def places(*series: list[float]) -> list[list[int]]:
    return [[change.place for change in found] for found in change_points(series)]


def test_a_step_is_found_where_it_is_with_the_levels_around_it() -> None:
    values = stepped(20, 12, 5.0)
    ((change,),) = change_points([values])
    assert change.place == 12 and change.p < 0.01
    assert (change.before, change.after) == (median(values[:12]), median(values[12:]))


def test_several_steps_are_found_in_order() -> None:
    values = [value + (6.0 if place >= 24 else 0) for place, value in enumerate(stepped(36, 12, 6.0))]
    assert places(values) == [[12, 24]]


def test_what_is_alike_has_no_change() -> None:
    assert places([1.0] * 20, []) == [[], []]


def test_one_run_far_off_is_no_change_of_level() -> None:
    values = list(map(float, noise(20, 3)))
    values[10] = 1e9
    assert places(values) == [[]]


def test_a_run_far_off_at_the_end_does_not_move_a_change() -> None:
    assert places([*stepped(20, 10, 5.0)[:-1], 1e9]) == [[10]]


def test_ratios_of_zero_are_values_like_others() -> None:
    assert places([0.1, -0.2, 0.3, 0.0, -0.1, 0.2, *[-inf] * 6]) == [[6]]


def test_fewer_runs_than_a_test_needs_show_nothing() -> None:
    """And with one more the clearest change is shown."""
    clear = [0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3]
    assert len(clear) == LEAST
    assert places(clear) == [[4]]
    assert places(clear[1:]) == [[]]
    assert _look(clear[1:], [0])[1] > 0.05, "no order of seven values is rarer than 2 in 35"
    assert _look(clear, [0])[1] == pytest.approx(2 / 70, rel=0.2)


def test_false_changes_are_as_rare_as_they_are_said_to_be() -> None:
    """A hundred histories without a change, one at a time: 5 are expected; 15 or more would come by chance once in 10,000 times."""
    found = sum(bool(places(list(noise(12, seed)))[0]) for seed in range(100))
    assert 1 <= found < 15


def test_many_series_together_share_the_chance_of_error() -> None:
    """Thirty families of ten histories without a change: 1.5 with any are expected, and 12 if each were tested alone."""
    found = sum(any(places(*(list(noise(10, 1000 * seed + k)) for k in range(10)))) for seed in range(30))
    assert found < 7


def test_the_same_history_gives_the_same_answer() -> None:
    values = stepped(16, 8, 1.5)
    assert change_points([values], seed=5) == change_points([values], seed=5)
