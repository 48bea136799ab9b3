"""Effects over sessions: levels are told apart, intervals hold what they say, and one more session is foretold."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from tunnelmark.analyse.session_effects import Combined, SessionEffect, combine, paule_mandel

SEED = 20261123  # fixed before the first run
STUDIES = 2000  # 95 % within 1.0 points, at two standard errors


def of_many(*values: object) -> object:
    """Values of a simulation of many sessions or machines, which takes long and says of more what few say of few."""
    return pytest.param(*values, marks=pytest.mark.proof("intervals over many sessions and machines hold"))


def effects(values: list[tuple[str, float, float]], blocks: int = 8) -> list[SessionEffect]:
    return [
        SessionEffect(f"{number:02d}", machine, estimate, error, blocks)
        for number, (machine, estimate, error) in enumerate(values, start=1)
    ]


def drawn(random: np.random.Generator, units: int, between: float, blocks: int, sd: float = 1.0) -> list[SessionEffect]:
    """One session on each of so many units, whose true effects differ by `between`."""
    found = []
    for unit in range(units):
        values = random.normal(random.normal(0, between), sd, blocks)
        found.append(
            SessionEffect("01", str(unit), float(values.mean()), float(values.std(ddof=1)) / sqrt(blocks), blocks)
        )
    return found


def of_a_cluster(random: np.random.Generator, blocks: list[int], between: float) -> tuple[list[SessionEffect], float]:
    """One session on each machine, of so many blocks of deviation 1; and the mean of these machines' true effects."""
    found, truths = [], random.normal(0, between, len(blocks))
    for unit, (count, truth) in enumerate(zip(blocks, truths, strict=True)):
        values = random.normal(truth, 1.0, count)
        error = float(values.std(ddof=1)) / sqrt(count) if count > 1 else None
        found.append(SessionEffect("01", str(unit), float(values.mean()), error, count))
    return found, float(truths.mean())


def one(found: list[SessionEffect]) -> Combined:
    combined = combine(found)
    assert combined is not None
    return combined


def test_nothing_is_combined_from_nothing():
    assert combine([]) is None


def test_one_session_has_a_mean_and_no_interval():
    found = one(effects([("a", 0.5, 0.1)]))
    assert (found.unit, found.units, found.mean) == ("session", 1, 0.5)
    assert (found.low, found.next_low, found.sd_sessions, found.sd_machines) == (None, None, None, None)


def test_two_units_are_too_few_for_an_interval():
    found = one(effects([("a", 0.5, 0.01), ("a", 0.7, 0.01)]))
    assert found.mean == pytest.approx(0.6)
    assert (found.low, found.next_high) == (None, None)
    assert found.sd_sessions == pytest.approx(sqrt(0.02 - 0.0001), rel=1e-6)  # variance of both, less their own


def test_a_machine_of_one_block_has_the_deviation_that_blocks_have_elsewhere():
    # Machine a: blocks of deviation 0.3 in 9; so b's one block has an error of 0.3, and a's mean one of 0.1.
    found = one([SessionEffect("01", "a", 0.5, 0.1, 9), SessionEffect("02", "b", 0.9, None, 1)])
    assert (found.units, found.here) == (2, pytest.approx(0.7))
    assert found.sd_blocks == pytest.approx(0.3)
    assert found.variance_machines == pytest.approx(0.08 - (0.01 + 0.09) / 2)
    assert [each.name for each in found.by_unit] == ["a", "b"]
    assert found.by_unit[1].low == pytest.approx(0.9 - 2.306 * 0.3, abs=0.001)  # t of 8 degrees is 2.306
    # The error of both means is a quarter of 0.01 + 0.09, all of it from the same 9 blocks.
    assert found.here_high == pytest.approx(0.7 + 2.306 * sqrt(0.1) / 2, abs=0.001)


def test_machines_of_one_block_each_say_together_what_machines_and_blocks_do():
    found = one(
        [
            SessionEffect(f"{n:02d}", name, x, None, 1)
            for n, (name, x) in enumerate(zip("abc", (0.4, 0.5, 0.6), strict=True))
        ]
    )
    assert (found.unit, found.units, found.sd_blocks) == ("machine", 3, None)
    assert found.sd_machines == pytest.approx(0.1)
    assert found.low == pytest.approx(0.5 - 4.30265 * 0.1 / sqrt(3), rel=1e-5)
    assert found.next_high == pytest.approx(0.5 + 4.30265 * 0.1 * sqrt(1 + 1 / 3), rel=1e-5)
    assert (found.here, found.here_low, found.by_unit[0].high) == (pytest.approx(0.5), None, None)


def test_a_run_in_two_sessions_of_one_block_each_has_no_error_of_its_own():
    found = one([SessionEffect("01", "a", 0.5, None, 1), SessionEffect("02", "a", 0.7, None, 1)])
    assert (found.unit, found.low, found.here_low, found.sd_blocks) == ("session", None, None, None)
    assert found.sd_sessions == pytest.approx(sqrt(0.02))


def test_where_a_session_is_short_machines_count_alike():
    """A weight by two to four blocks would be chance; the mean is then that of these machines."""
    long = one([*effects([("a", 0.9, 0.3), ("b", 0.6, 0.1), ("c", 0.4, 0.1)], blocks=12)])
    short = one([SessionEffect("01", "a", 0.9, None, 1), *effects([("b", 0.6, 0.1), ("c", 0.4, 0.1)], blocks=12)])
    assert long.mean < 0.55 < long.here
    assert short.mean == short.here == pytest.approx(1.9 / 3)


def test_the_mean_of_two_machines_has_an_interval_that_holds_for_them_alone():
    # Errors 0.02 and 0.04 of 8 blocks: a quarter of 0.0020, with 0.0020^2 / (0.0004^2/7 + 0.0016^2/7) = 10.3 degrees (t 2.219).
    found = one(effects([("a", 0.5, 0.02), ("b", 0.7, 0.04)]))
    assert (found.low, found.next_low) == (None, None)
    assert found.here_low == pytest.approx(0.6 - 2.219 * sqrt(0.002) / 2, abs=1e-4)
    assert found.by_unit[0].high == pytest.approx(0.5 + 2.3646 * 0.02, abs=1e-4)


def test_equal_runs_give_student_s_interval_of_their_mean():
    # 0.4, 0.5, 0.6: mean 0.5, deviation 0.1; t of 2 degrees is 4.303.
    found = one(effects([("a", 0.4, 0.001), ("a", 0.5, 0.001), ("a", 0.6, 0.001)]))
    assert found.mean == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - 4.30265 * 0.1 / sqrt(3), rel=1e-5)
    assert found.next_high == pytest.approx(0.5 + 4.30265 * 0.1 * sqrt(1 + 1 / 3), rel=1e-5)


def test_the_variance_between_units_is_that_of_paule_and_mandel():
    # Their condition itself, on unequal errors: the weighted squares are k - 1.
    estimates, errors = [0.1, 0.5, 0.9, 0.3], [0.01, 0.02, 0.005, 0.04]
    between = paule_mandel(estimates, errors)
    weights = [1 / (error + between) for error in errors]
    mean = sum(w * e for w, e in zip(weights, estimates, strict=True)) / sum(weights)
    assert between > 0
    assert sum(w * (e - mean) ** 2 for w, e in zip(weights, estimates, strict=True)) == pytest.approx(3)
    assert paule_mandel([0.1, 0.11, 0.09], [0.04, 0.04, 0.04]) == 0.0


def test_a_long_run_counts_more_only_as_far_as_units_are_alike():
    alike = one(effects([("a", 0.0, 0.01), ("a", 0.1, 0.2), ("a", -0.1, 0.2)]))
    assert alike.mean == pytest.approx(0.0, abs=0.001)
    apart = one(effects([("a", 0.0, 0.01), ("a", 2.0, 0.2), ("a", 1.0, 0.2)]))
    assert apart.mean == pytest.approx(1.0, abs=0.05)


def test_machines_are_the_unit_where_there_are_several():
    found = one(
        effects([("a", 0.50, 0.02), ("a", 0.54, 0.02), ("b", 0.20, 0.02), ("b", 0.24, 0.02), ("c", 0.90, 0.02)])
    )
    assert (found.unit, found.units, found.sessions) == ("machine", 3, 5)
    assert found.mean == pytest.approx((0.52 + 0.22 + 0.90) / 3, abs=0.01)
    assert found.sd_machines == pytest.approx(0.34, abs=0.02)
    assert found.sd_sessions == pytest.approx(sqrt(0.0008 - 0.0004), rel=0.01)


def test_machines_that_were_measured_once_say_nothing_of_sessions():
    assert one(effects([("a", 0.5, 0.02), ("b", 0.2, 0.02), ("c", 0.9, 0.02)])).sd_sessions is None


def test_the_deviation_of_a_block_is_pooled():
    assert one(effects([("a", 0.5, 0.1), ("a", 0.5, 0.1)], blocks=9)).sd_blocks == pytest.approx(0.3)


def test_exact_zeros_are_no_trouble():
    found = one(effects([("a", 0.0, 0.0)] * 4))
    assert (found.mean, found.sd_sessions, found.sd_blocks) == (0.0, 0.0, 0.0)
    assert found.low == pytest.approx(0.0, abs=1e-9)
    assert found.next_high == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("units", [3, of_many(5), of_many(10)])
@pytest.mark.parametrize("between", [0.0, 1.0, 5.0])
def test_one_more_unit_is_inside_of_what_was_foretold(units: int, between: float):
    """`between` is in standard errors of one run; the truth is what a run on one more unit prints."""
    random, blocks, inside = np.random.default_rng([SEED, units, int(between)]), 8, 0
    for _ in range(STUDIES):
        found = one(drawn(random, units, between / sqrt(blocks), blocks))
        (further,) = drawn(random, 1, between / sqrt(blocks), blocks)
        assert found.next_low is not None and found.next_high is not None
        inside += found.next_low <= further.estimate <= found.next_high
    assert 93 <= 100 * inside / STUDIES <= 97


@pytest.mark.parametrize(("units", "between"), [(3, 5.0), (5, 2.0), of_many(10, 5.0)])
def test_the_mean_over_units_is_inside_of_its_interval(units: int, between: float):
    random, blocks, inside = np.random.default_rng([SEED, units]), 8, 0
    for _ in range(STUDIES):
        found = one(drawn(random, units, between / sqrt(blocks), blocks))
        assert found.low is not None and found.high is not None
        inside += found.low <= 0.0 <= found.high
    assert 93 <= 100 * inside / STUDIES <= 97.5


@pytest.mark.parametrize("machines", [4, of_many(8)])
def test_one_run_on_one_more_machine_is_foretold_from_machines_with_several_sessions(machines: int):
    """Machines, sessions of a machine and runs vary alike; the mean of three sessions varies less than the one run will."""
    random, blocks, inside = np.random.default_rng([SEED, machines]), 8, 0
    own = 1 / sqrt(blocks)

    def run(machine: str, truth: float) -> SessionEffect:
        values = random.normal(random.normal(truth, own), 1.0, blocks)
        return SessionEffect("", machine, float(values.mean()), float(values.std(ddof=1)) / sqrt(blocks), blocks)

    for _ in range(STUDIES):
        truths = random.normal(0.0, own, machines)
        found = one([run(str(unit), truth) for unit, truth in enumerate(truths) for _ in range(3)])
        further = run("new", random.normal(0.0, own))
        assert found.next_low is not None and found.next_high is not None
        inside += found.next_low <= further.estimate <= found.next_high
    assert 93 <= 100 * inside / STUDIES <= 97


CLUSTERS = [([1] * 8, 0.5), ([2, 2, 1, 1, 1, 1], 0.5), ([2] * 4, 0.0), ([3, 2, 2, 1], 1.0), ([8, 4, 2, 1, 1], 1.0)]


@pytest.mark.parametrize(("blocks", "between"), CLUSTERS)
def test_intervals_over_machines_of_few_blocks_hold(blocks: list[int], between: float):
    """`between` in deviations of a block."""
    random, studies = np.random.default_rng([SEED, *blocks]), STUDIES // 2
    inside = further = here = 0
    known = any(count > 1 for count in blocks)
    for _ in range(studies):
        drawn_, truth = of_a_cluster(random, blocks, between)
        found = one(drawn_)
        count = blocks[random.integers(len(blocks))]
        next_ = random.normal(random.normal(0, between), 1 / sqrt(count))
        assert found.low is not None and found.high is not None
        assert found.next_low is not None and found.next_high is not None
        inside += found.low <= 0.0 <= found.high
        further += found.next_low <= next_ <= found.next_high
        here += (
            found.here_low is not None and found.here_high is not None and found.here_low <= truth <= found.here_high
        )
    assert 93 <= 100 * inside / studies <= 97
    assert 93 <= 100 * further / studies <= 97
    assert 92.5 <= 100 * here / studies <= 97.5 if known else here == 0


@pytest.mark.parametrize(("machines", "blocks", "between"), [(5, 4, 0.5), (8, 6, 1.0)])
def test_the_variance_between_machines_and_blocks_is_found(machines: int, blocks: int, between: float):
    """Within 10 % in so few studies; `bench/machine_level.py` has the rest."""
    random = np.random.default_rng([SEED, machines])
    found = [one(of_a_cluster(random, [blocks] * machines, between)[0]) for _ in range(STUDIES)]
    assert np.mean([each.variance_machines for each in found]) == pytest.approx(between**2, rel=0.1)
    assert np.mean([each.sd_blocks**2 for each in found if each.sd_blocks is not None]) == pytest.approx(1, rel=0.03)
