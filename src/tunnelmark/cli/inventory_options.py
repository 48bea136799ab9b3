"""The option `--inventory` of the commands whose nodes may run on other hosts (`--backend ssh`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tunnelmark.errors import UsageError

if TYPE_CHECKING:
    from tunnelmark.lab.ssh.inventory import Inventory

ELSEWHERE = "these nodes run on other hosts"
"""The reason in the error about an option that has no effect on the hosts of an inventory (`here_only`)."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option(command: _Command) -> _Command:
    """Add the option `--inventory` to a command."""
    return click.option(
        "--inventory",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="With --backend ssh: the hosts that the nodes run on (docs/hosts.md).",
    )(command)


def chosen(backend: str | None, file: Path | None) -> Inventory | None:
    """Return the inventory of `--backend ssh --inventory FILE`; None without both. UsageError if only one is given."""
    if backend == "ssh" and file is None:
        raise UsageError(
            "--backend ssh needs an inventory of its hosts",
            hint="name the hosts in a file, and add --inventory FILE (docs/hosts.md)",
        )
    if backend != "ssh" and file is not None:
        raise UsageError("--inventory needs --backend ssh", hint="add --backend ssh")
    if file is None:
        return None
    from tunnelmark.lab.ssh import inventory

    return inventory.read(file)
