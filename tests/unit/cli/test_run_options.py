"""What `run`, `compare` and `repeat` share on their command lines becomes one object, with the same meaning in each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tunnelmark import cli
from tunnelmark.cli import binary_overrides, run_options
from tunnelmark.cli.enough_options import Asked
from tunnelmark.cli.run_options import LengthOptions, RunOptions
from tunnelmark.host.keep_awake import VARIABLE
from tunnelmark.host.programs import NAMED_VARIABLE
from tunnelmark.plan.enough import Enough
from tunnelmark.units import Share

HOSTS = [(1, "h1"), (2, "h2")]


def stated(*arguments: str, several: bool = False) -> tuple[RunOptions, LengthOptions]:
    """What a command with these options is given."""
    found: list[tuple[RunOptions, LengthOptions]] = []

    @click.command()
    @run_options.length(blocks="", seed="")
    @run_options.options(several=several)
    def command(options: RunOptions, length: LengthOptions) -> None:
        found.append((options, length))

    done = CliRunner().invoke(command, arguments, env={"TUNNELMARK_MEASURE": "", "TUNNELMARK_NO_WAIT": ""})
    assert done.exit_code == 0, done.output
    return found[0]


@pytest.mark.parametrize("several", [False, True])
def test_without_options_nothing_is_changed(several: bool):
    assert stated(several=several) == (RunOptions(), LengthOptions())


@pytest.mark.parametrize("several", [False, True])
def test_each_option_is_where_it_is_asked_for(several: bool):
    options, length = stated(
        *("--blocks", "3", "--seed", "9", "--smoke", "--full", "--watch", "cpu", "--watch", "tcp"),
        *("--profile-stacks", "--no-repeat", "--no-wait", "--no-measure"),
        several=several,
    )
    assert length == LengthOptions(3, 9, smoke=True, full=True)
    assert options.watched() == ("cpu", "tcp")
    assert (options.profile_stacks, options.repeat, options.wait, options.measure_first) == (True, False, False, False)


def test_one_run_has_a_backend_a_precision_and_json():
    options, _ = stated("--backend", "vm", "--kernel", "6.12", "--precision", "5%", "--json", "--dry-run")
    assert options.placed().guests == ("6.12",)
    assert options.enough.precision == Share.parse("5 %")
    assert options.json and options.dry_run


def test_several_runs_have_none_of_them():
    with pytest.raises(AssertionError, match="No such option"):
        stated("--json", several=True)


def test_what_is_watched_and_repeated_is_a_matter_of_the_study():
    from tunnelmark import registry
    from tunnelmark.plan.files import Files
    from tunnelmark.plan.load import STACKS, load_study

    study = load_study("quick", Files.standard(), registry.catalogue())
    assert RunOptions().of(study) == study
    assert STACKS in RunOptions(profile_stacks=True).of(study).watch
    assert RunOptions(repeat=False).of(study).attempts == 1
    asked = RunOptions(enough=Asked(precision=Share.parse("5 %"))).enough.of(study, blocks_stated=False)
    assert isinstance(asked.enough, Enough)


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """What the options leave in the environment and the cache is undone; a folder with files that name hosts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in (NAMED_VARIABLE, VARIABLE):
        monkeypatch.setenv(variable, "")
    (tmp_path / "hosts.txt").write_text("lab1\n")
    hosts = [{"name": name, "ssh": name, "address": f"192.0.2.{place}", "interface": "eth1"} for place, name in HOSTS]
    tables = ("".join(f"{key} = {json.dumps(value)}\n" for key, value in host.items()) for host in hosts)
    (tmp_path / "hosts.toml").write_text("".join(f"[[hosts]]\n{table}" for table in tables))
    yield tmp_path
    while binary_overrides._held:
        os.close(binary_overrides._held.pop())


OVER_HOSTS, ON_HOSTS = ("--hosts", "hosts.txt"), ("--backend", "ssh", "--inventory", "hosts.toml")


@pytest.mark.parametrize("command", [("run", "quick"), ("compare", "tinc")])
@pytest.mark.parametrize(
    ("where", "option", "why"),
    [
        (OVER_HOSTS, ("--bin", "sh=/bin/sh"), "these blocks are measured on others"),
        (OVER_HOSTS, ("--let-cores-sleep",), "these blocks are measured on others"),
        (("--cluster", "tcp://127.0.0.1:9"), ("--bin", "sh=/bin/sh"), "these blocks are measured on others"),
        (ON_HOSTS, ("--bin", "sh=/bin/sh"), "these nodes run on other hosts"),
        (ON_HOSTS, ("--no-wait",), "these nodes run on other hosts"),
        (("--local", "1"), ("--bin", "sh=/bin/sh"), "begin blocks by sudo"),
    ],
)
def test_options_that_other_machines_do_not_hear_of_are_refused(
    command: tuple[str, ...],
    where: tuple[str, ...],
    option: tuple[str, ...],
    why: str,
    clean: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(clean)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.main([*command, *where, *option, "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert f"{option[0]} is for a lab on this machine, and " in said and why in said and "hint: " in said


@pytest.mark.parametrize(
    "arguments", [("--local", "1", "--bin", "sh=/bin/sh"), (*OVER_HOSTS, "--no-wait"), ("--bin", "sh=/bin/sh")]
)
def test_options_that_are_heard_of_are_taken(
    arguments: tuple[str, ...], clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clean)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cli.main(["run", "quick", *arguments, "--dry-run"]) == 0
