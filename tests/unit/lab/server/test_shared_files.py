"""What nodes must see of a user's folders, wherever these stand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tunnelmark.lab.server import shared_files


def test_only_what_is_below_a_hidden_folder_is_named(tmp_path: Path) -> None:
    for name in ("hidden/clone/.venv", "hidden/clone/target", "hidden-not/clone", "seen"):
        (tmp_path / name).mkdir(parents=True)
    hidden = str(tmp_path / "hidden")
    wanted = [hidden, f"{hidden}/clone/target", f"{hidden}/gone", f"{tmp_path}/hidden-not/clone", f"{tmp_path}/seen"]
    assert shared_files.below([*wanted, f"{hidden}/clone/.venv"], [hidden]) == (
        f"{hidden}/clone/.venv",
        f"{hidden}/clone/target",
    )


def test_what_is_inside_another_place_is_not_named_again(tmp_path: Path) -> None:
    (tmp_path / "clone" / "target" / "release").mkdir(parents=True)
    (tmp_path / "clone-2").mkdir()
    wanted = [str(tmp_path / name) for name in ("clone/target/release", "clone-2", "clone")]
    assert shared_files.below(wanted, [str(tmp_path)]) == (f"{tmp_path}/clone", f"{tmp_path}/clone-2")


def test_a_place_behind_a_link_is_named_as_it_is_called_and_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "hidden" / "real").mkdir(parents=True)
    (tmp_path / "hidden" / "name").symlink_to("real")
    (tmp_path / "home").symlink_to(tmp_path / "hidden" / "real")
    hidden = [str(tmp_path / "hidden")]
    assert shared_files.below([f"{tmp_path}/home"], hidden) == (f"{hidden[0]}/real",)
    assert shared_files.below([f"{hidden[0]}/name"], hidden) == (f"{hidden[0]}/name", f"{hidden[0]}/real")


@pytest.mark.parametrize(
    "variable", ["TUNNELMARK_PATH", "TUNNELMARK_BIN", "TUNNELMARK_EMULATOR", "PATH", "TUNNELMARK_PACKAGES"]
)
def test_what_the_environment_names_is_needed(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "with a space"))
    assert str(tmp_path / "with a space") in shared_files.needed()


def test_the_caches_and_the_packages_of_whoever_called_sudo_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TUNNELMARK_PACKAGES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SUDO_USER", "nobody")
    needed = shared_files.needed()
    assert f"{tmp_path}/tunnelmark" in needed
    assert os.path.expanduser("~nobody/.local/share/tunnelmark/packages") in needed


def test_a_program_that_is_a_link_into_a_hidden_folder_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "build").write_text("")
    (tmp_path / "bin" / "vpn").symlink_to(tmp_path / "build")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert str(tmp_path / "build") in shared_files.needed()


def test_every_link_of_the_interpreter_s_chain_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "one"))
    assert {str(tmp_path / "one"), str(tmp_path / "two")} <= set(shared_files.needed())


def test_where_the_command_was_called_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert str(tmp_path) not in shared_files.needed()
