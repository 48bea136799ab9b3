"""The options `--let-cores-sleep` and `--node-cores`, for commands that make a lab on this machine."""

from __future__ import annotations

import os

import click

from tunnelmark.host.keep_awake import VARIABLE

OPTION = "--let-cores-sleep"


def _choose(_: click.Context, __: click.Parameter, value: bool) -> None:
    if value:
        os.environ[VARIABLE] = "1"  # also for `lab up`, whose lab is in a process of its own


option = click.option(
    OPTION,
    is_flag=True,
    expose_value=False,
    callback=_choose,
    help="Do not keep the machine's cores awake while the lab is up.",
)

nodes = click.option(
    "--node-cores",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Cores of each node, the same on every machine.",
)
