"""What a study of so many blocks can see, and how its time is best split: held against simulations and known truths."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from scipy.special import stdtr

from tunnelmark.analyse import block_power, judge
from tunnelmark.analyse.model import Scenario
from tunnelmark.record.results import SampleRow
from unit.builders import TCP, Study

ARMS = ("direct", "direct-again", "tinc", "nebula")
SETTING = Scenario("gigabit", "pair", "tcp")
GOODPUT = TCP.metrics[0]


def spread(sd: float, twins: float = 0.0) -> block_power.BlockSpread:
    return block_power.BlockSpread("tinc", SETTING, GOODPUT, sd, twins)


def test_more_blocks_see_less_and_a_wider_spread_sees_more_only():
    found = block_power.seen(spread(0.05), 1).by_blocks
    sizes = [found[count] for count in block_power.COUNTS]
    assert sizes == sorted(sizes, reverse=True)
    assert block_power.seen(spread(0.1), 1).by_blocks[8] > found[8]
    assert block_power.seen(spread(0.05), 20).by_blocks[8] > found[8]
    assert block_power.seen(spread(0.05, twins=0.2), 1).by_blocks[8] > found[8]


@pytest.mark.parametrize("blocks", [5, 8, 20])
def test_what_it_says_is_found_in_four_of_five_simulated_studies(blocks: int):
    difference = log(block_power.seen(spread(0.06), 3).by_blocks[blocks])
    effects = difference + np.random.default_rng(1).normal(0, 0.06, (20_000, blocks))
    t = effects.mean(axis=1) / (effects.std(axis=1, ddof=1) / sqrt(blocks))
    found = (2 * stdtr(blocks - 1, -np.abs(t)) < 0.05 / 3).mean()
    assert found == pytest.approx(0.8, abs=0.015)


def test_questions_are_all_pairs_by_all_primary_metrics():
    plan = Study(arms=ARMS, workloads=(TCP,)).results().plan
    assert block_power.questions(plan, "direct") == len(judge(Study(arms=ARMS, workloads=(TCP,)).results()).pairs) - 3
    # two VPNs against direct and each other; the three others are of retransmits, which is not primary


def test_an_earlier_run_gives_the_spread_of_each_arm():
    found = block_power.measured(judge(Study(arms=ARMS, workloads=(TCP,), blocks=40, noise=0.05).results()))
    assert [each.arm for each in found] == ["tinc", "nebula"]
    for each in found:  # of a ratio of two trials
        assert each.sd == pytest.approx(0.05 * sqrt(2), rel=0.3)
        assert each.twins == pytest.approx(0.05 * sqrt(2), rel=0.3)


def test_a_stated_spread_is_that_of_every_arm():
    plan = Study(arms=ARMS, workloads=(TCP,)).results().plan
    assert [(each.arm, each.sd, each.twins) for each in block_power.stated(plan, "direct", 0.1)] == [
        ("tinc", log(1.1), 0.0),
        ("nebula", log(1.1), 0.0),
    ]
    twice = Study(
        arms=(*ARMS, "tinc-again"), same_as={"direct-again": "direct", "tinc-again": "tinc"}, workloads=(TCP,)
    )
    assert block_power.stated(twice.results().plan, "direct", 0.1)[0].twins == pytest.approx(sqrt(2) * log(1.1))


def test_time_goes_to_longer_trials_where_their_own_noise_is_all():
    """Trials whose values over time differ so much that their own noise explains how blocks differ, and trials that have next to none."""

    def found(own: float, between: float) -> block_power.Split:
        random = np.random.default_rng(3)
        results = Study(arms=ARMS, workloads=(TCP,), blocks=40).results()
        rows = []
        for row in results.trials:
            level = 5e8 * float(np.exp(random.normal(0, between)))
            series = level * np.exp(own * random.normal(size=30))
            samples = [SampleRow("goodput", "bit/s", float(series.mean()))]
            samples += [SampleRow("goodput", "bit/s", float(value), 0.1 * step) for step, value in enumerate(series)]
            rows.append(replace(row, samples=tuple(samples)))
        (split,) = block_power.splits(judge(replace(results, trials=tuple(rows))), 4 * (TCP.window + TCP.warmup + 1.0))
        return split

    noisy, steady, mixed = found(0.5, 0.001), found(0.001, 0.1), found(0.5, 0.09)
    assert noisy.own > 0.7
    assert noisy.best is None or noisy.best > 4.0
    assert steady.own < 0.01
    assert steady.best is not None
    assert steady.best < 0.5
    assert steady.time < 0.7
    assert mixed.own == pytest.approx(0.5, abs=0.2)
    assert mixed.overhead == pytest.approx(2.0)
    assert mixed.best is not None
    assert mixed.best == pytest.approx(sqrt(mixed.own * 3.0 * 2.0 / (1 - mixed.own)))
    assert mixed.time <= 1.0
