"""Trials become data files that flent itself reads, with our numbers; and its own files are asked in SQL next to our runs."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.cli import main
from tunnelmark.errors import StoreError
from tunnelmark.record import flent_files, store
from tunnelmark.report.exports import flent
from unit.builders import PING, TCP, Study
from unit.report.test_html import check
from unit.stored import write

DEMO = Path(__file__).resolve().parents[4] / "docs" / "demo" / "results"
RUN = Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3, series=True)

WRITTEN_BY_FLENT = {
    "version": 4,
    "metadata": {
        "NAME": "tcp_1up",
        "TITLE": "sqm on",
        "TIME": "2026-11-24T10:00:00.000000Z",
        "T0": "2026-11-24T10:00:00.500000Z",
        "LENGTH": 2,
        "SERIES_META": {"TCP upload": {"UNITS": "Mbits/s"}, "Ping (ms) ICMP": {"UNITS": "ms"}},
    },
    "x_values": [0.0, 0.2, 0.4],
    "results": {"TCP upload": [10.0, None, 30.0], "Ping (ms) ICMP": [1.0, 2.0, 3.0]},
    "raw_values": {"TCP upload": [{"t": 1795514400.7, "val": 12.5}, {"t": 1795514400.9, "val": 30.0}, {"dur": 1}]},
}


def file(folder: Path, content: object, name: str = "a.flent.gz") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


def test_flent_itself_reads_what_is_exported(tmp_path: Path) -> None:
    results = store.load(DEMO)
    kinds: dict[str, tuple[str, bytes]] = {}
    for name, content in flent.files(results):
        kinds.setdefault(name.rsplit(".", 3)[-3], (name, content))
    assert set(kinds) == set(flent.TESTS)
    for kind, (name, content) in kinds.items():
        (tmp_path / name).write_bytes(content)
        said = subprocess.run(
            [sys.executable, "-m", "flent", "-i", str(tmp_path / name), "-f", "csv", "-o", "-"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert flent.TESTS[kind].series in said.stdout, said.stderr
        row = next(row for row in results.trials if row.folder == name.removesuffix(flent.SUFFIX))
        ours = [
            s.value * flent.TESTS[kind].factor
            for s in row.samples
            if s.metric == flent.TESTS[kind].metric and s.time is not None
        ]
        head, *lines = [line.split(",") for line in said.stdout.splitlines() if "," in line]
        place = head.index(flent.TESTS[kind].series)
        assert [float(line[place]) for line in lines] == pytest.approx(ours)


def test_what_was_exported_comes_back_with_the_same_values(tmp_path: Path) -> None:
    results = RUN.results()
    exported = dict(flent.files(results))
    assert len(exported) == len(results.trials)
    for row in results.trials:
        path = tmp_path / f"{row.folder}{flent.SUFFIX}"
        path.write_bytes(exported[path.name])
        found = flent_files.read(path)
        (series,) = found.series
        ours = [(s.time, s.value) for s in row.samples if s.metric == "goodput" and s.time is not None]
        assert series.unit == "bit/s"
        assert [value for _, value in series.points] == pytest.approx([value for _, value in ours])
        assert [time for time, _ in series.points] == pytest.approx([time for time, _ in ours], abs=1e-5)
        assert row.arm in found.title


def held(content: bytes) -> Any:
    return json.loads(gzip.decompress(content))


def test_a_trial_that_is_void_by_its_link_has_no_file() -> None:
    results = RUN.results()
    assert dict(flent.files(replace(results, link_checks=(check("after", "verified"),))))
    assert not dict(flent.files(replace(results, link_checks=(check("after", "outside"),))))


def test_a_metric_that_is_void_for_a_trial_is_in_no_file() -> None:
    tails = replace(
        PING, metrics=tuple(replace(one, feels="tail") if one.name == "rtt" else one for one in PING.metrics)
    )
    results = replace(RUN, workloads=(tails, TCP)).results()
    trials = tuple(
        replace(row, grade="good", grades={"tail": "void"}) if (row.arm, row.block) == ("tinc", 2) else row
        for row in results.trials
    )
    void = next(row for row in trials if row.grades and row.workload == "ping")
    names = set(dict(flent.files(replace(results, trials=trials))))
    assert names == {f"{row.folder}{flent.SUFFIX}" for row in trials} - {f"{void.folder}{flent.SUFFIX}"}


@pytest.mark.parametrize("options", [{"flows": "ring"}, {"flows": "both"}, {"streams": 8}])
def test_several_flows_or_streams_are_no_upload_of_flents(options: dict[str, Any]) -> None:
    assert not dict(flent.files(replace(RUN, workloads=(replace(TCP, options=options),)).results()))


def test_what_flows_back_is_sent_by_the_last_node() -> None:
    for flows, hosts in (("forward", ("a", "b")), ("back", ("b", "a"))):
        results = replace(RUN, workloads=(replace(TCP, options={"flows": flows, "streams": 1}),)).results()
        about = held(next(iter(dict(flent.files(results)).values())))["metadata"]
        assert (about["LOCAL_HOST"], about["HOST"]) == hosts
        assert "IP_VERSION" not in about


def test_the_same_results_give_the_same_bytes() -> None:
    assert dict(flent.files(RUN.results())) == dict(flent.files(RUN.results()))


def test_the_command_writes_a_file_for_each_trial(tmp_path: Path) -> None:
    results = write(RUN.results(), tmp_path / "run")
    assert main(["report", str(results), "--export", "flent"]) == 0
    assert len(list((results / "export" / "flent").glob("*.flent.gz"))) == 6


def test_a_run_without_a_series_has_nothing_for_flent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = write(Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=3).results(), tmp_path / "run")
    assert main(["report", str(results), "--export", "flent"]) == 2
    assert "no trial here has a counterpart in flent" in capsys.readouterr().err


def test_raw_values_are_taken_where_there_are_any_and_rates_become_bits_a_second(tmp_path: Path) -> None:
    found = flent_files.read(file(tmp_path, WRITTEN_BY_FLENT))
    upload, ping = found.series
    assert (found.test, found.title, found.length) == ("tcp_1up", "sqm on", 2.0)
    assert upload.unit == "bit/s" and [value for _, value in upload.points] == [12.5e6, 30e6]
    assert [time for time, _ in upload.points] == pytest.approx([0.2, 0.4], abs=1e-6)
    assert ping.unit == "ms" and ping.points == ((0.0, 1.0), (0.2, 2.0), (0.4, 3.0))


def test_a_file_is_asked_in_sql_next_to_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, theirs = write(RUN.results(), tmp_path / "run"), file(tmp_path, WRITTEN_BY_FLENT)
    sql = "SELECT arm, unit, round(avg(value)) AS v FROM metrics WHERE used AND unit = 'bit/s' GROUP BY ALL ORDER BY v"
    assert main(["query", sql, str(results), str(theirs), "--format", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[1] == '"sqm on","bit/s",21250000' and len(rows) == 4
    assert main(["query", "SELECT count(*) AS n FROM effects", str(theirs), "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "0"  # a file has no direct to be compared with


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**WRITTEN_BY_FLENT, "version": 5}, "version 5 of flent's format"),
        ({"version": 4}, "not a data file of flent"),
        ([1], "not a data file of flent"),
        ({**WRITTEN_BY_FLENT, "x_values": [0.0], "raw_values": {}}, "not a data file of flent"),
    ],
)
def test_a_file_that_is_not_flents_is_an_error_with_a_hint(content: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        flent_files.read(file(tmp_path, content))
    assert caught.value.hint


def test_a_damaged_or_absent_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "b.flent.gz").write_bytes(b"\x1f\x8b\x08 cut off")
    for name in ("b.flent.gz", "c.flent.gz"):
        with pytest.raises(StoreError):
            flent_files.read(tmp_path / name)
