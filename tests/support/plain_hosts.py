"""Hosts for tests without root: a real relay and real agents, whose nodes are processes of this machine and whose links are not there.

A program `ssh` that is first in PATH runs its last word here. `python -m support.plain_hosts` is the relay of such a host.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tunnelmark.lab.ssh import interfaces, relay

_AGENT = (
    "import socket, sys; from tunnelmark.lab.server import agent; agent.serve(socket.socket(fileno=int(sys.argv[1])))"
)
_SSH = '#!/bin/sh\nfor word; do :; done\nexec sh -c "exec $word"\n'
_TESTS = Path(__file__).parents[1]
_TIMINGS = {"nodes": 0.0, "links": 0.0, "end": 0.0}


class PlainLabs:
    """In place of `LabClient`: its nodes are agents without namespaces."""

    record: Mapping[str, Any] = {}
    unified = None

    def __init__(self, _: Sequence[Path]) -> None:
        self._agents: list[subprocess.Popen[bytes]] = []

    async def __aenter__(self) -> PlainLabs:
        return self

    async def __aexit__(self, *_: object) -> None:
        for agent in self._agents:
            agent.kill()

    async def request(self, op: str, fds: Sequence[int] = (), **_: Any) -> dict[str, Any]:
        """What a lab server would answer, had it made namespaces and links."""
        for fd in fds:
            self._agents.append(subprocess.Popen([sys.executable, "-c", _AGENT, str(fd)], pass_fds=[fd]))
        return {"refused": {}, "timings": _TIMINGS}

    def watch(self) -> None:
        """No clock sees pauses here."""

    async def seen(self) -> None:
        """Nothing is seen."""

    async def check(self) -> None:
        """It is there."""


def inventory(folder: Path, hosts: int, *, nodes: int = 1) -> Path:
    """A file that names such hosts, h1, h2, ..., which may have so many nodes each."""
    paths = os.pathsep.join([str(_TESTS.parent / "src"), str(_TESTS)])
    command = shlex.join(
        ["env", f"PYTHONPATH={paths}", f"TMPDIR={folder}", sys.executable, "-m", "support.plain_hosts"]
    )
    text = ""
    for number in range(1, hosts + 1):
        text += (
            f'[[hosts]]\nname = "h{number}"\nssh = "root@h{number}"\naddress = "192.0.2.{number}"\ninterface = "eth0"\n'
        )
        text += f"nodes = {nodes}\ncommand = '''{command}'''\n\n"
    file = folder / "hosts.toml"
    file.write_text(text)
    return file


def ssh_first(folder: Path) -> str:
    """PATH with our `ssh` first."""
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(_SSH)
    program.chmod(0o755)
    return os.pathsep.join([str(program.parent), os.environ["PATH"]])


def _main() -> None:
    relay.LabClient = PlainLabs  # type: ignore[attr-defined, assignment]
    interfaces.mtu_of = lambda *_: 9000
    interfaces.make = _nothing  # type: ignore[assignment]
    asyncio.run(relay.serve(dict, _collected, nullcontext))


async def _nothing(_: interfaces.Wanted) -> None:
    """No interface is made."""


async def _collected(_: object, __: object) -> dict[str, Any]:
    return {}


if __name__ == "__main__":
    _main()
