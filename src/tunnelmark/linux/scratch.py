"""Scratch files and folders that are removed however the process ends, even by a kill: a janitor waits for its end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tunnelmark.linux import cgroup_cleanup


def hold(folder: Path) -> int:
    """Have a folder removed once every process with the returned file descriptor has ended or closed it."""
    return _watched([folder])[1]


@contextmanager
def held(paths: Sequence[Path]) -> Iterator[None]:
    """Remove files and folders at the end of the `with` statement.

    If this process ends before, however it ends, they are removed then.
    """
    janitor, ours = _watched(paths)
    try:
        yield
    finally:
        os.close(ours)
        janitor.wait()


def _watched(paths: Sequence[Path]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a janitor for these paths; return it and the file descriptor whose closing lets it remove them."""
    life, ours = os.pipe2(os.O_CLOEXEC)
    janitor = subprocess.Popen(
        [sys.executable, "-I", "-S", cgroup_cleanup.__file__, str(life), "0", "--", *map(str, paths)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[life],
        start_new_session=True,
    )
    os.close(life)
    return janitor, ours
