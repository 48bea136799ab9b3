"""`lab logs` and what the shell completes of labs, from the files that labs leave."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import click
import pytest

from tunnelmark.cli import command as cli
from tunnelmark.cli import lab_completion, lab_states
from tunnelmark.cli.lab_commands import logs


@pytest.fixture(autouse=True)
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tunnelmark"  # root's, and that of any other user
    folder.mkdir()
    monkeypatch.setattr(lab_states, "STATES", folder)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return folder


def failed(states: Path, name: str = "lab") -> None:
    (states / f"{name}.failed").mkdir()
    for one in ("a.tincd", "b.tincd", "b.tinc-up.sh"):
        (states / f"{name}.failed" / f"daemon.{one}.log").write_text(f"{one} said this\n")


def completed(kind: click.ParamType[str], incomplete: str = "", **params: str) -> list[str]:
    context = click.Context(logs)
    context.params = dict(params)
    return [item.value for item in kind.shell_complete(context, logs.params[0], incomplete)]


def test_logs_are_found_by_node_and_daemon(states: Path) -> None:
    failed(states)
    found = lab_states.logs_in(states / "lab.failed")
    assert {node: list(daemons) for node, daemons in found.items()} == {"a": ["tincd"], "b": ["tinc-up.sh", "tincd"]}


def test_the_logs_of_a_lab_that_failed_are_shown(states: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed(states)
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda program, argv: ran.append([program, *argv]))
    assert cli.main(["lab", "logs", "b", "tincd"]) == 0
    assert ran == [["tail", "tail", "--lines=+1", "--", str(states / "lab.failed" / "daemon.b.tincd.log")]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bb"], "there is no node called 'bb'"),
        (["b", "tinc"], "there is no daemon called 'tinc'"),
        (["b", "--name", "other"], "no lab called 'other' is up"),
    ],
)
def test_a_wrong_name_is_said(
    arguments: list[str], said: str, states: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed(states)
    assert cli.main(["lab", "logs", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_names_complete(states: Path) -> None:
    failed(states)
    failed(states, "other")
    (states / "up.json").write_text(json.dumps({"nodes": {"left": {}, "right": {}}}))
    assert completed(lab_completion.LAB) == ["lab", "other", "up"]
    assert completed(lab_completion.NODE) == ["a", "b"]
    assert completed(lab_completion.NODE, "r", name="up") == ["right"]
    assert completed(lab_completion.PROGRAM, name="other", node="b") == ["tinc-up.sh", "tincd"]
    assert completed(lab_completion.PROGRAM, node="nobody") == []


def test_a_lab_that_was_lost_is_said_until_it_is_taken_down(states: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = lab_states.own("lab")
    files.logs.mkdir()
    (files.logs / "daemon.a.tincd.log").write_text("its last words\n")
    lab_states.keep_lost(files, "host h2 burned down")
    assert completed(lab_completion.LAB) == ["lab"] and completed(lab_completion.NODE) == ["a"]
    for arguments in (["exec", "a", "true"], ["down"]):
        assert cli.main(["lab", *arguments]) == 2
        assert "the lab 'lab' is gone: host h2 burned down" in capsys.readouterr().err
    assert cli.main(["lab", "down"]) == 2
    assert "no lab called 'lab' is up" in capsys.readouterr().err
    assert list(lab_states.logs_in(files.kept)) == ["a"], "its logs stay"


def test_the_logs_of_a_lab_that_was_lost_come_behind_the_reason(
    states: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed(states)
    lab_states.keep_lost(lab_states.own("lab"), "host h2 burned down")
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda _, argv: ran.append(argv))
    assert cli.main(["lab", "logs", "a", "--follow"]) == 0
    assert "host h2 burned down" in capsys.readouterr().err
    assert ran == [["tail", "--lines=+1", "--", str(states / "lab.failed" / "daemon.a.tincd.log")]]


def test_a_user_who_is_not_root_has_own_labs_and_sees_those_of_root(
    states: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "mine"))
    failed(states)
    assert lab_states.own("lab").folder == tmp_path / "mine" / "tunnelmark"
    assert lab_states.files_of("lab").kept == states / "lab.failed"
    lab_states.own("lab").kept.mkdir(parents=True)
    assert lab_states.files_of("lab") == lab_states.own("lab"), "their own first"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert lab_states.own("lab").folder == tmp_path / "cache" / "tunnelmark" / "labs"


@pytest.mark.parametrize("arguments", [["up"], ["down"], ["logs", "a"], ["exec"]])
@pytest.mark.parametrize("name", ["a/b", "../../x", ""])
def test_a_lab_s_name_leads_nowhere_else(
    arguments: list[str],
    name: str,
    states: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a lab was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    before = sorted(states.parent.rglob("*"))
    node = ["a", "true"] if arguments == ["exec"] else []
    assert cli.main(["lab", *arguments, "--name", name, *node]) == 2
    said = capsys.readouterr().err
    assert "cannot be the name of a lab" in said and "lower-case letters" in said
    assert sorted(states.parent.rglob("*")) == before
