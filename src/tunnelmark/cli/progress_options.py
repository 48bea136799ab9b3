"""The options `--quiet` and `--progress` of `run`, `compare` and `repeat`: what is shown while a study runs, and to whom."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args

import click
from rich.console import Console

from tunnelmark.cli import output
from tunnelmark.cli.live_view import LiveView
from tunnelmark.cli.progress_views import JsonView, LineView, ProgressView
from tunnelmark.errors import UsageError

Shown = Literal["auto", "lines", "json"]
"""`auto`: a live view on a terminal, lines elsewhere. `lines`: a line for each trial. `json`: an event a line, on standard output."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def options(command: _Command) -> _Command:
    """Adds `--quiet` and `--progress` to a command."""
    command = click.option(
        "--progress",
        type=click.Choice(get_args(Shown)),
        default="auto",
        help="What is shown meanwhile: a live view on a terminal and lines elsewhere (auto), lines, or JSON objects, "
        "one a line, on standard output [auto].",
    )(command)
    return click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors and the path of the results.")(
        command
    )


def console(*, quiet: bool, progress: Shown, json: bool) -> Console:
    """Where text for people goes: nowhere, to standard error where standard output is for programs, else to standard output."""
    if json and progress == "json":
        raise UsageError(
            "--json and --progress json would both write to standard output",
            hint="leave --json out: `tunnelmark report --json RESULTS` prints the analysis when the run is over",
        )
    return Console(quiet=True) if quiet else output.console(stderr=json or progress == "json")


def view(console: Console, *, quiet: bool, progress: Shown) -> ProgressView:
    """What shows the events of one run."""
    if progress == "json":
        return JsonView(sys.stdout)
    if quiet:
        return ProgressView()
    return LiveView(console) if progress == "auto" and console.is_terminal else LineView(console)
