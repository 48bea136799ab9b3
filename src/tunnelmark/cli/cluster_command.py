"""The commands `cluster ...`: keys, a scheduler, and workers for studies over several machines, by Dask."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import threading
from pathlib import Path

import click

from tunnelmark.cluster import certificates, dispatch, nodes, ssh_hosts
from tunnelmark.cluster import worker as measuring


@click.group()
def cluster() -> None:
    """Spread studies over several machines; docs/cluster.md goes from one machine to two."""


_tls = click.option(
    "--tls",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of keys, the same on all machines  [none: the loopback address alone]",
)


@cluster.command(name="certificates")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--days", type=click.IntRange(1, 825), default=certificates.DAYS, show_default=True, help="How long they hold."
)
def certificates_(folder: Path, days: int) -> None:
    """Make keys for a cluster in FOLDER, a new one. Copy it to each machine that is to take part, and to no other."""
    certificates.make(folder, days)
    click.echo(f"{folder}: valid for {days} days; who has it can run programs on the workers")


@cluster.command()
@click.option(
    "--listen", default="127.0.0.1:8786", show_default=True, metavar="ADDRESS:PORT", help="Where it is reached."
)
@click.option(
    "--dashboard",
    metavar="ADDRESS:PORT",
    help="Where a browser finds Dask's dashboard  [no page is shown]",
)
@_tls
def scheduler(listen: str, dashboard: str | None, tls: Path | None) -> None:
    """Run the scheduler of a cluster until Ctrl-C; workers and `run --cluster` connect to it."""
    dispatch.require()

    def ready(address: str) -> None:
        keys = f" --tls {shlex.quote(str(tls))}" if tls else ""
        click.echo(
            f"{address}\nworkers: tunnelmark cluster worker {address}{keys}\nstudies: tunnelmark run STUDY --cluster {address}{keys}"
        )

    asyncio.run(nodes.scheduler(listen, dashboard, certificates.security(tls) if tls else None, ready))


@cluster.command()
@click.argument("address")
@click.option("--name", help="How reports of progress call it  [this machine's name]")
@click.option(
    "--listen",
    metavar="ADDRESS[:PORT]",
    help="Where the scheduler reaches it  [this machine's address on the way to the scheduler]",
)
@_tls
@click.option(
    "--keys-from-input", is_flag=True, hidden=True
)  # for `run --hosts`: the keys are one line of input, and the worker ends with its input
def worker(address: str, name: str | None, listen: str | None, tls: Path | None, keys_from_input: bool) -> None:
    """Measure blocks for the scheduler at ADDRESS until Ctrl-C, one at a time."""
    dispatch.require()
    if keys_from_input:
        held = ssh_hosts.security(sys.stdin.readline())
        threading.Thread(target=_end_with_input, daemon=True).start()
        asyncio.run(nodes.worker(address, name, listen, held, lambda _: None, _lacks))
        return
    address = nodes.addressed(address, keys=tls is not None)
    if tls is None:
        click.echo(f"note: without --tls, every user of this machine can have it run programs, {_rights()}", err=True)
    security = certificates.security(tls) if tls else None
    asyncio.run(nodes.worker(address, name, listen, security, click.echo, click.echo))


@cluster.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
def block(folder: Path) -> int:
    """Measure the block that a worker has asked for in FOLDER."""
    from tunnelmark.cli import block_run

    return block_run.main(folder)


def _lacks(why: str) -> None:
    click.echo(f"{ssh_hosts.LACKS}{' '.join(why.split())}", err=True)


def _rights() -> str:
    return "as root" if os.geteuid() == 0 else "as you, and as root where you may run tunnelmark by `sudo -n`"


def _end_with_input() -> None:
    while sys.stdin.read(1):
        pass
    measuring.stop()
    os._exit(0)  # the command that asked for it is gone
