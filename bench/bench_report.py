"""The HTML report of ten thousand trials: how long it takes to build, how large it is, and when it is open in Chromium.

    .venv/bin/python -m pytest bench/bench_report.py -o python_files='bench_*.py' -s

The store is made up: twelve arms, fourteen conditions, three workloads with series, and six metrics that collectors watch in each
trial. Reading the store is not part of the figure, the analysis is. The bounds are for a machine that does little else; what its own
work took (CPU seconds) is printed beside, and is what a busy machine can tell.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from browser.conftest import OPTIONS, PROGRAMS
from tunnelmark.analyse import judge
from tunnelmark.record.results import MetricInfo, Results, SampleRow, TrialRow, WorkloadInfo
from tunnelmark.report import html
from unit.builders import PING, PROFILE, TCP, UDP, Study

ARMS = ("direct", "direct-again", *(f"vpn-{number}" for number in range(10)))
CONDITIONS, BLOCKS, WATCHED = 14, 20, 6
BUILDS, OPENS, BYTES = 10.0, 2.0, 10_000_000


def _watched(use: WorkloadInfo) -> WorkloadInfo:
    more = tuple(
        MetricInfo(f"watched_{number}", "s/GB", f"watched {number}", "lower", "ratio", primary=False, watcher="cost")
        for number in range(WATCHED)
    )
    return replace(use, metrics=(*use.metrics, *more))


def _results() -> Results:
    profiles = tuple(replace(PROFILE, name=f"link-{n}", title=f"condition {n}") for n in range(CONDITIONS))
    study = Study(
        arms=ARMS,
        workloads=tuple(_watched(use) for use in (PING, TCP, UDP)),
        profiles=profiles,
        blocks=BLOCKS,
        series=True,
        tcp={arm: 1 - 0.05 * number for number, arm in enumerate(ARMS[2:], 1)},
    )
    random = np.random.default_rng(3)

    def seen(row: TrialRow) -> TrialRow:
        more = (SampleRow(f"watched_{n}", "s/GB", float(4 * random.lognormal(0, 0.1))) for n in range(WATCHED))
        return replace(row, samples=(*row.samples, *more))

    found = study.results()
    return replace(found, trials=tuple(seen(row) for row in found.trials))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, float]:
    results = _results()
    assert len(results.trials) > 10_000
    began, used = time.perf_counter(), time.process_time()
    text = html.render(judge(results))
    took, cpu = time.perf_counter() - began, time.process_time() - used
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(text, encoding="utf-8")
    return file, took, cpu


def test_builds_in_time_and_is_small_enough(page: tuple[Path, float, float]) -> None:
    file, took, cpu = page
    print(
        f"\n10,080 trials: analysed and built in {took:.1f} s ({cpu:.1f} s of CPU), {file.stat().st_size / 1e6:.1f} MB"
    )
    assert file.stat().st_size <= BYTES
    assert cpu <= BUILDS


def test_opens_in_time(page: tuple[Path, float, float]) -> None:
    api = pytest.importorskip("playwright.sync_api")
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs a Chromium: apt-get install chromium-headless-shell")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        seen = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
        session = seen.context.new_cdp_session(seen)
        session.send("Performance.enable")
        began = time.perf_counter()
        seen.goto(page[0].as_uri())
        loaded = time.perf_counter() - began
        seen.wait_for_selector("#explorer button.cell")
        usable = time.perf_counter() - began
        counted = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        painted = seen.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        browser.close()
    print(
        f"\nfirst paint after {painted:.2f} s, loaded after {loaded:.2f} s, explorer after {usable:.2f} s "
        f"({counted['ThreadTime']:.2f} s of CPU), {counted['Nodes']:.0f} nodes"
    )
    assert counted["ThreadTime"] <= OPENS
