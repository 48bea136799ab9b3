"""What a build needs beside its own registry: said before it begins, and brought by apt where there is one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tunnelmark.packages import toolchains
from tunnelmark.packages.recipe import Recipe, load

CRATE = """
[recipe]
title = "x"
homepage = "https://example.org"
version = "1.0"
programs = ["one"]

[[crate]]
name = "one"
version = "1.0"
sha256 = "{hash}"
packages = ["libnobody-dev"]
"""


@pytest.fixture
def crate(tmp_path: Path) -> Recipe:
    file = tmp_path / "one.toml"
    file.write_text(CRATE.format(hash="0" * 64))
    return load(file)


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all there is to PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(toolchains, "build_path", lambda: str(folder))
    return folder


def program(folder: Path, name: str, text: str = "exit 0") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg")
def test_a_library_that_is_not_installed_is_lacking(crate: Recipe, only: Path) -> None:
    program(only, "dpkg-query")
    program(only, "cc")
    assert toolchains.lacking(crate) == ("libnobody-dev",)


def test_a_compiler_is_lacking_where_there_is_no_cc(crate: Recipe, only: Path) -> None:
    assert toolchains.lacking(crate) == ("gcc", "libc6-dev")
    program(only, "cc")
    assert toolchains.lacking(crate) == ()


def test_what_apt_can_bring_is_no_obstacle(crate: Recipe, only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchains, "_first_version", lambda *_: "1.95")
    why, hint = toolchains.obstacle(crate)
    assert why == "needs gcc, libc6-dev to be built, for which it needs apt-get"
    assert hint.startswith("apt-get install gcc")
    program(only, "apt-get")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert toolchains.obstacle(crate) == ("", "")
