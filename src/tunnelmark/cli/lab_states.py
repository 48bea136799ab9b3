"""Reads and writes the files of labs of `lab up`: states, daemons' logs, and what is left of failed or lost labs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, UsageError
from tunnelmark.host import paths

STATES = Path("/run/tunnelmark")
"""The folder for the files of labs that root has made."""

USUAL = "lab"
"""The default name of a lab."""

DAEMON = "tunnelmark.cli.lab_daemon"
"""The module of the process that holds a lab; its name in the command line identifies that process."""


@dataclass(frozen=True, slots=True)
class LabFiles:
    """The paths of the files of the lab `name`."""

    folder: Path
    name: str

    @property
    def state(self) -> Path:
        """The file with the lab's state while it is up."""
        return self.folder / f"{self.name}.json"

    @property
    def logs(self) -> Path:
        """The folder of the daemons' logs while the lab is up."""
        return self.folder / f"{self.name}.logs"

    @property
    def kept(self) -> Path:
        """The folder of the daemons' logs of a failed or lost lab, kept until a lab of that name is made again."""
        return self.folder / f"{self.name}.failed"

    @property
    def door(self) -> Path:
        """The socket by which `lab exec` runs programs on nodes on other hosts (see `exec_server`)."""
        return self.folder / f"{self.name}.exec"

    @property
    def reason(self) -> Path:
        """The file that says why the lab was lost, that is, gone although no user ended it."""
        return self.kept / "lost.json"


def own(name: str) -> LabFiles:
    """Return the paths of the files that this user's command writes about a lab of that name."""
    return LabFiles(_folders()[0], name)


def files_of(name: str) -> LabFiles:
    """Return the paths of the files of a lab: this user's if they exist, else root's if they exist.

    If there are none, the paths are those that this user's files would have.
    """
    known = [LabFiles(folder, name) for folder in _folders()]
    return next((files for files in known if files.state.exists() or files.kept.exists()), known[0])


def _folders() -> list[Path]:
    """Return the folders that may hold labs' files, this user's own first.

    Only root can make a lab on this machine, but every user can make one on other hosts.
    """
    if os.geteuid() == 0:
        return [STATES]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return [Path(runtime, "tunnelmark") if runtime.startswith("/") else paths.cache("labs"), STATES]


def logs_in(folder: Path) -> dict[str, dict[str, Path]]:
    """Return the paths of the logs in a folder, by node, then by daemon; {} without logs."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.glob("daemon.*.*.log")):
        node, _, daemon = path.name.removeprefix("daemon.").removesuffix(".log").partition(".")
        found.setdefault(node, {})[daemon] = path
    return found


def names() -> list[str]:
    """Return the names of labs that have files here, whether they are up or have failed."""
    found = {path.stem for folder in _folders() for kind in ("json", "failed") for path in folder.glob(f"*.{kind}")}
    return sorted(found)


def state_of(name: str) -> dict[str, Any] | None:
    """Return the state of a lab, as its process printed it when it was up; None if the lab is not up."""
    try:
        state: dict[str, Any] = json.loads(files_of(name).state.read_text())
        command = Path(f"/proc/{state['pid']}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return state if DAEMON.encode() in command else None


def up() -> Iterator[dict[str, Any]]:
    """Yield the states of all labs that are up."""
    for name in names():
        if (state := state_of(name)) is not None and lost(name) is None:
            yield state


def required(name: str) -> dict[str, Any]:
    """Return the state of a lab that is up. LabError with the reason if it was lost, UsageError if it is not up."""
    if (error := lost(name)) is not None:
        raise error
    state = state_of(name)
    if state is None:
        raise UsageError(
            f"no lab called {name!r} is up", hint="see `tunnelmark lab list` and `tunnelmark lab up --help`"
        )
    return state


def keep_lost(files: LabFiles, why: str) -> None:
    """Store why a lab is gone, with its logs, until `lab down` reports it or a lab of that name is made again."""
    if files.logs.exists():
        files.logs.rename(files.kept)
    files.kept.mkdir(exist_ok=True)
    files.reason.write_text(json.dumps({"why": why}))


def lost(name: str) -> LabError | None:
    """Return, as an error, why a lab is gone although no user ended it; None if no reason is stored."""
    try:
        why = json.loads(files_of(name).reason.read_text())["why"]
    except (OSError, ValueError):
        return None
    return LabError(
        f"the lab {name!r} is gone: {why}",
        hint="look at the host and the network to it; `tunnelmark lab up` makes the lab again",
    )


def forget_lost(name: str) -> None:
    """Remove the stored reason why a lab is gone; its daemons' logs stay."""
    files = files_of(name)
    with suppress(OSError):
        files.reason.unlink()
        files.kept.rmdir()  # where there are no logs
