"""The options `--no-repeat` and `--no-wait`: without them, a run waits for other work and repeats spoilt trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

NO_WAIT = "TUNNELMARK_NO_WAIT"
"""Environment variable that means `--no-wait`: for machines that are never idle, and for the suites of `packages verify`."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def options(command: _Command) -> _Command:
    """Add the options `--no-repeat` and `--no-wait` to a command."""
    command = click.option(
        "--no-wait",
        is_flag=True,
        envvar=NO_WAIT,
        help="Do not wait for other work on this machine to end (at most 60 s at a time, 10 minutes per run).",
    )(command)
    return click.option(
        "--no-repeat",
        is_flag=True,
        help="Do not repeat what a disturbance has spoilt: no second attempt, no replacement block, no second look.",
    )(command)
