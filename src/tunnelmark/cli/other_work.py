"""Announces work of this project, such as labs, builds and tests, to its other processes on the machine.

Each process binds an abstract Unix socket (unix(7)) whose name says what it does. Such a name needs neither a file nor
a privilege. Every process finds it in /proc/net/unix, and the kernel removes it with the process, however that ends.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tunnelmark.units import clock

_NAME = "tunnelmark/{pid}/{since}/{what}"
_LINE = re.compile(r"@tunnelmark/(\d+)/(\d+)/(.*)$", re.MULTILINE)
_LONGEST = 107  # bytes of a name in struct sockaddr_un, less the zero that makes it abstract


@dataclass(frozen=True, slots=True)
class OtherWork:
    """Work of another process: what it does, its process ID, and its begin (seconds since the Unix epoch)."""

    what: str
    pid: int
    since: float

    def words(self) -> str:
        """Describe the work for people: what, which process, and for how long."""
        return f"{self.what} (process {self.pid}, for {clock(max(time.time() - self.since, 0.0))})"


@contextmanager
def told(what: str) -> Iterator[None]:
    """Announce to other processes what this process does, until the body of the `with` statement ends."""
    name = _NAME.format(pid=os.getpid(), since=int(time.time()), what=what).encode()[:_LONGEST]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sign:
        sign.bind(b"\0" + name)
        yield


def others() -> tuple[OtherWork, ...]:
    """Return the work that other processes have announced, the oldest first."""
    shown = Path("/proc/net/unix").read_text(errors="replace")
    found = {
        OtherWork(what, int(pid), float(since)) for pid, since, what in _LINE.findall(shown) if int(pid) != os.getpid()
    }
    return tuple(sorted(found, key=lambda work: work.since))
