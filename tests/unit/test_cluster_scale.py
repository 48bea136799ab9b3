"""What the bench of clusters compares with, and its prices, are what a hand can compute."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "bench"))

import _cluster_virtual as virtual  # noqa: E402 (bench is no package)
import cluster_scale as bench  # noqa: E402


def all_seconds(blocks: int) -> float:
    return sum(virtual.length(1, 6.0, number) for number in range(1, blocks + 1))


def test_lengths_have_the_mean_that_is_asked_and_come_again_by_the_seed() -> None:
    assert all_seconds(4000) / 4000 == pytest.approx(6.0, rel=0.01)
    assert virtual.length(1, 6.0, 7) == virtual.length(1, 6.0, 7) != virtual.length(2, 6.0, 7)


def test_one_worker_without_failures_takes_the_sum_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "LOST", 0.0)
    monkeypatch.setattr(virtual, "FAILED", 0.0)
    assert virtual.at_best(1, 6.0, 20, 1, 1.0) == pytest.approx(all_seconds(20))


@pytest.mark.parametrize(("lost", "failed"), [(0.0, 0.0), (0.05, 0.0), (0.0, 0.05), (0.05, 0.05)])
def test_no_dispatcher_is_faster_than_blocks_over_workers(
    lost: float, failed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual, "LOST", lost)
    monkeypatch.setattr(virtual, "FAILED", failed)
    for workers in (2, 10, 100):
        assert virtual.at_best(1, 6.0, 20 * workers, workers, 1.0) >= all_seconds(20 * workers) / workers


def test_fates_come_as_often_as_they_are_stated() -> None:
    fates = [virtual.fate(1, 6.0, number, "w1.0", 3) for number in range(20_000)]
    assert sum(one.lost is not None for one in fates) / 20_000 == pytest.approx(virtual.LOST, rel=0.3)
    assert sum(one.failed is not None for one in fates) / 20_000 == pytest.approx(virtual.FAILED, rel=0.3)
    assert all(0 < one.ends <= one.seconds for one in fates)


def test_time_is_whole_rounds_of_blocks_and_the_price_that_of_the_machines() -> None:
    length = bench.Length(arms=2, conditions=1, workloads=1, blocks=20, traffic=1795.0, besides=0.0, start=10.0)
    assert length.block == 3600.0
    assert [length.hours(machines) for machines in (1, 7, 20, 40)] == [20.0, 3.0, 1.0, 1.0]
    assert length.machine_hours(7) == (20.0, 21.0)
    assert length.machine_hours(40, studies=4) == (80.0, 80.0)


def test_the_page_has_the_table_that_the_bench_prints(capsys: pytest.CaptureFixture[str]) -> None:
    bench.print_prices(0.10, bench.Length())
    rows = re.findall(r"^\|.*\|$", capsys.readouterr().out, re.MULTILINE)
    page = (ROOT / "docs" / "scale.md").read_text()
    assert len(rows) > 5 and all(row in page for row in rows)
