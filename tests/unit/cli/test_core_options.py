"""The option that lets cores sleep: there on every command that makes a lab by itself, and told to whoever makes it."""

import os

import click
import pytest
from click.testing import CliRunner

from tunnelmark.cli import core_options, lab_commands, link_command, run
from tunnelmark.host.keep_awake import VARIABLE


@pytest.mark.parametrize("command", [run.run, run.compare, link_command.check_link, lab_commands.up])
def test_commands_that_make_a_lab_have_it(command: click.Command):
    assert core_options.OPTION in CliRunner().invoke(command, ["--help"]).output


@pytest.mark.parametrize(("given", "told"), [([core_options.OPTION], "1"), ([], None)])
def test_whoever_makes_the_lab_is_told(monkeypatch: pytest.MonkeyPatch, given: list[str], told: str | None):
    monkeypatch.setenv(VARIABLE, "x")  # so that it is as before afterwards
    monkeypatch.delenv(VARIABLE)

    @click.command()
    @core_options.option
    def command() -> None:
        click.echo(repr(os.environ.get(VARIABLE)))

    assert CliRunner().invoke(command, given).output == f"{told!r}\n"
