"""The kernel's threads while labs stand and when they have ended, however that came."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tunnelmark.host import fair_nice
from tunnelmark.lab.client import LabClient
from tunnelmark.linux import cgroup_cleanup
from tunnelmark.linux.cgroups import find
from tunnelmark.linux.kernel_threads import Census, kernel_name

pytestmark = pytest.mark.root

STANDS = (
    "import asyncio\nfrom tunnelmark.lab.client import LabClient\n"
    "async def main():\n    async with LabClient():\n        print('up', flush=True)\n        await asyncio.sleep(600)\n"
    "asyncio.run(main())"
)
NICE = fair_nice.nice_beside(find())


def nices() -> set[int]:
    """The nice values of ksoftirqd and of workers bound to a core to which the kernel gives none itself."""
    return set(by_thread(Census()).values())


def by_thread(census: Census) -> dict[int, int]:
    """The nice values of those threads by process number."""
    found = {}
    for process, thread in census.look().items():
        with contextlib.suppress(ProcessLookupError):
            if not thread.high:
                found[process] = os.getpriority(os.PRIO_PROCESS, process)
    return found


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


@pytest.fixture(autouse=True)
def _seen() -> None:
    if not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text().strip() != "kthreadd":
        pytest.skip("the kernel's threads cannot be seen here: this is a container")
    assert nices(), "the kernel shows its threads, and the census has none"


def test_while_a_lab_stands_they_weigh_as_much_as_it():
    """Each of them, at some moment: the end of another lab gives them their own weight back, until ours sees it."""
    census, raised = Census(), set[int]()

    def all_were() -> bool:
        found = by_thread(census)
        raised.update(process for process, nice in found.items() if nice == NICE)
        return found.keys() <= raised

    async def run() -> dict[str, int]:
        async with LabClient() as labs:
            assert labs.record["kernel_threads_nice"] == NICE
            if await asyncio.to_thread(within, 30, all_were):
                return {}
            others = {process: nice for process, nice in by_thread(census).items() if process not in raised}
            return {f"{process} {kernel_name(process)}": nice for process, nice in others.items()}

    assert asyncio.run(run()) == {}


@pytest.mark.proof(
    "the kernel's threads have a host's weight while a lab stands, and their own when it has ended in whatever way"
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_when_the_command_has_ended_they_have_their_own_weight(number: signal.Signals):
    assert within(60, lambda: nices() == {0}), "another lab stands, or something else has set them"
    with subprocess.Popen([sys.executable, "-c", STANDS], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "up\n"
        assert within(30, lambda: nices() == {NICE})
        command.send_signal(number)
        command.wait()
    assert within(30, lambda: nices() == {0})


@pytest.mark.proof(
    "the kernel's threads have a host's weight while a lab stands, and their own when it has ended in whatever way"
)
def test_when_the_janitor_was_killed_too_the_next_command_gives_it_back():
    assert within(60, lambda: nices() == {0}), "another lab stands, or something else has set them"
    with subprocess.Popen([sys.executable, "-c", STANDS], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "up\n"
        assert within(30, lambda: nices() == {NICE})
        (killed,) = (process for process in children(command.pid) if cgroup_cleanup.__file__ in words(process))
        os.kill(killed, signal.SIGKILL)
        command.kill()
        command.wait()
    assert nices() == {NICE}, "nobody is there to give it back"

    async def run() -> None:
        async with LabClient():
            pass

    asyncio.run(run())
    assert within(30, lambda: nices() == {0})


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def words(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")
