"""How long others wait to make a control group while loops that keep cores awake begin on cores that labs keep busy.

When each loop moved itself into its groups it held their locks for 11.6 s at the worst; labs of other commands failed.
"""

from __future__ import annotations

import os
import signal
import time
from threading import Event, Thread

import pytest

from tunnelmark.host import keep_awake
from tunnelmark.linux import cgroup_cleanup, cgroups

CORES = set(os.sched_getaffinity(0))
ROUNDS = 8
SECONDS = 1.0
"""The longest that a group may take to be made: a tenth of what the lab server may take for a request."""


def _burn(group: cgroups.ControlGroup, core: int) -> int:
    """Start a program that keeps a core busy with the priority of a lab's; return its PID."""
    program = os.fork()
    if program == 0:
        group.join("busy")
        os.sched_setaffinity(0, {core})
        while True:
            pass
    return program


def _begin(place: keep_awake.LoopGroups, counts: int) -> float:
    """Begin loops and end them; return the seconds until all were in their groups."""
    begun = time.monotonic()
    processes = keep_awake.begin(place, CORES, counts)
    while not all((folder / "cgroup.procs").read_text() for folder in place.folders):
        time.sleep(0.001)
    took = time.monotonic() - begun
    keep_awake.end(place, processes)
    return took


def _measure(found: cgroups.Hierarchies, group: cgroups.ControlGroup) -> bool:
    """Begin loops as a lab server does, with its priority; return whether no control group took too long to make."""
    group.join("server")
    waited: list[float] = []
    over = Event()

    def look() -> None:
        own = cgroups.ControlGroup(found, f"{group.folders[0].name}-look")
        while not over.wait(0.002):
            begun = time.monotonic()
            own.create()
            for folder in own.folders:
                folder.rmdir()
            waited.append(time.monotonic() - begun)

    counts = keep_awake.memory(CORES)
    looks = Thread(target=look)
    looks.start()
    took = [
        _begin(keep_awake.LoopGroups(found, f"{group.folders[0].name}-{turn}", CORES), counts) for turn in range(ROUNDS)
    ]
    over.set()
    looks.join()
    print(f"\nloops began in {max(took):.3f} s at most; a control group took {max(waited):.3f} s at most", flush=True)
    return max(waited) < SECONDS


@pytest.mark.root
def test_nobody_waits_for_loops_that_begin() -> None:
    found = cgroups.find()
    group = cgroups.ControlGroup(found, f"tunnelmark-{os.getpid()}-loops")
    group.create()
    for leaf in ("server", "busy"):
        group.leaf(leaf)
    programs = [_burn(group, core) for core in (*CORES, *CORES)]
    try:
        measuring = os.fork()
        if measuring == 0:
            well = False
            try:
                well = _measure(found, group)
            finally:
                os._exit(not well)
        assert os.waitpid(measuring, 0)[1] == 0
    finally:
        for program in programs:
            os.kill(program, signal.SIGKILL)
            os.waitpid(program, 0)
        for folder in group.folders:
            cgroup_cleanup.remove(str(folder))
