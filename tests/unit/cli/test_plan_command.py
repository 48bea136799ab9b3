"""`tunnelmark plan power` says what a study can see, by a stated spread or by an earlier run's own; `plan price` what it takes on rented machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tunnelmark.cli.command import main
from tunnelmark.record.results import Results
from unit import stored
from unit.builders import TCP, Study
from unit.study_text import study_text

TEXT = study_text("tinc", "nebula", seconds=4.0)


def results(**more: Any) -> Results:
    return Study(arms=("direct", "direct-again", "tinc", "nebula"), workloads=(TCP,), blocks=8, **more).results()


@pytest.fixture
def study(tmp_path: Path) -> str:
    (tmp_path / "mine.toml").write_text(TEXT)
    return str(tmp_path / "mine.toml")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["plan", "power", *arguments]) == 0
    return capsys.readouterr().out


def test_a_stated_spread_is_one_row_for_all(study: str, capsys: pytest.CaptureFixture[str]):
    said = told(capsys, study, "--sd", "5%")
    assert "3 questions share one chance of error" in said
    assert "every arm" in said
    assert "40 blocks" in said
    document = json.loads(told(capsys, study, "--sd", "5%", "--json"))
    assert [row["arm"] for row in document["differences"]] == ["tinc", "nebula"]
    sizes = list(document["differences"][0]["differences"].values())
    assert sizes == sorted(sizes, reverse=True)
    assert document["block_seconds"] == pytest.approx(4 * (4.0 + 0.35))


def test_an_earlier_run_gives_a_row_for_each_arm_its_times_and_how_to_split_them(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = stored.write(results(series=True), tmp_path / "earlier")
    said = told(capsys, study, "--from", str(folder))
    assert "every arm" not in said
    assert "of the variance are the trials' own" in said
    document = json.loads(told(capsys, study, "--from", str(folder), "--json"))
    assert [row["arm"] for row in document["differences"]] == ["tinc", "nebula"]
    assert len(document["splits"]) == 1
    assert document["block_seconds"] > 4 * (TCP.window + TCP.warmup)  # what it took, not what the file plans


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--sd", "5"], "known units are %"),
        (["--sd", "0%"], "must be above 0"),
        (["--sd", "5%", "--from", "EARLIER"], "exclude each other"),
        (["--from", "OTHER"], "says nothing of the arms"),
    ],
)
def test_what_cannot_be_is_refused_with_a_hint(
    arguments: list[str], reason: str, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    stored.write(results(), tmp_path / "EARLIER")
    other = Study(arms=("direct", "direct-again", "openvpn"), workloads=(TCP,), blocks=8).results()
    stored.write(other, tmp_path / "OTHER")
    given = [str(tmp_path / each) if each in ("EARLIER", "OTHER") else each for each in arguments]
    assert main(["plan", "power", study, *given]) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "hint:" in said


def priced(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["plan", "price", *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_price_is_machines_times_hours_times_what_is_stated(study: str, capsys: pytest.CaptureFixture[str]):
    found = priced(capsys, study, "--blocks", "8", "--per-hour", "1.5", "--set-up", "30 min")
    assert found["measuring_seconds"] == pytest.approx(8 * 4 * (4.0 + 0.35))
    assert found["hours"] == pytest.approx((1800 + found["measuring_seconds"]) / 3600, abs=0.01)
    assert found["price"] == pytest.approx(3 * found["hours"] * 1.5)
    shared = priced(capsys, study, "--blocks", "8", "--per-hour", "1.5", "--spread")
    assert shared["measuring_seconds"] == pytest.approx(3 * 4 * (4.0 + 0.35))  # eight blocks on three machines


def test_a_price_is_of_the_time_that_a_study_gives_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """As it was, it was that of the most blocks, forty by default, which such a study never reaches."""
    (tmp_path / "mine.toml").write_text(TEXT.replace("[study]\n", '[study]\ntime_budget = "5 min"\n', 1))
    found = priced(capsys, str(tmp_path / "mine.toml"), "--per-hour", "1")
    assert 4 * 60 < found["measuring_seconds"] <= 5 * 60


def test_a_price_says_what_it_is_of_and_what_is_not_in_it(study: str, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "price", study, "--blocks", "10", "--per-hour", "2", "--currency", "USD"]) == 0
    said = capsys.readouterr().out
    assert "10 blocks of 17 s, by all machines together" in said
    assert "2 min 54 s of measuring and 1 h 00 min of set-up: 1.05 hours" in said
    assert "3 × 1.05 hours × 2 USD = 6.30 USD" in said
    assert "check it before use" in said


@pytest.mark.parametrize(
    "wrong", [*(("--per-hour", price) for price in ("0", "nan", "inf")), ("--per-hour", "1", "--set-up", "soon"), ()]
)
def test_a_price_is_never_assumed(study: str, wrong: tuple[str, ...]):
    assert main(["plan", "price", study, *wrong]) == 2
