"""The options `--cluster`, `--hosts`, `--local` and `--tls`: which machines measure the blocks of a study."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from tunnelmark.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class BlockTarget:
    """Which workers measure the blocks of a study; false if no option names workers, so that the command measures.

    `address`: the address of a Dask scheduler, whose workers measure. `tls`: the folder with the scheduler's keys.
    `local`: the number of workers to start on this machine. `hosts`: a file with a host on each line; a worker is
    started on each host.
    """

    address: str | None = None
    local: int | None = None
    tls: Path | None = None
    hosts: Path | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.address, self.local, self.hosts))

    def words(self) -> str:
        """Return the command-line options that give this value."""
        if self.local is not None:
            return f"--local {self.local}"
        if self.hosts is not None:
            return f"--hosts {shlex.quote(str(self.hosts))}"
        keys = f" --tls {shlex.quote(str(self.tls))}" if self.tls is not None else ""
        return f"--cluster {self.address}{keys}"


def options(command: _Command) -> _Command:
    """Add the options to a command; it gets the arguments `cluster`, `hosts`, `local` and `tls`."""
    command = click.option(
        "--tls",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Folder of the cluster's keys; needed but on the loopback address.",
    )(command)
    command = click.option(
        "--local",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Spread the blocks over N workers here: side by side with --backend vm, otherwise one at a time.",
    )(command)
    command = click.option(
        "--hosts",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Spread the blocks over the hosts in FILE, one a line, which OpenSSH reaches.",
    )(command)
    return click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Spread the blocks over the workers of the Dask scheduler at ADDRESS (docs/cluster.md).",
    )(command)


def where(cluster: str | None, local: int | None, tls: Path | None, hosts: Path | None) -> BlockTarget:
    """Return the options' values. UsageError if they contradict each other, or if a remote scheduler has no `tls`."""
    if sum(each is not None for each in (cluster, local, hosts)) > 1:
        raise UsageError("--cluster, --hosts and --local exclude each other", hint="leave all but one of them out")
    if cluster is None and tls is not None:
        raise UsageError("--tls is for --cluster", hint="workers of --local and --hosts get keys of their own")
    from tunnelmark.cluster.nodes import addressed, is_loopback

    if cluster is not None and tls is None and not is_loopback(cluster):
        raise UsageError(
            f"connections to {cluster} would be open to everyone on the way, and a worker runs what it is sent",
            hint="make keys with `tunnelmark cluster certificates DIR`, give DIR to all machines, and add --tls DIR",
        )
    named = addressed(cluster, keys=tls is not None) if cluster is not None else None
    return BlockTarget(named, local, tls, hosts)
