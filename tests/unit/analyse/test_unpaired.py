"""Rank tests and scatter over blocks, against figures that can be counted by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from tunnelmark.analyse.across import conditions
from tunnelmark.analyse.unpaired import mann_whitney, rank_tests, scatter
from unit.builders import TCP, UDP
from unit.conditions import FIRST, SECOND, STUDY, analysed

GOODPUT = TCP.metrics[0]
LOSS = UDP.metrics[1]


def test_samples_without_overlap_have_the_least_p_that_there_is() -> None:
    assert mann_whitney([1, 2, 3], [4, 5, 6]) == (0.0, pytest.approx(0.1))  # 2 of 20 arrangements
    assert mann_whitney([4, 5, 6], [1, 2, 3]) == (9.0, pytest.approx(0.1))


def test_with_ties_all_arrangements_are_gone_through() -> None:
    x, y = [0.0, 0.0, 0.0, 1.0], [0.0, 2.0, 2.0, 3.0, 3.0]
    u, p = mann_whitney(x, y)
    pool = [*x, *y]

    def wins(chosen: tuple[int, ...]) -> float:
        mine, theirs = [pool[i] for i in chosen], [pool[i] for i in range(9) if i not in chosen]
        return sum((a > b) + 0.5 * (a == b) for a in mine for b in theirs)

    assert u == wins((0, 1, 2, 3)) == 2.5
    all_of_them = [wins(chosen) for chosen in combinations(range(9), 4)]
    below, above = (
        sum(each) / len(all_of_them) for each in ([w <= u for w in all_of_them], [w >= u for w in all_of_them])
    )
    assert p == pytest.approx(min(1.0, 2 * min(below, above)))


def test_values_that_are_all_alike_tell_nothing_apart() -> None:
    assert mann_whitney([0, 0, 0], [0, 0]) == (3.0, 1.0)


def test_every_two_arms_are_tested_in_each_condition_and_corrected_together() -> None:
    analysis = analysed(replace(STUDY, block_noise=0.0), {("*", SECOND, None): 0.1})
    tests = rank_tests(analysis, conditions(analysis, "tcp"), GOODPUT)
    assert len(tests) == 2 * 10
    tinc = next(one for one in tests if {one.arm, one.against} == {"direct", "tinc"} and one.setting.profile == FIRST)
    assert (tinc.counts, tinc.delta, tinc.u) == ((8, 8), 1.0, 64.0)
    assert tinc.p == pytest.approx(tinc.least)
    assert tinc.q == pytest.approx(20 * tinc.p)
    assert tinc.differs
    twins = next(one for one in tests if {one.arm, one.against} == {"direct", "direct-again"})
    assert not twins.differs
    assert all(one.q >= one.p for one in tests)


def test_failed_attempts_are_counted_beside_the_ranks() -> None:
    fails = frozenset({("tinc", FIRST, 1), ("tinc", FIRST, 2)} | {("nebula", FIRST, block) for block in range(1, 9)})
    analysis = analysed(STUDY, {}, fails)
    tests = rank_tests(analysis, conditions(analysis, "tcp")[:1], GOODPUT)
    tinc = next(one for one in tests if one.against == "tinc" and one.arm == "direct")
    assert (tinc.counts, tinc.failed) == ((8, 6), (0, 2))
    assert not any("nebula" in (one.arm, one.against) for one in tests)
    row = next(one for one in scatter(analysis, conditions(analysis, "tcp")[:1], GOODPUT) if one.cell.arm == "nebula")
    assert (row.count, row.failed, row.mean, row.deviation, row.variation) == (0, 8, None, None, None)


def test_scatter_is_the_deviation_of_a_sample_and_its_share_of_the_mean() -> None:
    analysis = analysed(STUDY, {("tinc", FIRST, 3): 0.0})
    found = scatter(analysis, conditions(analysis, "tcp"), GOODPUT)
    assert found
    for one in found:
        values = [value.value for value in one.cell.values]
        mean = sum(values) / 8
        assert one.mean == pytest.approx(mean)
        assert one.deviation == pytest.approx((sum((value - mean) ** 2 for value in values) / 7) ** 0.5)
        assert one.deviation is not None
        assert one.variation == pytest.approx(one.deviation / mean)
    assert [one.zeros for one in found if one.cell.arm == "tinc"] == [1, 0]


def test_a_share_of_a_mean_is_not_given_where_zero_is_often_met() -> None:
    analysis = analysed(replace(STUDY, workloads=(UDP,), loss={"tinc": 3.0}), {})
    found = scatter(analysis, conditions(analysis, "udp"), LOSS)
    assert found and all(one.variation is None and one.deviation is not None for one in found)
