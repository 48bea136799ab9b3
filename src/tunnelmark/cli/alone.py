"""Lets one command at a time measure on a machine: two would measure each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

LOCK = Path("/run/tunnelmark/measuring.lock")
"""Held (flock(2)) by the command that measures now; the kernel lets go of it when the command ends in any way."""


@contextmanager
def alone(console: Console) -> Iterator[None]:
    """Wait until no other command measures, and keep others out for the length of the block."""
    if os.geteuid() != 0:  # the lab itself will say that it needs root
        yield
        return
    LOCK.parent.mkdir(mode=0o755, exist_ok=True)
    with LOCK.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            console.print(
                f"waiting for another run on this machine to end (process {lock.read().strip() or 'unknown'})"
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
