"""The command itself: help, exit codes, how errors are shown, how fast it starts, what the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from tunnelmark.cli import command as cli
from tunnelmark.errors import DaemonDied, MissingPart, TunnelmarkError
from tunnelmark.plan.files import PATH_VARIABLE

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
HEAVY = {"numpy", "scipy", "pydantic", "pyarrow", "matplotlib", "rich", "jinja2", "pyroute2", "cryptography"}


def complete(arguments: Sequence[str], incomplete: str) -> list[str]:
    completer = ShellComplete(cli.tunnelmark, {}, "tunnelmark", "_TUNNELMARK_COMPLETE")
    return [item.value for item in completer.get_completions(list(arguments), incomplete)]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in cli._COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from tunnelmark.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_command_can_be_imported_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert f"Usage: tunnelmark {name}" in capsys.readouterr().out


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == "tunnelmark, version 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["rnu"], "there is no command called 'rnu'", "did you mean run?"),
        (["list", "vpn"], "there is no command called 'vpn'", "did you mean vpns?"),
        (["doctor", "--jsn"], "there is no option --jsn", "did you mean --json?"),
        (["--nonsense"], "there is no option --nonsense", "see `tunnelmark --help`"),
        (["new", "vpn"], "missing argument 'NAME'", "see `tunnelmark new vpn --help`"),
        (["completion", "tcsh"], "'tcsh'", "see `tunnelmark completion --help`"),
    ],
)
def test_wrong_use_is_exit_2_with_an_error_and_a_hint(
    arguments: list[str], error: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    out, said = capsys.readouterr()
    assert not out
    first, second = said.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert second.startswith("hint: ")
    assert hint in second


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli.tunnelmark, "main", fail)
    return cli.main([])


@pytest.mark.parametrize(("error", "code"), [(MissingPart("m", hint="h"), 2), (DaemonDied("m", hint="h"), 1)])
def test_our_own_errors_carry_their_exit_code(
    error: TunnelmarkError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error, monkeypatch) == code
    assert capsys.readouterr().err == "error: m\nhint: h\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_stopped_from_the_keyboard_is_130(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raising(error, monkeypatch) == 130


def test_a_mistake_of_ours_is_not_hidden_and_has_no_other_answer_s_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it was, it ended with 1, which `ab` says of a slower build."""
    assert raising(ZeroDivisionError("a defect"), monkeypatch) == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError: a defect" in said and "error: this is a defect of tunnelmark itself" in said


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (1, 1), (2, 2)])
def test_what_a_command_returns_is_the_exit_code(
    result: int | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli.tunnelmark, "main", lambda *_, **__: result)
    assert cli.main([]) == code


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "import sys; from tunnelmark.cli import main; sys.exit(main(['list', 'profiles', '--json']))"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_commands_complete() -> None:
    assert complete([], "") == list(cli._COMMANDS)
    assert complete([], "do") == ["doctor"]
    assert "--version" in complete([], "--")


def test_subcommands_and_choices_complete() -> None:
    assert complete(["list"], "p") == ["profiles"]
    assert sorted(complete(["new"], "")) == ["ab-workflow", "profile", "topology", "vpn", "workload"]
    assert complete(["new", "vpn", "--like"], "") == ["wireguard-go", "openvpn"]
    assert complete(["ab", "wireguard-go", "--old"], "wireguard-go-202") == [
        "wireguard-go-2022",
        "wireguard-go-2023",
        "wireguard-go-2026",
    ]
    assert complete(["completion"], "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize(
    ("name", "begin", "expected"),
    [
        ("VPN", "dir", "direct"),
        ("WORKLOAD", "pi", "ping"),
        ("STUDY", "qu", "quick"),
        ("PROFILE", "giga", "gigabit"),
        ("TOPOLOGY", "pair-", "pair-jumbo"),
    ],
)
def test_names_complete(name: str, begin: str, expected: str) -> None:
    from tunnelmark.cli import param_types

    command = click.Command("x", params=[click.Argument(["name"], type=getattr(param_types, name))])
    completer = ShellComplete(command, {}, "x", "_X_COMPLETE")
    assert [item.value for item in completer.get_completions([], begin)] == [expected]


def test_a_study_may_be_a_path() -> None:
    from tunnelmark.cli.param_types import STUDY

    command = click.Command("x", params=[click.Argument(["name"], type=STUDY)])
    completer = ShellComplete(command, {}, "x", "_X_COMPLETE")
    assert [item.type for item in completer.get_completions([], "./mine")] == ["file"]


@pytest.mark.parametrize("arguments", [["compare", "tinc", "--profile"], ["lab", "up", "--profile"], ["check-link"]])
def test_the_last_of_joined_profiles_completes_and_a_file_is_one_too(arguments: list[str]) -> None:
    assert complete(arguments, "wifi-good+giga") == ["wifi-good+gigabit"]
    completer = ShellComplete(cli.tunnelmark, {}, "tunnelmark", "_TUNNELMARK_COMPLETE")
    assert [item.type for item in completer.get_completions(arguments, "./pro")] == ["file"]


@pytest.mark.parametrize(
    ("option", "begun", "expected"),
    [
        ("--arm", "netbird-", ["netbird-turn"]),
        ("--profile", "edge-delay-2", ["edge-delay-250+gigabit"]),
        ("--topology", "lan", ["lan-relay"]),
        ("--workload", "kube", ["kube-api"]),
    ],
)
def test_parts_of_the_study_that_is_named_are_completed(option: str, begun: str, expected: list[str]) -> None:
    assert complete(["run", "edge-cloud", option], begun) == expected
    assert complete(["run", option], begun) == []
    assert complete(["run", "edge-clod", option], begun) == []


@pytest.mark.parametrize("arguments", [["report"], ["run", "--resume"]])
def test_results_complete_the_newest_first_by_path_and_by_name(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for age, name in enumerate(("compare-2", "compare-1", "quick-1")):
        journal = tmp_path / "results" / name / "journal.jsonl"
        journal.parent.mkdir(parents=True)
        journal.touch()
        os.utime(journal, (1000 - age, 1000 - age))
    (tmp_path / "results" / "compare-none").mkdir()
    assert complete(arguments, "") == ["results/compare-2", "results/compare-1", "results/quick-1"]
    assert complete(arguments, "results/com") == ["results/compare-2", "results/compare-1"]
    assert complete(arguments, "qu") == ["results/quick-1"]
    completer = ShellComplete(cli.tunnelmark, {}, "tunnelmark", "_TUNNELMARK_COMPLETE")
    assert [item.type for item in completer.get_completions(arguments, "elsewhere/")] == ["dir"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_for_our_name(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    assert "_TUNNELMARK_COMPLETE" in capsys.readouterr().out


def test_a_broken_extra_file_does_not_break_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tunnelmark import registry
    from tunnelmark.cli.param_types import VPN

    (tmp_path / "vpns").mkdir()
    (tmp_path / "vpns" / "mine.py").write_text("DRIVER = oops")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    registry.vpns.cache_clear()
    command = click.Command("x", params=[click.Argument(["name"], type=VPN)])
    completed = [item.value for item in ShellComplete(command, {}, "x", "_X_COMPLETE").get_completions([], "tin")]
    assert "tinc" in completed
    registry.vpns.cache_clear()


def test_a_broken_extra_file_stops_only_who_asks_for_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tunnelmark import registry

    (tmp_path / "vpns").mkdir()
    (tmp_path / "vpns" / "mine.py").write_text('NAME = "ours"\ndef broken(:')
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    monkeypatch.setattr(registry, "_broken", {})
    registry.vpns.cache_clear()
    assert cli.main(["compare", "tinc", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert "tinc" in said.out
    assert said.err.startswith("warning: ") and "mine.py" in said.err and "SyntaxError" in said.err
    for name in ("ours", "mine"):
        assert cli.main(["compare", name, "--dry-run"]) == 2
        said = capsys.readouterr()
        assert said.err.startswith("error: ") and "mine.py" in said.err and "SyntaxError" in said.err
    registry.vpns.cache_clear()
