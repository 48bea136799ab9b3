"""Refuses options for labs on this machine if a command measures on other machines, where they have no effect."""

from __future__ import annotations

from collections.abc import Collection

import click
from click.core import ParameterSource

from tunnelmark.cli import core_options
from tunnelmark.errors import UsageError

_OPTIONS = {
    "bins": ("--bin", "install that program on the hosts, and leave --bin out"),
    "no_wait": ("--no-wait", "a host where another command measures is not disturbed: wait for its end"),
    "let_cores_sleep": (core_options.OPTION, "leave it out: the hosts keep their cores awake"),
}
"""By parameter: an option without effect on other machines, and what to do instead."""


def refuse(why: str, *, heard: Collection[str] = (), hint: str = "") -> None:
    """Raise UsageError if the running command was given an option that has no effect on other machines.

    `why`: the end of the message, a clause such as "these nodes run on other hosts". `heard`: names of parameters, such
    as "no_wait", that have an effect there, and are not refused. `hint`: replaces the hint that belongs to the option.
    """
    context = click.get_current_context(silent=True)
    if context is None:  # not called from a command line
        return
    for parameter, (option, usual) in _OPTIONS.items():
        if parameter not in heard and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option} is for a lab on this machine, and {why}", hint=hint or usual)
