"""Lets only one command at a time measure on a machine; others can see which one, and how long it still takes.

Two measurements at once would disturb each other. Those by counted time would not: they share the lock with each
other, and only keep out the rest. Other work disturbs one too: a lab of `lab up`, a build of VPNs, the
contract suite. Such work calls `quiet`, which waits until the measurement has ended, or with `--no-wait` only warns.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

import click
from rich.console import Console
from rich.text import Text

from tunnelmark.cli import other_work
from tunnelmark.cli.retry_options import NO_WAIT
from tunnelmark.units import clock

LOCK = Path("/run/tunnelmark/measuring.lock")
"""The lock file. The command that measures now holds it (flock(2)); the kernel releases it however the command ends."""

_LOOK_AGAIN = 0.2  # seconds between two looks at whether the other has ended
_GLANCE = 0.05  # seconds for which a process that only checks may hold the lock

no_wait = click.option(
    "--no-wait", is_flag=True, help="Do not wait for a measurement on this machine to end, but disturb it."
)


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The command that measures; its begin and expected end (`since`, `until`) are in Unix time, None if unknown."""

    pid: int | None = None
    what: str = "another run"
    results: str = ""
    since: float | None = None
    until: float | None = None

    def words(self) -> str:
        """Describe the measurement for people: name, folder, process, how long it has run, and the time left."""
        now = time.time()
        parts = [f"results in {self.results}"] if self.results else []
        parts.append(f"process {self.pid or 'unknown'}")
        if self.since is not None:
            parts.append(f"for {clock(max(now - self.since, 0.0))} now")
        if self.until is not None:
            left = self.until - now
            parts.append(f"about {clock(left)} left" if left >= 1 else "nearly done")
        return f"{self.what} ({', '.join(parts)})"


class HeldLock:
    """The lock while this process holds it. The lock file describes the measurement, for other commands to read."""

    def __init__(self, file: IO[str], holder: LockHolder) -> None:
        self._file = file
        self._holder = holder
        self._write()

    def left(self, seconds: float) -> None:
        """Write into the lock file that the measurement takes `seconds` more."""
        self._holder = replace(self._holder, until=time.time() + seconds)
        self._write()

    def _write(self) -> None:
        content = json.dumps(asdict(self._holder)).encode()
        os.pwrite(self._file.fileno(), content, 0)
        self._file.truncate(len(content))


@contextmanager
def alone(
    console: Console,
    what: str,
    results: Path | None = None,
    seconds: float | None = None,
    *,
    counted: bool = False,
) -> Iterator[HeldLock | None]:
    """Wait until no other command measures, then hold the lock during the `with` block, which takes about `seconds`.

    `what` and `results` describe the measurement to other commands. `counted`: it counts instructions, so that it only
    has to wait for measurements that it would disturb, and not for those that count, too. Otherwise a warning names
    other work of this project that runs when the lock is taken. Without root no lock is taken, and the value is None.
    """
    if os.geteuid() != 0:  # the lab itself will say that it needs root
        yield None
        return
    LOCK.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with os.fdopen(os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+") as lock:
        how = fcntl.LOCK_SH if counted else fcntl.LOCK_EX
        if not _taken(lock, how, _GLANCE):
            _wait(console, lock, how)
        now = time.time()
        place = str(results.absolute()) if results is not None else ""
        held = HeldLock(lock, LockHolder(os.getpid(), what, place, now, now + seconds if seconds is not None else None))
        for work in () if counted else other_work.others():
            _warn(
                console, f"running at the same time: {work.words()}; it takes time of the cores, and may disturb trials"
            )
        try:
            yield held
        finally:
            with contextlib.suppress(OSError):
                if _holder().pid == os.getpid():
                    lock.truncate(0)


def measuring() -> LockHolder | None:
    """Return the command that measures now; None if no command does, or only by counted time."""
    try:
        with LOCK.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder()
    except OSError:  # no command has measured since this machine started
        return None
    return None


def quiet(console: Console, what: str, *, wait: bool = True, otherwise: str = "--no-wait") -> None:
    """Wait until no command measures, because `what` would disturb it; without `wait`, only warn.

    `otherwise`: the option that a user can add to avoid the wait, as the message names it.
    """
    if (holder := measuring()) is None:
        return
    if not wait or os.environ.get(NO_WAIT):
        _warn(console, f"{what} disturbs {holder.words()}")
        return
    _say(console, f"waiting for {holder.words()} to end, because {what} would disturb it; {otherwise} goes on at once")
    while (now := measuring()) is not None:
        if now.pid != holder.pid:
            holder = now
            _say(console, f"... and for {holder.words()}")
        time.sleep(_LOOK_AGAIN)


def _wait(console: Console, lock: IO[str], how: int) -> None:
    holder = None
    while not _taken(lock, how):
        if (now := _holder()).pid != (holder.pid if holder is not None else -1):
            holder = now
            _say(console, f"waiting for a run on this machine to end: {holder.words()}")
        time.sleep(_LOOK_AGAIN)


def _taken(lock: IO[str], how: int, patience: float = 0.0) -> bool:
    """Return whether the lock could be taken: it was free, or became free within `patience` seconds.

    `how`: `fcntl.LOCK_EX` for this process alone, or `fcntl.LOCK_SH`.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_GLANCE / 10)
        else:
            return True


def _holder() -> LockHolder:
    """Return the holder of the lock, as far as the file says; an older version wrote only its process ID."""
    try:
        said = json.loads(LOCK.read_text())
        return LockHolder(said) if isinstance(said, int) else LockHolder(**said)
    except (OSError, ValueError, TypeError):
        return LockHolder()


def _say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _warn(console: Console, text: str) -> None:
    console.print(Text.assemble(("warning: ", "yellow"), text), soft_wrap=True)
