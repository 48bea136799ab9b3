"""What a study says that it could find, it finds; and its promises hold in studies of a known truth."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.detectable import POWER, detectable
from tunnelmark.analyse.intervals import corrected, paired_t
from tunnelmark.analyse.model import Scenario
from tunnelmark.report import detectable_differences as said
from unit.builders import TCP, Study

SETTING = Scenario("gigabit", "pair", "tcp")
STUDY = Study(arms=("direct", "direct-again", "nebula"), workloads=(TCP,), noise=0.04, block_noise=0.0, blocks=8)


@pytest.mark.parametrize(("blocks", "level"), [(5, 0.05), (8, 0.05), (8, 0.001), (15, 0.01)])
def test_four_of_five_studies_find_what_is_said_to_be_found(blocks: int, level: float):
    random = np.random.default_rng(1988)
    samples = random.normal(0, 0.05, (4_000, blocks))
    # By the spread that is true, and not by one sample's: the promise is about studies with that spread.
    exact = np.linspace(-1, 1, blocks)
    off = detectable(list(0.05 * exact / exact.std(ddof=1)), level, 0.0)
    assert off is not None
    found = np.mean([(paired_t(list(sample)) or 0.0) < level for sample in samples + off])
    assert found == pytest.approx(POWER, abs=0.03)


def test_an_estimate_must_be_beyond_the_threshold_too():
    assert detectable([0.0, 1e-6, -1e-6], 0.05, log(1.01)) == pytest.approx(log(1.01), rel=1e-3)
    assert detectable([0.1, 0.2], 0.05, 0.0) is None


def test_a_noisier_arm_could_find_less_and_the_report_says_it_for_each():
    quiet, noisy = (judge(replace(STUDY, noise=noise).results()) for noise in (0.01, 0.08))
    found = [analysis.cell("nebula", SETTING, "goodput").against_direct for analysis in (quiet, noisy)]
    sizes = [pair.detectable for pair in found if pair is not None and pair.detectable is not None]
    assert 1.01 < sizes[0] < sizes[1]
    text = said.sentences(noisy)
    assert text[0].startswith("This study could find, with a chance of 80")
    assert text[1].startswith("TCP goodput: nebula ")


def test_any_false_pair_and_any_wrong_rank_is_rare_among_many_equal_arms():
    """The whole form of this is bench/statistics_bars.py; here, ten arms that are alike, pairwise, after Holm."""
    random = np.random.default_rng(1979)
    wrong = 0
    for study in random.normal(0, 0.05, (150, 10, 8)):
        p_values = [paired_t(list(study[i] - study[j])) or 0.0 for i in range(10) for j in range(i)]
        wrong += min(corrected(p_values)) < 0.05
    assert wrong <= 0.05 * 150 + 5  # 1 % beyond chance at 5 %
