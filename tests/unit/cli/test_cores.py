"""The option that lets cores sleep: there on every command that makes a lab by itself, and told to whoever makes it."""

import os

import click
import pytest
from click.testing import CliRunner

from tunnelmark.cli import cores, lab, prove, run
from tunnelmark.lab.awake import VARIABLE


@pytest.mark.parametrize("command", [run.run, run.compare, prove.prove_link, lab.up])
def test_commands_that_make_a_lab_have_it(command: click.Command):
    assert cores.OPTION in CliRunner().invoke(command, ["--help"]).output


@pytest.mark.parametrize(("given", "told"), [([cores.OPTION], "1"), ([], None)])
def test_whoever_makes_the_lab_is_told(monkeypatch: pytest.MonkeyPatch, given: list[str], told: str | None):
    monkeypatch.setenv(VARIABLE, "x")  # so that it is as before afterwards
    monkeypatch.delenv(VARIABLE)

    @click.command()
    @cores.option
    def command() -> None:
        click.echo(repr(os.environ.get(VARIABLE)))

    assert CliRunner().invoke(command, given).output == f"{told!r}\n"
