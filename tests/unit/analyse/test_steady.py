"""A window whose halves differ by more than a tenth, beyond noise, is marked; noise alone is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tunnelmark.analyse import steady
from tunnelmark.analyse.analysis import judge
from tunnelmark.analyse.steady import unsteady
from tunnelmark.model.metrics import DRIFT
from tunnelmark.record.results import MetricInfo, SampleRow
from tunnelmark.report import html, markdown, trial_lengths
from tunnelmark.report.cautions import cautions
from tunnelmark.report.findings import findings
from unit.builders import TCP, Study

DRIFTING = replace(
    TCP,
    metrics=(*TCP.metrics, MetricInfo(DRIFT, "%", "second half above the first", "lower", "difference", False)),
    short={"gigabit": "3.0 round trips are measured, 20 are needed"},
)


def drifting(mean: float, noise: float, blocks: int = 5):
    results = Study(workloads=(DRIFTING,), blocks=blocks).results()
    random = np.random.default_rng(1)
    trials = tuple(
        replace(
            row,
            samples=(
                *row.samples,
                SampleRow(DRIFT, "%", float((mean if row.arm == "tinc" else 0.0) + random.normal(0, noise))),
            ),
        )
        for row in results.trials
    )
    return judge(replace(results, trials=trials))


def moved(analysis, arm: str) -> float | None:
    setting = analysis.settings()[0]
    return unsteady(analysis, analysis.cell(arm, setting, "goodput"))


def test_a_transfer_that_still_grows_is_marked_and_the_others_are_not():
    analysis = drifting(30.0, 5.0)
    assert moved(analysis, "tinc") == pytest.approx(30, abs=7)
    assert moved(analysis, "nebula") is None
    said = " ".join(found.text for found in findings(analysis))
    assert "by its second half less its first, as a share of their mean: tinc (+" in said
    assert "not stationary" in markdown.render(analysis)
    assert "not stationary" in html.render(analysis)


def test_noise_is_called_a_drift_as_seldom_as_an_interval_errs():
    random = np.random.default_rng(1)
    marked = sum(steady.moved(random.normal(0, 60, 8).tolist()) is not None for _ in range(400))
    assert marked <= 0.08 * 400


def test_less_than_a_tenth_and_too_few_blocks_are_not_marked():
    assert moved(drifting(6.0, 0.1), "tinc") is None
    assert moved(drifting(30.0, 0.1, blocks=2), "tinc") is None


def test_results_without_the_halves_are_not_marked():
    analysis = judge(Study(workloads=(TCP,)).results())
    assert moved(analysis, "tinc") is None
    assert trial_lengths.short(analysis) == []


def test_a_stated_length_that_is_short_is_a_caution():
    assert any("tcp over gigabit: 3.0 round trips" in said for said in cautions(drifting(0.0, 1.0)))
