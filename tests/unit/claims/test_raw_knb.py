"""Raw data of the Kubernetes network benchmark, on trees of its shape with invented numbers, and how printed values are held against raw data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.claims import raw, reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.model import Cell, ClaimsFile, Printed
from tunnelmark.claims.raw.raw_values import RawCell, RawRun, RawValues
from tunnelmark.claims.raw.recomputed import agreement, compare_with_printed
from tunnelmark.errors import StoreError, UsageError

CLAIMS = """
[source]
authors = "A. Author"
year = 2020
title = "invented"
study = "edge-cloud"

[arms]
"MTU 1450" = "direct"
"ZeroTier direct" = "zerotier"

[condition.loss-5]
title = "5 % of loss"
profile = "edge-loss-5+gigabit"

[quantity.tcp]
title = "TCP"
unit = "Mbit/s"
kind = "rate"
better = "higher"
workload = "tcp"
metric = "goodput"
factor = 1e6

[quantity.tcp-sd]
title = "its deviation"
unit = "Mbit/s"
kind = "rate"
better = "lower"
unmeasured = "invented"

[quantity.tcp-cpu]
title = "CPU"
unit = "% of eight hardware threads"
kind = "share"
better = "lower"
unmeasured = "invented"

[quantity.api]
title = "the API"
unit = "ms"
kind = "time"
better = "lower"
workload = "kube-api"
metric = "mean"

[condition.native]
title = "no impairment"
profile = "gigabit"

[[table]]
place = "tab 1"
quantity = "tcp"
conditions = ["loss-5"]
rows = { "MTU 1450" = [104.50], "ZeroTier direct" = [50.00] }

[[claim]]
id = "half"
place = "tab 1"
says = "ZeroTier has {value}."
test = "ratio"
quantity = "tcp"
conditions = ["loss-5"]
arms = ["ZeroTier direct"]
over = [{ arm = "MTU 1450" }]

[[claim]]
id = "apart"
place = "tab 1"
says = "They differ."
test = "apart"
quantity = "tcp"
conditions = ["loss-5"]
pairs = [["ZeroTier direct", "MTU 1450"]]
"""
RATES = {"12-native-mtu1450": [100.0 + place for place in range(10)], "41-zerotier-direct": [50.0] * 9 + [-1]}


def run(name: str, bandwidth: float) -> dict[str, Any]:
    pod = {"bandwidth": bandwidth, "client": {"cpu": {"total": 12.5}}}
    return {"metadata": {"name": name, "date": "2023-01-01 00:00:00"}, "data": {"mtu": "1450", "pod2pod": {"tcp": pod}}}


@pytest.fixture
def claims(tmp_path: Path) -> ClaimsFile:
    """Claims about an invented table."""
    (tmp_path / "invented.toml").write_text(CLAIMS)
    return reading.read(tmp_path / "invented.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten runs of two configurations; the last one of ZeroTier failed."""
    for configuration, rates in RATES.items():
        file = tmp_path / "tree" / configuration / f"01-{configuration}-60s-p2ptcp-loss5p-delay0.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps([run(f"knb-{place}", rate) for place, rate in enumerate(rates)]))
        (file.parent / "notes.json").write_text("[]")
    return tmp_path / "tree"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The same runs in a table."""
    head = "benchmark-name,benchmark-type,server-node,client-node,socket-buffer-size,mtu,bandwidth,client-ram,client-cpu,transport-protocol,loss,delay"
    rows = [f"{name},pod2pod,b,a,2M,1450,{rate},600,12.5,tcp,5,0" for name, rates in RATES.items() for rate in rates]
    rows.append("12-native-mtu1450,pod2svc,b,a,2M,1450,1,600,12.5,tcp,5,0")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "all-merged.csv").write_text("\n".join([head, *rows]))
    return tmp_path / "table"


def test_failed_runs_are_left_out_of_the_mean_and_listed(claims: ClaimsFile, folder: Path) -> None:
    values = raw.read("knb", folder, claims)
    bare, zerotier = compare_with_printed(claims, values)
    assert (bare.agrees, bare.note) == (True, "")
    assert zerotier.agrees
    assert zerotier.note == "of 9 of 10 runs (knb-9 of 2023-01-01 00:00:00: nothing arrived (bandwidth -1))"
    assert len(values.missing()) == 1


def test_a_table_gives_what_the_files_give(claims: ClaimsFile, folder: Path, table: Path) -> None:
    files, rows = (raw.read("knb", each, claims) for each in (folder, table))
    assert set(files.cells) == set(rows.cells)
    assert all(files.of(cell) == rows.of(cell) for cell in files.cells)


def test_a_deviation_and_the_cpu(claims: ClaimsFile, folder: Path) -> None:
    values = raw.read("knb", folder, claims)
    assert values.cells[Cell("tcp-sd", "loss-5", "MTU 1450")].figure == pytest.approx(3.02765, abs=1e-5)
    assert "has no interval" in values.obstacle({Cell("tcp-sd", "loss-5", "MTU 1450"): 1}, "ratio")
    cpu = values.of(Cell("tcp-cpu", "loss-5", "MTU 1450"))
    assert cpu is not None
    assert set(cpu.values.values()) == {12.5}


def test_runs_are_judged_with_intervals_and_by_ranks(claims: ClaimsFile, folder: Path) -> None:
    ratio, apart = (judge(claim, raw.read("knb", folder, claims)) for claim in claims.claims)
    assert ratio.outcome == "held"
    effect = ratio.effects[0]
    assert effect.low is not None
    assert effect.high is not None
    assert effect.low < 50 / 104.5 < effect.high
    assert apart.outcome == "held"


def test_a_cell_with_fewer_than_nine_in_ten_runs_is_not_compared(claims: ClaimsFile, folder: Path) -> None:
    file = next(folder.glob("41*/*delay0.json"))
    file.write_text(json.dumps([run(f"knb-{place}", 50.0) for place in range(8)]))
    found = judge(claims.claims[0], raw.read("knb", folder, claims))
    assert found.outcome == "not testable"
    assert "8 of 10 runs have a value (2 are not in the data)" in found.reason


def test_the_api_s_times_are_means_of_runs(claims: ClaimsFile, folder: Path) -> None:
    place = folder.parent / "whole" / "results-k8s-api" / "07-zerotier-k8s-api-bench"
    place.mkdir(parents=True)
    folder.rename(folder.parent / "whole" / "results-json")
    for number in range(3):
        rows = "".join(f"0.{number + 1},0,{code}\n" for code in ("200", "200", "500"))
        (place / f"run{number}.csv").write_text(f"response-time,DNS,status-code\n{rows}0.9")
    values = raw.read("knb", folder.parent / "whole", claims)
    found = values.cells[Cell("api", "native", "ZeroTier direct")]
    assert [run.value for run in found.runs] == pytest.approx([100, 200, 300])
    assert any("run0.csv (3)" in line for line in values.design)
    assert values.of(Cell("tcp", "loss-5", "MTU 1450")) is not None


def test_what_cannot_be_read_is_an_error(claims: ClaimsFile, folder: Path, table: Path) -> None:
    file = next(folder.glob("12*/*delay0.json"))
    file.write_text("{}")
    with pytest.raises(StoreError, match="not a list"):
        raw.read("knb", folder, claims)
    (table / "all-merged.csv").write_text("benchmark-name,bandwidth\nx,1\n")
    with pytest.raises(StoreError, match=r"all-merged\.csv:2"):
        raw.read("knb", table, claims)
    (table / "all-merged.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(StoreError, match="cannot be read"):
        raw.read("knb", table, claims)
    with pytest.raises(UsageError, match="no run of knb"):
        raw.read("knb", file.parent, claims)


@pytest.mark.parametrize(
    ("value", "printed", "decimals", "how"),
    [
        (12.04, 12.0, 1, "exact"),
        (12.06, 12.0, 1, "cut off and not rounded"),
        (12.4, 12.0, 0, "exact"),
        (11.94, 12.0, 1, ""),
        (4320.6, 4300, 0, "rounded to 100"),
        (942.4, 950, 0, ""),
        (66.7, 100, 0, ""),
        (0.0, 0.0, 1, "exact"),
    ],
)
def test_agreement_to_the_printed_digit(value: float, printed: float, decimals: int, how: str) -> None:
    assert agreement(value, Printed(Cell("q", "c", "a"), printed, "tab 1", decimals)) == how


def test_printed_digits_are_those_that_are_written(claims: ClaimsFile) -> None:
    assert {printed.decimals for printed in claims.printed.values()} == {2}


def test_a_run_that_was_left_out_is_found(claims: ClaimsFile) -> None:
    runs = (RawRun("one", 50.0), RawRun("two", 50.01), RawRun("three", 90.0))
    values = RawValues("x", {Cell("tcp", "loss-5", "ZeroTier direct"): RawCell(runs, 3)}, single=True, design=())
    bare, zerotier = compare_with_printed(claims, values)
    assert bare.note == "not in the raw data"
    assert not zerotier.agrees
    assert zerotier.note == "agrees without three"


def test_the_shipped_claims_are_in_the_units_in_which_raw_data_are_read(folder: Path) -> None:
    """As it happened: a file of claims got another unit, and only a test that needs the authors' data knew it."""
    shipped = reading.of_study("edge-cloud")
    assert shipped is not None
    assert Cell("tcp-cpu", "loss-5", "MTU 1450") in raw.read("knb", folder, shipped).cells
