"""Disturbs this machine while a command runs: both cores busy at normal priority, and stolen for 10 to 60 ms now and then.

    python tests/support/disturb.py -- make test

stress-ng keeps every core busy; without it, loops of our own do. A thread of the highest real-time priority on each core takes
`--share` of the time (5 %) in pauses of 10 to 60 ms, as the host of a virtual machine does. All of it ends with this command,
however that ends. Its exit code is the command's. Needs root.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import time

LEAST, MOST = 0.010, 0.060  # seconds of one pause
_PR_SET_PDEATHSIG = 1


def steal(core: int, share: float) -> None:
    """Take a share of a core's time, pause by pause; never returns."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    draw = random.Random(core)
    while True:
        pause = draw.uniform(LEAST, MOST)
        end = time.perf_counter() + pause
        while time.perf_counter() < end:
            pass
        time.sleep(pause * (1 - share) / share * draw.uniform(0.5, 1.5))


def spin(core: int) -> None:
    """Keep a core busy at normal priority; never returns."""
    os.sched_setaffinity(0, {core})
    while True:
        pass


def child(work: str, core: int, share: float) -> int:
    """The process ID of a child that does such work and dies with us."""
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()  # a session of its own: the scheduler groups by session (sched(7), autogroup)
        if work == "steal":
            steal(core, share)
        elif shutil.which("stress-ng"):
            os.sched_setaffinity(0, {core})
            os.execvp("stress-ng", ["stress-ng", "--quiet", "--cpu", "1", "--timeout", "0"])
        else:
            spin(core)
    return pid


def main() -> int:
    """Run the command disturbed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.05, help="share of each core's time that is stolen [0.05]")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    children = [child(work, core, asked.share) for core in cores for work in ("steal", "spin")]
    try:
        return subprocess.run(asked.command, check=False).returncode
    finally:
        for pid in children:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main())
