"""`--bin NAME=PATH`: which program is found, what is refused, and that nothing stays behind, killed or not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunnelmark.cli import binary_overrides
from tunnelmark.cli import command as cli
from tunnelmark.host import programs
from tunnelmark.host.programs import NAMED_VARIABLE, Requirement

TOP = Path(__file__).parents[3]


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The cache, below the test's folder; what the command did to its environment is undone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(NAMED_VARIABLE, raising=False)
    yield tmp_path / "cache" / "tunnelmark" / "bin"
    os.environ.pop(NAMED_VARIABLE, None)
    while binary_overrides._held:
        os.close(binary_overrides._held.pop())


def script(folder: Path, name: str, text: str = "echo mine") -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def gone(folder: Path) -> bool:
    deadline = time.monotonic() + 30
    while any(folder.iterdir()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_named_program_stands_before_all_others(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = script(tmp_path, "other-name", "echo tinc version 9.9")
    assert cli.main(["list", "vpns", "--bin", f"tincd={mine}"]) == 0
    assert "9.9" in capsys.readouterr().out
    assert programs.find("tincd").resolve() == mine
    os.close(binary_overrides._held.pop())
    assert gone(cache)


def test_a_build_that_must_be_its_own_is_not_replaced(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNNELMARK_PACKAGES", str(tmp_path / "home"))
    own = tmp_path / "home" / "nebula-1.10" / "bin"
    own.mkdir(parents=True)
    script(own, "nebula")
    binary_overrides._name(None, None, (f"nebula={script(tmp_path, 'nebula')}",))  # type: ignore[arg-type]
    strict = Requirement("nebula 1.10", ("nebula",), (), recipe="nebula-1.10", strict=True)
    assert programs.require(strict)["nebula"] == own / "nebula"
    assert programs.find("nebula") != own / "nebula"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("tincd", "is not NAME=PATH"),
        ("a/b=/bin/sh", "is not NAME=PATH"),
        ("tincd=/no/such/file", "there is no file"),
        (f"tincd={TOP / 'README.md'}", "cannot be executed"),
        ("tincdd=/bin/sh", "did you mean tincd"),
        ("no-such-program-at-all=/bin/sh", "known: "),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_runs(
    value: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["list", "vpns", "--bin", value]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert "hint: " in said


def test_a_program_is_named_once(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = [f"tincd={script(tmp_path, name)}" for name in ("one", "other")]
    assert cli.main(["list", "vpns", "--bin", twice[0], "--bin", twice[1]]) == 2
    assert "--bin names tincd twice" in capsys.readouterr().err
    assert NAMED_VARIABLE not in os.environ


@pytest.mark.parametrize("name", ["nebula-cert", "zerotier-one", "iperf3", "vegeta", "ip", "wg"])
def test_programs_of_vpns_workloads_recipes_and_tools_can_be_named(name: str, cache: Path, tmp_path: Path) -> None:
    mine = script(tmp_path, name)
    binary_overrides._name(None, None, (f"{name}={mine}",))  # type: ignore[arg-type]
    assert programs.find(name).resolve() == mine


def test_the_folder_goes_when_the_command_is_killed(cache: Path, tmp_path: Path) -> None:
    mine = script(tmp_path, "mine")
    code = (
        "import time; from tunnelmark.cli import binary_overrides\n"
        f"binary_overrides._name(None, None, ('tincd={mine}',)); print('ready', flush=True); time.sleep(60)"
    )
    command = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert command.stdout is not None
    assert command.stdout.readline() == b"ready\n"
    [folder] = cache.iterdir()
    assert (folder / "tincd").resolve() == mine
    command.kill()
    command.wait()
    assert gone(cache)


def test_a_folder_whose_janitor_was_killed_too_is_swept(cache: Path, tmp_path: Path) -> None:
    stale = cache / "4194305-abcdef"  # more than the highest process number (proc(5), pid_max)
    stale.mkdir(parents=True)
    script(stale, "old")
    binary_overrides._name(None, None, (f"tincd={script(tmp_path, 'mine')}",))  # type: ignore[arg-type]
    assert not stale.exists()
    assert len(list(cache.iterdir())) == 1
