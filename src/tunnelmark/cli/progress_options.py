"""The options `--quiet` and `--progress` of `run`, `compare` and `repeat`: how progress is shown while a study runs."""

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

ProgressStyle = Literal["auto", "lines", "json"]
"""`auto`: a live view on a terminal, else lines. `lines`: a line for each trial. `json`: JSON lines on stdout."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def options(command: _Command) -> _Command:
    """Add `--quiet` and `--progress` to a command."""
    command = click.option(
        "--progress",
        type=click.Choice(get_args(ProgressStyle)),
        default="auto",
        help="What is shown meanwhile: a live view on a terminal and lines elsewhere (auto), lines, or JSON objects, "
        "one a line, on standard output [auto].",
    )(command)
    return click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors and the path of the results.")(
        command
    )


def console(*, quiet: bool, progress: ProgressStyle, json: bool) -> Console:
    """Return the console for text for people: silent if `quiet`, stderr if stdout carries JSON, else stdout.

    UsageError if both `--json` and `--progress json` are given, which would write to stdout.
    """
    if json and progress == "json":
        raise UsageError(
            "--json and --progress json would both write to standard output",
            hint="leave --json out: `tunnelmark report --json RESULTS` prints the analysis when the run is over",
        )
    return Console(quiet=True) if quiet else output.console(stderr=json or progress == "json")


def view(console: Console, *, quiet: bool, progress: ProgressStyle) -> ProgressView:
    """Return the view that shows the progress of one run.

    "json": JSON lines on stdout. Otherwise nothing if `quiet`; else "auto" gives a live view on a terminal, and lines
    elsewhere.
    """
    if progress == "json":
        return JsonView(sys.stdout)
    if quiet:
        return ProgressView()
    return LiveView(console) if progress == "auto" and console.is_terminal else LineView(console)
