"""Options that say something of labs on this machine: where a command measures on others, which would not hear of them, they are errors."""

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
"""By parameter: an option that has no meaning there, and what to do without it."""


def refuse(why: str, *, heard: Collection[str] = (), hint: str = "") -> None:
    """UsageError if the command that runs was given such an option, but for parameters that are `heard` there. `why` says where it measures; `hint` replaces the option's own."""
    context = click.get_current_context(silent=True)
    if context is None:  # not called from a command line
        return
    for parameter, (option, usual) in _OPTIONS.items():
        if parameter not in heard and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option} is for a lab on this machine, and {why}", hint=hint or usual)
