"""Verdicts on claims over drawn values: held, refuted, undecided with the blocks that would decide, not testable with a reason."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from tunnelmark.analyse.intervals import LEVEL, LEVEL_UNTIL_PRECISE, t_quantile
from tunnelmark.claims import judging
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import (
    OVER_BLOCKS,
    Apart,
    Cell,
    CellValues,
    Claim,
    ClaimOutcome,
    Judged,
    Quantity,
    Statement,
)
from tunnelmark.claims.statements import before

ONE, OTHER = Cell("tcp", "base", "X"), Cell("tcp", "base", "Y")


class Drawn:
    """Cells with given values, by block or as runs."""

    single = False
    units = OVER_BLOCKS

    def __init__(self, values: dict[Cell, list[float]], *, paired: bool = True, measured_here: bool = True) -> None:
        self.paired = paired
        self.measured_here = measured_here
        self._values = values

    def of(self, cell: Cell) -> CellValues | None:
        """The values by block."""
        given = self._values.get(cell)
        return None if given is None else CellValues(dict(enumerate(given, 1)))

    def obstacle(self, cells: object, scale: str, conservative: object = ()) -> str:
        """None."""
        return ""


def ratio(low: float | None, high: float | None) -> Claim:
    return Claim("c", "tab 1", "X over Y", (Statement(((ONE, 1), (OTHER, -1)), "ratio", low, high),))


def verdict(claim: Claim, x: list[float], y: list[float], *, paired: bool = True) -> Judged:
    return judge(claim, Drawn({ONE: x, OTHER: y}, paired=paired))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.4, 0.6, "held"),
        (0.7, 1.0, "did not hold"),
        (0.5, 1.0, "undecided"),
        (None, 0.4, "did not hold"),
        (0.3, None, "held"),
    ],
)
def test_an_interval_inside_of_the_range_shows_a_claim_and_one_outside_refutes_it(
    low: float | None, high: float | None, expected: ClaimOutcome
) -> None:
    found = verdict(ratio(low, high), [49, 50, 51, 50, 50], [100, 100, 100, 101, 99])
    assert found.outcome == expected
    (effect,) = found.effects
    assert effect.estimate == pytest.approx(0.5, rel=0.01)
    assert effect.low is not None
    assert effect.high is not None
    assert effect.low < 0.5 < effect.high


def test_a_claim_that_is_undecided_says_how_many_blocks_would_decide_it() -> None:
    found = verdict(ratio(0.45, 0.6), [40, 60, 50, 45, 55], [100] * 5)
    assert found.outcome == "undecided"
    assert found.effects[0].blocks is not None
    assert 5 < found.effects[0].blocks < 100


def test_what_this_laboratory_cannot_repeat_is_still_held_against_the_source_s_own_values() -> None:
    claim = replace(ratio(0.4, 0.6), untestable="its public nodes are missing")
    values = {ONE: [49.0, 50, 51, 50], OTHER: [100.0, 100, 101, 99]}
    here, there = (judge(claim, Drawn(values, measured_here=which)) for which in (True, False))
    assert (here.outcome, here.reason) == ("not testable", "its public nodes are missing")
    assert there.outcome == "held"


def test_equal_values_show_no_order() -> None:
    """As it was, a quality that fell with each level held of 100, 100, 100 and 64 %."""
    order = Claim("c", "", "", (before(ONE, OTHER, {}, Quantity("tcp", "TCP", "%", "share", "higher")),))
    same, better = [100.0, 100, 100], [101.0, 101.1, 101]
    assert verdict(order, same, same).outcome == "undecided"
    assert verdict(order, better, same).outcome == "held"
    assert verdict(ratio(1.0, None), same, same).outcome == "held", "at least as much is another claim"


def test_two_blocks_are_too_few_for_a_verdict() -> None:
    found = verdict(ratio(0.1, 0.9), [50, 50], [100, 100])
    assert found.outcome == "undecided"
    assert found.effects[0].blocks is None, "without an interval it is not known how many would do"


@pytest.mark.parametrize("blocks", [10, 50, 60, 200])
def test_more_blocks_are_needed_than_an_undecided_claim_has(blocks: int) -> None:
    """As it was, a run of 60 blocks heard that 58 would decide: beyond 50 the factor was that of a normal distribution."""
    half = t_quantile(blocks - 1, 0.05) / sqrt(blocks)
    assert (judging._blocks(0.999 * half, 1.0, 0.0, None, level=0.05) or 0) > blocks
    assert (judging._blocks(1.001 * half, 1.0, 0.0, None, level=0.05) or 0) <= blocks


def test_what_blocks_share_cancels_where_they_are_paired() -> None:
    luck = [1.0, 2.0, 0.5, 3.0, 0.7]
    x, y = (
        [50 * each for each in luck],
        [100 * each * wobble for each, wobble in zip(luck, (1, 1.01, 0.99, 1, 1), strict=True)],
    )
    assert verdict(ratio(0.45, 0.55), x, y).outcome == "held"
    assert verdict(ratio(0.45, 0.55), x, y, paired=False).outcome == "undecided"


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_hold_the_truth_as_often_as_they_say(paired: bool) -> None:
    """A true ratio of 0.5 lies in the interval of 95 % in 93 to 97 % of studies: 1,000 of them (standard error 0.7 %)."""
    random, covered = np.random.default_rng(3), 0
    for _ in range(1000):
        luck = np.exp(random.normal(0, 0.2 if paired else 0.0, 8))
        x, y = (mean * luck * np.exp(random.normal(0, 0.05, 8)) for mean in (50, 100))
        (effect,) = verdict(ratio(0.4, 0.6), list(x), list(y), paired=paired).effects
        assert effect.low is not None
        assert effect.high is not None
        covered += effect.low <= 0.5 <= effect.high
    assert 930 <= covered <= 970


def test_a_claim_of_many_statements_is_seldom_refuted_by_chance() -> None:
    """Ten arms in their true order, the last two alike: at most 5 % of studies may say that the order does not hold (60 of 1,000, 3 sigma)."""
    random, refuted = np.random.default_rng(5), 0
    cells = [Cell("tcp", "base", f"arm{number}") for number in range(10)]
    statements = tuple(
        Statement(((one, 1), (other, -1)), "ratio", 1.0, None)
        for place, one in enumerate(cells)
        for other in cells[place + 1 :]
    )
    for _ in range(300):
        values = {
            cell: list(100 * np.exp(random.normal(0, 0.05, 8))) for cell in cells
        }  # all are alike: the worst case
        refuted += judge(Claim("c", "", "", statements), Drawn(values)).outcome == "did not hold"
    assert refuted <= 0.05 * 300 + 3 * (0.05 * 0.95 * 300) ** 0.5


@pytest.mark.parametrize(
    ("x", "y", "differ", "alike"),
    [
        ([10.0, 10.1, 10.2, 10.3], [20.0, 20.1, 20.2, 20.3], "held", "did not hold"),
        ([10.0, 10.2, 10.1, 10.3], [10.1, 10.3, 10.0, 10.2], "did not hold", "held"),
        ([5.0, 9.0, 14.0, 20.0], [6.0, 8.0, 15.0, 21.0], "undecided", "undecided"),
        ([10.0, 10.1, 10.2], [20.0, 20.1, 20.2], "undecided", "undecided"),
    ],
    ids=["apart", "alike", "scattered", "too few"],
)
def test_that_runs_cannot_be_told_apart_needs_evidence_too(
    x: list[float], y: list[float], differ: ClaimOutcome, alike: ClaimOutcome
) -> None:
    for said, outcome in ((True, differ), (False, alike)):
        claim = Claim("c", "tab 1", "x and y", (Apart(ONE, OTHER, said),))
        assert verdict(claim, x, y, paired=False).outcome == outcome


RANKED = [1.0, 2.0, 3.0, 4.0, 5.0, 11.0], [6.0, 7.0, 8.0, 9.0, 10.0, 12.0]
"""Apart by the test at 4.1 %."""

SCATTERED = [94.2, 97.1, 102.9, 105.8], [94.2, 97.1, 102.9, 105.8]
"""Of the same mean: within 10 % by an interval of 95 %, and not by a wider one."""


@pytest.mark.parametrize(("level", "expected"), [(LEVEL, "held"), (LEVEL_UNTIL_PRECISE, "undecided")])
@pytest.mark.parametrize(("runs", "differ"), [(RANKED, True), (SCATTERED, False)], ids=["apart", "alike"])
def test_runs_are_told_apart_by_the_level_of_a_run_that_ends_when_it_is_precise(
    runs: tuple[list[float], list[float]], differ: bool, level: float, expected: ClaimOutcome
) -> None:
    claim = Claim("c", "tab 1", "x and y", (Apart(ONE, OTHER, differ),))
    assert judge(claim, Drawn(dict(zip((ONE, OTHER), runs, strict=True)), paired=False), level).outcome == expected


@pytest.mark.parametrize(("level", "expected"), [(LEVEL, "held"), (LEVEL_UNTIL_PRECISE, "undecided")])
def test_a_share_is_held_against_the_level_of_a_run_that_ends_when_it_is_precise(
    level: float, expected: ClaimOutcome
) -> None:
    """Six of six show 54.1 % at 5 %, and 51.0 % at 3.5 %."""

    class Counted(Drawn):
        def of(self, cell: Cell) -> CellValues | None:
            return CellValues(dict.fromkeys(range(6), 100.0), (6, 6))

    claim = Claim("c", "tab 1", "X ends", (Statement(((ONE, 1),), "difference", 52.5, None),))
    assert judge(claim, Counted({ONE: []}), level).outcome == expected


def test_what_would_refute_a_claim_of_many_statements_takes_more_blocks_than_there_are() -> None:
    claim = Claim("c", "tab 1", "X over Y, ten times", ratio(0.5, 1.0).statements * 10)
    x = [1.045, 1.010, 1.055, 1.020, 1.050, 1.025]
    judged = verdict(claim, x, [1.0] * 6)
    assert judged.outcome == "undecided"
    assert all((effect.blocks or 99) > 6 for effect in judged.effects)


def test_a_zero_in_a_ratio_leaves_a_claim_without_a_test() -> None:
    found = verdict(ratio(0.1, 0.9), [0, 50, 50], [100] * 3)
    assert (found.outcome, "zero" in found.reason) == ("not testable", True)
