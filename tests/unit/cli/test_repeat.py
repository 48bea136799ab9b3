"""`merge` joins what runs have written, and `report` shows it again; `repeat` says what it cannot go on with."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tunnelmark import cli
from tunnelmark.cli import link_capacities, repeat
from tunnelmark.cli.repeat import _done, _like_the_first
from tunnelmark.cli.run_options import RunOptions
from tunnelmark.errors import StoreError, UsageError
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study, save_inputs
from tunnelmark.plan.model import Study as Asked
from tunnelmark.record import several_runs, store
from tunnelmark.registry import catalogue
from unit.builders import PROFILE, TCP, Study
from unit.stored import write
from unit.study_text import study_text

PROFILE_FILE = 'title = "1 Gbit/s"\n[both]\nrate = "{rate}"\n'


def machine(model: str) -> dict[str, Any]:
    cpu = {"vendor": "AuthenticAMD", "family": "25", "model": model, "stepping": "1", "name": "AMD EPYC", "mhz": 2445.0}
    return {"fingerprint": {"cpu": cpu, "cores": 2, "kernel": "6.18", "hypervisor": "KVM", "boot": f"boot-{model}"}}


def stored(folder: Path, seed: int, model: str = "1", speed: float = 0.5, rate: str = "1 Gbit/s") -> Path:
    """A results folder of such a machine, as a run writes it."""
    study = Study(
        arms=("direct", "direct-again", "tinc", "nebula"),
        workloads=(TCP,),
        profiles=(replace(PROFILE, rate=None),),  # no gate asks that it is filled
        blocks=5,
        tcp={"tinc": speed, "nebula": 1.4 * speed},
        seed=seed,
        environment=machine(model),
    )
    found = study.results()
    sessions = tuple(replace(each, started=each.started + seed) for each in found.sessions)
    return write(replace(found, sessions=sessions), folder, {"profiles/gigabit.toml": PROFILE_FILE.format(rate=rate)})


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    speeds = [("1", 0.53), ("17", 0.23), ("49", 0.40)]
    return [stored(tmp_path / model, seed, model, speed) for seed, (model, speed) in enumerate(speeds)]


def told(text: str) -> str:
    return " ".join(text.split())


def test_results_of_three_machines_are_one_report(
    three: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert cli.main(["merge", *map(str, three), "--out", str(out)]) == 0
    said = told(capsys.readouterr().out)
    assert "An interval here covers machines like the 3 measured." in said
    assert "one more machine" in said
    assert "tinc / nebula" in said
    assert "C: AMD EPYC (AuthenticAMD family 25 model 49 stepping 1), 2445 MHz, 2 cores, Linux 6.18, under KVM" in said
    page, text = (out / "report.html").read_text(), (out / "report.md").read_text()
    for report in (page, text):
        assert "machines like the 3 measured" in report
        assert "one more machine" in report
    assert "| **tinc** | 15/15 |" in text
    assert "http" not in page.replace("http-equiv", "").partition("<body>")[2]


def test_a_merged_folder_needs_none_of_those_that_it_was_made_from(
    three: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    cli.main(["merge", *map(str, three), "--out", str(out)])
    before = (out / "report.md").read_text()
    for folder in three:
        shutil.rmtree(folder)
    assert cli.main(["report", str(out)]) == 0
    assert (out / "report.md").read_text() == before
    capsys.readouterr()
    assert cli.main(["report", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["machine"] for each in found["sessions"]] == ["A", "B", "C"]
    row = next(row for row in found["rows"] if (row["arm"], row["metric"]) == ("tinc", "goodput"))
    assert (row["metric_unit"], row["unit"], row["units"]) == ("bit/s", "machine", 3)
    assert row["next_low"] < row["low"] < row["mean"] < row["high"] < row["next_high"]
    assert [round(each["estimate"], 1) for each in row["each"]] == [0.5, 0.2, 0.4]
    assert cli.main(["report", str(out / "sessions" / "02")]) == 0  # each is a results folder of its own


def test_results_from_before_fingerprints_open_and_are_joined_as_one_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for number in (1, 2, 3):
        folder = stored(tmp_path / str(number), number)
        plan = json.loads((folder / "plan.json").read_text())
        plan.pop("extended")
        (folder / "plan.json").write_text(json.dumps(plan))
        (folder / "environment.json").write_text('{"machine": {"cpu": "AMD EPYC", "kernel": "6.18"}}')
        lines = (folder / "journal.jsonl").read_text().replace(', "boot": ""', "").replace(',"boot":""', "")
        assert "boot" not in lines
        (folder / "journal.jsonl").write_text(lines)
    assert (
        cli.main(["merge", *(str(tmp_path / str(number)) for number in (1, 2, 3)), "--out", str(tmp_path / "o")]) == 0
    )
    said = told(capsys.readouterr().out)
    assert "further runs like the 3 measured, on this machine" in said
    assert "A: AMD EPYC, 6.18" in said


def test_what_is_merged_can_be_merged_again(three: list[Path], tmp_path: Path):
    cli.main(["merge", *map(str, three[:2]), "--out", str(tmp_path / "two")])
    assert cli.main(["merge", str(tmp_path / "two"), str(three[2]), "--out", str(tmp_path / "all")]) == 0
    assert [each.name for each in several_runs.members(tmp_path / "all")] == ["01", "02", "03"]


def test_the_same_run_twice_is_refused(three: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    cli.main(["merge", *map(str, three[:2]), "--out", str(tmp_path / "two")])
    assert cli.main(["merge", str(three[0]), str(tmp_path / "two"), "--out", str(tmp_path / "all")]) == 2
    assert "is the same run as" in capsys.readouterr().err


def test_a_link_of_another_rate_is_told_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one, other = stored(tmp_path / "a", 1), stored(tmp_path / "b", 2, rate="500 Mbit/s")
    assert cli.main(["merge", str(one), str(other), "--out", str(tmp_path / "out")]) == 2
    assert "link gigabit" in capsys.readouterr().err


def test_a_study_is_not_repeated_into_a_folder_with_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "notes").touch()
    assert cli.main(["repeat", "quick", "--sessions", "2", "--out", str(tmp_path)]) == 2
    assert "holds no sessions" in capsys.readouterr().err


def test_a_folder_without_a_session_that_ended_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    several_runs.note(tmp_path, [])
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "no session that has ended" in capsys.readouterr().err


def test_a_pause_is_a_duration(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["repeat", "quick", "--sessions", "2", "--pause", "soon"]) == 2
    assert "--pause soon" in capsys.readouterr().err


def test_a_session_that_was_cut_off_is_gone_on_with_first(tmp_path: Path):
    study = Study(workloads=(TCP,), stop_after=5)
    with pytest.raises(StoreError, match="not finished") as caught:
        _done(write(study.results(), tmp_path / "01"))
    assert "run --resume" in caught.value.hint
    assert not _done(tmp_path / "02")


@pytest.fixture
def first(tmp_path: Path) -> tuple[Asked, Path]:
    """A study, and a folder whose first session has its inputs and a plan of eight blocks and seed 4."""
    asked = load_study("mesh-vpns", Files.standard(), catalogue(), blocks=8, seed=4)
    place = several_runs.place(tmp_path, 1)
    info = replace(Study(blocks=8, seed=4).results().plan, study="mesh-vpns", replacements=2)
    place.mkdir(parents=True)
    store.write_plan(place, info)
    save_inputs(asked, place / "inputs")
    return asked, tmp_path


def test_further_sessions_are_the_first_one_with_another_seed(first: tuple[Asked, Path]):
    asked, folder = first
    third = _like_the_first(asked, folder, 3)
    assert (third.seed, third.blocks) == (6, 8)
    assert third.arms == asked.arms
    assert third.profiles == asked.profiles


def test_another_study_is_not_a_further_session(first: tuple[Asked, Path]):
    asked, folder = first
    with pytest.raises(UsageError, match="sessions of mesh-vpns, not of quick"):
        _like_the_first(replace(asked, name="quick"), folder, 2)


def test_a_rate_that_is_stated_is_that_of_every_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.toml").write_text(study_text(profiles=("auto",), settings="blocks = 1"))
    rates = []

    def measured(study: Asked, place: Path, options: RunOptions, *, named: bool) -> int:
        fixed = link_capacities.stated(study, options.rate)
        rates.append(fixed.profiles[0].rate)
        found = Study(workloads=(TCP,), seed=fixed.seed).results()
        save_inputs(fixed, write(replace(found, plan=replace(found.plan, study="mine")), place) / "inputs")
        return 0

    monkeypatch.setattr(repeat, "study_of", measured)
    monkeypatch.setattr(repeat, "show_merged", lambda *_: 0)
    asked = ["repeat", str(tmp_path / "mine.toml"), "--sessions", "2", "--out", str(tmp_path / "out")]
    assert cli.main([*asked, "--rate", "200 Mbit/s"]) == 0
    assert rates == [200_000_000, 200_000_000]


NEW = ("--blocks=3", "--seed=1", "--smoke", "--full", "--rate=1 Gbit/s", "--watch=none", "--profile-stacks")
PARTS = ("--arm=openvpn", "--profile=gigabit", "--topology=chain-1", "--workload=tcp")


@pytest.mark.parametrize("option", [*NEW, "--no-repeat", *PARTS])
def test_what_only_the_first_session_could_have_is_refused_when_it_is_there(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    stored(several_runs.place(tmp_path, 1), 1)
    several_runs.note(tmp_path, [several_runs.Member("01")])
    assert cli.main(["repeat", "cascade", "--sessions", "2", "--out", str(tmp_path), option]) == 2
    said = told(capsys.readouterr().err)
    assert f"{option.partition('=')[0]} would change nothing" in said and "choose another folder" in said
