"""What labs of `lab up` leave in files: the state of one that is up, the logs of its daemons, and what is kept of one that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tunnelmark.errors import UsageError

STATES = Path("/run/tunnelmark")
"""Where the state files of labs that are up are kept."""

USUAL = "lab"
"""The name of a lab for which no other was given."""

DAEMON = "tunnelmark.cli.lab_daemon"
"""The module that holds a lab, by which its process is known."""


def state_file(name: str) -> Path:
    """The state file of a lab."""
    return STATES / f"{name}.json"


def logs_of(name: str) -> Path:
    """The folder of its daemons' logs while a lab is up."""
    return STATES / f"{name}.logs"


def kept_logs(name: str) -> Path:
    """The folder of the daemons' logs of a lab that failed, kept until a lab of that name is made again."""
    return STATES / f"{name}.failed"


def logs_in(folder: Path) -> dict[str, dict[str, Path]]:
    """The logs in a folder, by node and daemon."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.glob("daemon.*.*.log")):
        node, _, daemon = path.name.removeprefix("daemon.").removesuffix(".log").partition(".")
        found.setdefault(node, {})[daemon] = path
    return found


def state_of(name: str) -> dict[str, Any] | None:
    """The state of a lab that is up, or None."""
    try:
        state: dict[str, Any] = json.loads(state_file(name).read_text())
        command = Path(f"/proc/{state['pid']}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return state if DAEMON.encode() in command else None


def required(name: str) -> dict[str, Any]:
    """The state of a lab that is up; UsageError if there is none of that name."""
    state = state_of(name)
    if state is None:
        raise UsageError(
            f"no lab called {name!r} is up", hint="see `tunnelmark lab list` and `tunnelmark lab up --help`"
        )
    return state
