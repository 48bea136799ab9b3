"""Who lacks root is told how this machine gives it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tunnelmark.cli import command as cli
from tunnelmark.errors import MissingPart
from tunnelmark.host import privileges


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(("there", "words"), [("/usr/bin/sudo", "run it again with sudo"), (None, "there is no sudo")])
def test_the_hint_fits_the_machine(there: str | None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: there)
    with pytest.raises(MissingPart, match="it makes labs and needs root") as caught:
        privileges.require("it makes labs")
    assert words in caught.value.hint


def test_root_is_asked_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    privileges.require("it makes labs")


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    "arguments", [["run", "quick"], ["compare", "tinc"], ["lab", "up"], ["packages", "verify", "tinc"]]
)
def test_nothing_is_printed_or_made_before(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "needs root" in said.err and "sudo" in said.err
    assert not list(tmp_path.iterdir())
