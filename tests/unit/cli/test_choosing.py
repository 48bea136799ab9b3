"""Profiles and topologies on the command line: several conditions, files by their path, and nothing taken in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunnelmark.cli import command as cli
from tunnelmark.cli import report_server
from tunnelmark.vpns.feature_matrix import CRITERIA
from unit.builders import PING, Study
from unit.stored import write

PROFILE = '[profile]\ntitle = "T"\nsource = "S"\nrate = "20 Mbit/s"\nqueue = "64 KiB"\n'
DRY = ("--workload", "ping", "--blocks", "1", "--dry-run")


def links(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The links of the trials that a comparison would run, without repetition, sorted."""
    assert cli.main(["compare", "tinc", *arguments, *DRY]) == 0
    lines = capsys.readouterr().out.splitlines()
    return sorted({line.split(" · ")[1] for line in lines if " · " in line})


def test_a_profile_that_is_given_twice_is_two_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    assert links(["--profile", "vdsl", "--profile", "wifi-good+gigabit"], capsys) == ["vdsl", "wifi-good+gigabit"]


def test_without_one_the_link_is_a_gigabit(capsys: pytest.CaptureFixture[str]) -> None:
    assert links([], capsys) == ["gigabit"]


def test_a_profile_may_be_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("profiles").mkdir()
    Path("profiles/my-dsl.toml").write_text(PROFILE)
    assert links(["--profile", "./profiles/my-dsl.toml"], capsys) == ["my-dsl"]
    assert links(["--profile", "./profiles/my-dsl.toml", "--profile", "gigabit"], capsys) == ["gigabit", "my-dsl"]
    assert cli.main(["compare", "tinc", "--profile", "my-dsl", *DRY]) == 2
    assert "./profiles/my-dsl.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["lab", "up", "--profile", "vdsl", "--profile", "lan"],
        ["compare", "tinc", "--topology", "pair", "--topology", "lan-3"],
        ["check-link", "lan", "--topology", "pair", "--topology", "lan-3"],
    ],
)
def test_what_there_is_one_of_is_refused_twice(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert "is given 2 times" in capsys.readouterr().err


def test_a_profile_without_a_source_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[profile]\ntitle = "T"\n')
    assert cli.main(["compare", "tinc", "--profile", str(file), *DRY]) == 2
    said = capsys.readouterr().err
    assert said.count("where the figures come from") == 1


def test_of_several_mistakes_each_is_told_once_with_what_would_be_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[profile]\ntitle = "T"\ndelay = 5\n')
    assert cli.main(["compare", "tinc", "--profile", str(file), *DRY]) == 2
    said = capsys.readouterr().err
    assert said.count("where the figures come from") == 1
    assert said.count("'10 ms'") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--json", "--export", "csv"], "--json prints, and --export writes"),
        (["--serve", "--show", "links"], "--show is for the tables of one run"),
    ],
)
def test_options_of_which_one_would_do_nothing_are_refused(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(report_server, "serve", lambda *_: None)  # which ends when it is stopped
    folder = write(Study(arms=("direct", "tinc"), workloads=(PING,)).results(), tmp_path / "run")
    assert cli.main(["report", str(folder), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_group_of_the_matrix_is_all_that_programs_get_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["matrix", "tinc", "--group", "choosing", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    groups = {criterion.key: criterion.group for criterion in CRITERIA}
    assert {groups[key] for key in row["cells"]} == {"choosing"}
