"""The options `--watch` and `--profile-stacks`: which collectors observe every trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.load import STACKS
from tunnelmark.plan.model import Study

NONE, ALL = "none", "all"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def option(command: _Command) -> _Command:
    """Add the options `--watch` and `--profile-stacks` to a command."""
    command = click.option(
        "--profile-stacks",
        is_flag=True,
        help="Record stacks of both ends in every trial, and draw them as flame graphs next to the report.",
    )(command)
    return click.option(
        "--watch",
        multiple=True,
        metavar="NAME",
        help="Collectors for every trial: cpu, memory, switches, syscalls, tcp, wire ...; repeatable; `none`, `all` "
        "[the study's own, or the light ones].",
    )(command)


def chosen(names: Sequence[str], catalogue: Catalogue) -> tuple[str, ...] | None:
    """Return the collectors of `--watch`: () for `none`, and None if the option was not given.

    UnknownName if a name is unknown. UsageError if `none` or `all` is given together with other names.
    """
    if not names:
        return None
    for name in names:
        if name in (NONE, ALL) and len(names) > 1:
            raise UsageError(f"--watch {name} cannot be joined with others", hint="name collectors, or give it once")
        if name not in (NONE, ALL, *catalogue.collectors):
            raise UnknownName("collector", name, (*catalogue.collectors, NONE, ALL))
    if NONE in names:
        return ()
    return tuple(catalogue.collectors) if ALL in names else tuple(dict.fromkeys(names))


def with_stacks(study: Study, asked: bool) -> Study:
    """Return the study with the collector `stacks` added for every trial if `asked` is true, otherwise unchanged."""
    return replace(study, watch=(*study.watch, STACKS)) if asked and STACKS not in study.watch else study
