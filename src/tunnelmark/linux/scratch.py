"""Scratch folders that no kill leaves behind: a janitor removes each when the processes that hold it have ended, however they did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tunnelmark.linux import cgroup_cleanup


def hold(folder: Path) -> int:
    """Have a folder removed when every process that holds the file descriptor returned has ended or closed it."""
    life, ours = os.pipe2(os.O_CLOEXEC)
    subprocess.Popen(
        [sys.executable, "-I", "-S", cgroup_cleanup.__file__, str(life), "0", "--", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[life],
        start_new_session=True,
    )
    os.close(life)
    return ours
