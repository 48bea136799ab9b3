"""`lab logs` and what the shell completes of labs, from the files that labs leave."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from tunnelmark.cli import command as cli
from tunnelmark.cli import lab_completion, lab_states
from tunnelmark.cli.lab_commands import logs


@pytest.fixture(autouse=True)
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lab_states, "STATES", tmp_path)
    return tmp_path


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
