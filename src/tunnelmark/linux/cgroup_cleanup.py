"""Removes what the kernel does not clean up after a dead command: empty control groups, scratch files and folders.

The process is a command's janitor, started as `python -I cgroup_cleanup.py FD NICE FOLDER... -- FILE...` in a session
(setsid(2)) of its own. FD is a pipe that the command and its lab server hold open: its end of file means that both have
ended, however they did. Until then kernel threads have the nice value NICE (see `kernel_threads`), and after that their
own again; with NICE 0 they are left alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time

if __name__ == "__main__":  # as a file, and with nothing installed: the package is where this file is
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tunnelmark.linux import kernel_threads

_PATIENCE = 5.0  # seconds for killed processes to leave their groups
_PAUSE = 0.01
_NEW_BORN = 0.5  # seconds for which a new kernel thread may run without its nice value
_SHARED = "tunnelmark.realtime"
_FIRST = {"cpu.idle": "0", "cpu.weight": "10000", "cpu.shares": "262144"}  # in this order: an idle group has no weight


def main(life: int, nice: int, groups: list[str], files: list[str]) -> None:
    """Wait for the end of the pipe `life`, then remove the control groups, deepest first, and the files.

    Until then, raise the kernel threads to `nice`, new ones too (see the module).
    """
    raised = kernel_threads.Raised(nice)
    raised.raise_all()
    while not select.select([life], [], [], _NEW_BORN if nice else None)[0] or os.read(life, 1):
        raised.raise_all()
    for group in groups:
        hurry(group)
    raised.restore()
    all_groups, deadline = groups, time.monotonic() + _PATIENCE
    while (groups := [group for group in groups if not remove(group)]) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    for folder in {shared(group) for group in all_groups}:
        with contextlib.suppress(OSError):  # there is none, or other commands use it
            os.rmdir(folder)
    for file in files:
        if os.path.isdir(file):
            shutil.rmtree(file, ignore_errors=True)
        elif os.path.exists(file):
            os.unlink(file)


def shared(group: str) -> str:
    """Return the path of the group that all commands share for their processes that have real-time priority.

    `group`: the path of one command's own group.
    """
    return os.path.join(os.path.dirname(group), _SHARED)


def hurry(group: str) -> None:
    """Give a group the largest CPU weight, so that its killed processes end at once even on busy cores.

    A process needs CPU time to end. In a group of idle class (`cpu.idle`) it gets CPU time only after all other work,
    which takes up to seconds, and the lab server's end waits for that.
    """
    for name, value in _FIRST.items():
        file = os.path.join(group, name)
        if os.path.exists(file):
            try:
                with open(file, "w") as setting:
                    setting.write(value)
            except OSError:  # it has just gone
                return


def remove(group: str) -> bool:
    """Remove a group with all groups below it; return whether it is gone."""
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return not os.path.exists(group)


if __name__ == "__main__":
    split = sys.argv.index("--")
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:split], sys.argv[split + 1 :])
