"""Intervals and tests keep their promise with a handful of blocks, and nothing is left to chance in them."""

from __future__ import annotations

import numpy as np
import pytest

from tunnelmark.analyse import intervals
from tunnelmark.analyse.intervals import (
    MIN_BLOCKS,
    RESAMPLES,
    corrected,
    expanded_tail,
    interval,
    paired_t,
    percentiles,
    share,
    sign_interval,
    student,
)


def coverage(n: int, tail: float, studies: int = 40_000) -> float:
    """How often the interval of log ratios holds the true one, when ratios are lognormal."""
    random = np.random.default_rng(2015)
    hits = 0
    for effects in random.normal(0.0, 0.1, (studies, n)):
        low, high = percentiles(effects, tail)
        hits += low <= 0.0 <= high
    return hits / studies


def test_five_lognormal_blocks_are_covered_by_the_expanded_interval_and_not_by_the_plain_one():
    assert coverage(5, expanded_tail(5)) >= 0.92
    assert coverage(5, 0.025) < 0.86


def test_ten_blocks_are_covered_nearly_as_said():
    assert coverage(10, expanded_tail(10), studies=400) >= 0.92


def test_the_expanded_tail_is_hesterbergs():
    # Hesterberg 2015, section 4.4: Phi(-sqrt(n / (n - 1)) t) gives 0.000951 at n = 5 and nears 2.5 % from below.
    assert expanded_tail(5) == pytest.approx(0.00095, abs=1e-5)
    assert 0.0249 < expanded_tail(5_000) < 0.025


@pytest.mark.parametrize("n", [3, 4])
def test_under_five_blocks_students_interval_is_given_as_no_bootstrap_can_reach_far_enough(n):
    random = np.random.default_rng(1)
    found = [interval(list(effects)) for effects in random.normal(0, 1, (4_000, n))]
    assert {each.method for each in found if each} == {"student"}
    assert np.mean([each.low <= 0 <= each.high for each in found if each]) == pytest.approx(0.95, abs=0.012)


def test_fewer_blocks_than_three_say_nothing():
    assert interval([0.1] * (MIN_BLOCKS - 1)) is None
    assert paired_t([0.1] * (MIN_BLOCKS - 1)) is None


@pytest.mark.parametrize("n", [5, 8, 9, 20])
def test_the_same_blocks_give_the_same_interval(n):
    effects = list(np.random.default_rng(n).normal(0, 1, n))
    before = interval(effects)
    intervals._drawn.cache_clear()
    assert interval(effects) == before


def test_drawn_resamples_are_as_good_as_all_of_them():
    """Of eight blocks all resamples are known, and so how many of them are beyond the ends that drawn ones give."""
    effects = np.random.default_rng(0).normal(0, 1, 8)
    weights, chances = intervals._resamples(8)
    tail = expanded_tail(8)
    means, drawn = weights @ effects, np.sort(intervals._drawn(8) @ effects)
    low, high = drawn[int(tail * RESAMPLES) - 1], drawn[-int(tail * RESAMPLES)]
    allowed = 4 * (tail / RESAMPLES) ** 0.5  # four standard errors of a share
    assert chances[means < low].sum() == pytest.approx(tail, abs=allowed)
    assert chances[means > high].sum() == pytest.approx(tail, abs=allowed)


def test_blocks_that_are_all_alike_have_an_interval_without_width():
    found = interval([0.5] * 5)
    assert found is not None
    assert found.low == pytest.approx(0.5)
    assert found.high == pytest.approx(0.5)


def test_paired_t_agrees_with_scipy():
    from scipy.stats import ttest_1samp

    effects = [0.1, 0.4, -0.2, 0.3, 0.2]
    assert paired_t(effects) == pytest.approx(ttest_1samp(effects, 0.0).pvalue)


@pytest.mark.parametrize(("effects", "p"), [([0.0] * 5, 1.0), ([5.0] * 5, 0.0), ([0.1 + 0.2] * 3, 0.0)])
def test_effects_without_spread_are_certain(effects, p):
    assert paired_t(effects) == p


def test_corrected_is_holm():
    # Holm 1979: the smallest of m by m, the next by m - 1, and never less than the one before.
    assert corrected([0.01, 0.02, 0.03, 0.5]) == pytest.approx((0.04, 0.06, 0.06, 0.5))
    assert corrected([0.5, 0.01, 0.9]) == pytest.approx((1.0, 0.03, 1.0))
    assert corrected([]) == ()


def test_holm_lets_any_false_alarm_pass_in_one_study_of_twenty_at_most():
    random = np.random.default_rng(1979)
    false = sum(min(corrected(p_values)) < 0.05 for p_values in random.uniform(size=(4_000, 30)))
    assert false / 4_000 <= 0.06


@pytest.mark.parametrize(
    ("n", "level", "held"), [(6, 0.05, 0.969), (8, 0.05, 0.992), (8, 0.10, 0.930), (5, 0.10, 0.938)]
)
def test_the_sign_interval_holds_the_median_exactly_as_often_as_thompson_says(n, level, held):
    random = np.random.default_rng(1936)
    found = [sign_interval(list(effects), level) for effects in random.standard_cauchy((6_000, n))]
    assert np.mean([ends[0] <= 0 <= ends[1] for ends in found if ends]) == pytest.approx(held, abs=0.01)


def test_the_sign_interval_bears_what_is_infinite_and_says_nothing_of_five_blocks():
    assert sign_interval([float("-inf"), -0.1, -0.1, 0.0, 0.1, 0.2]) == (float("-inf"), 0.2)
    assert sign_interval([0.1] * 5) is None


def test_student_is_scipys_interval():
    from scipy.stats import ttest_1samp

    effects = [0.1, 0.4, -0.2, 0.3, 0.2]
    expected = ttest_1samp(effects, 0.0).confidence_interval(0.9)
    assert student(effects, 0.1) == pytest.approx((expected.low, expected.high))
    assert student([0.1, 0.2]) is None


def test_wilsons_interval_of_a_success_rate():
    all_five = share(5, 5)
    assert all_five.low == pytest.approx(0.5655, abs=1e-3)
    assert all_five.high == 1.0
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)
