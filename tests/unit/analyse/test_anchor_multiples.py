"""Multiples of the anchor, added time, and the interval for a machine that was not measured."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from scipy.special import stdtrit

from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.anchor_multiples import anchor_of, headlines, is_delay, prediction
from tunnelmark.analyse.machines import BETWEEN, MachineComparison
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import ArmInfo, SampleRow
from unit.analyse.test_bottleneck import QUIET
from unit.builders import PING, TCP, Study

ARMS = ("direct", "direct-again", "anchor-chacha20", "tinc", "nebula")
DELAY = replace(PING, metrics=tuple(replace(one, feels="delay") if one.unit == "ms" else one for one in PING.metrics))


def analysed(study: Study, **limits: dict[str, float]) -> Analysis:
    results = study.results()
    rows = tuple(replace(row, limits=QUIET | limits.get(row.arm.replace("-", "_"), {})) for row in results.trials)
    return judge(replace(results, trials=rows))


def study(**more: object) -> Study:
    given: dict[str, object] = {
        "arms": ARMS,
        "vpns": {"anchor-chacha20": "anchor"},
        "tcp": {"anchor-chacha20": 0.5, "tinc": 0.2, "nebula": 0.3},
        "rtt": {"tinc": 3.0},
        "workloads": (DELAY, TCP),
    }
    return Study(**(given | more))  # type: ignore[arg-type]


def of(analysis: Analysis, arm: str, metric: str):
    return next(one for one in headlines(analysis) if (one.arm, one.metric.name) == (arm, metric))


BUSY = {"core_source": 1.0}


def test_what_a_processor_bounds_is_a_multiple_of_the_anchor_in_the_block() -> None:
    analysis = analysed(study(noise=0.0), tinc=BUSY, anchor_chacha20=BUSY)
    one = of(analysis, "tinc", "goodput")
    assert one.first == "anchor"
    assert one.multiple is not None
    assert one.multiple.against == "anchor-chacha20"
    assert one.multiple.estimate == pytest.approx(0.4), "the noise of a block cancels"
    assert one.multiple.interval is not None
    assert one.multiple.interval.low == pytest.approx(0.4)


def test_what_the_link_bounds_is_a_share_of_direct() -> None:
    full = {"wire_source": 1e9}
    one = of(analysed(study(), tinc=full, direct=full, anchor_chacha20=BUSY), "tinc", "goodput")
    assert one.first == "direct"
    assert not one.apart


def test_an_anchor_that_something_else_bounds_is_no_yardstick() -> None:
    one = of(analysed(study(), tinc=BUSY, anchor_chacha20={"wire_source": 1e9}), "tinc", "goodput")
    assert one.first == "direct"
    assert one.multiple is not None
    assert one.multiple.apart == "bound by the sender's core, while anchor-chacha20 is bound by the link"


def test_a_delay_is_what_it_adds_to_direct_s_and_has_no_multiple() -> None:
    one = of(analysed(study(noise=0.0, block_noise=0.0)), "tinc", "rtt_p50")
    assert (one.first, one.multiple) == ("added", None)
    assert one.added is not None
    assert one.added.estimate == pytest.approx(400.0), "0.6 ms less 0.2 ms, in microseconds"
    assert not is_delay(replace(DELAY.metrics[0], feels="transfer")), "the duration of a transfer is no delay"


def test_a_zero_has_no_multiple_and_is_counted() -> None:
    results = study().results()

    def lost(row):
        zero = row.arm == "tinc" and row.workload == "tcp" and row.block == 2
        samples = tuple(SampleRow(s.metric, s.unit, 0.0) if s.metric == "goodput" else s for s in row.samples)
        return replace(row, limits=QUIET | BUSY, samples=samples if zero else row.samples)

    analysis = judge(replace(results, trials=tuple(lost(row) for row in results.trials)))
    one = of(analysis, "tinc", "goodput")
    assert one.multiple is not None
    assert (one.multiple.zeros, one.multiple.estimate, one.multiple.prediction) == (1, None, None)


def test_cpu_stands_beside_where_it_was_watched() -> None:
    assert of(analysed(study()), "tinc", "goodput").cpu == (None, None)


def test_the_anchor_is_the_one_that_encrypts() -> None:
    plain = ArmInfo("anchor", "anchor", "", {})
    ciphered = ArmInfo("mine", "anchor", "", {"cipher": "chacha20-poly1305"})
    assert anchor_of([plain, ciphered]) == "mine"
    assert anchor_of([plain]) == "anchor"
    assert anchor_of([ArmInfo("tinc", "tinc", "", {})]) is None


def test_without_an_anchor_and_without_watchers_nothing_is_said() -> None:
    assert headlines(judge(Study().results())) == ()
    assert headlines(analysed(Study())), "what bound them is said without an anchor, too"


def test_the_anchor_is_neither_ranked_nor_compared_with_others() -> None:
    analysis = analysed(study(noise=0.0))
    assert {place.arm for ranking in analysis.rankings for place in ranking.places} == {"tinc", "nebula"}
    assert {(pair.arm, pair.against) for pair in analysis.pairs if "anchor-chacha20" in (pair.arm, pair.against)} == {
        ("anchor-chacha20", "direct")
    }


@pytest.mark.parametrize(("deviation", "noise", "blocks"), [(0.15, 0.02, 5), (0.05, 0.1, 5), (0.1, 0.05, 8)])
def test_the_prediction_holds_a_run_on_another_machine_in_95_of_100(
    deviation: float, noise: float, blocks: int
) -> None:
    """Simulated from a fixed seed: the constant itself is estimated from as few machines as it says."""
    random, freedom, rounds = np.random.default_rng(5), 3, 3000
    held = 0
    for _ in range(rounds):
        estimated = deviation * np.sqrt(random.chisquare(freedom) / freedom)
        here = random.normal(0, noise, blocks)
        there = random.normal(random.normal(0, deviation), noise, blocks).mean()
        found = prediction(list(here), MachineComparison(float(estimated), freedom, "simulated"))
        assert found is not None
        held += log(found[0]) <= there <= log(found[1])
    assert 0.93 <= held / rounds <= 0.985


def test_the_prediction_is_wider_than_the_run_s_own_interval_and_never_narrower_than_machines_differ() -> None:
    low, high = prediction([log(0.5)] * 5) or (0.0, 0.0)
    quantile = float(stdtrit(BETWEEN.freedom, 0.975))
    assert high / 0.5 == pytest.approx(exp(quantile * BETWEEN.deviation), rel=1e-3), "a run without noise of its own"
    assert low == pytest.approx(0.25 / high)
    assert prediction([0.0, 0.0]) is None, "two blocks tell nothing"
    assert prediction([0.1] * 4, MachineComparison(0.0, 3, "")) == (pytest.approx(exp(0.1)), pytest.approx(exp(0.1)))
