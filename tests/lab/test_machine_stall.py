"""The clocks see that a core stood still, say which and when, cost little, and end with whoever started them."""

import asyncio
import json
import os
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.host import PATIENCE
from support.labs import PAIR
from tunnelmark.host import pauses, wakeups
from tunnelmark.host.pauses import ClockLook, Clocks
from tunnelmark.lab import labs as labs_module
from tunnelmark.lab.client import LabClient
from tunnelmark.linux import cgroups
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile
from tunnelmark.units import Duration

pytestmark = pytest.mark.root
WAY = Direction(delay=Duration.parse("5 ms"))
CORES = sorted(os.sched_getaffinity(0))
# Says when it is ready, takes its core for 30 ms at the moment that it reads (seconds of the monotonic clock; by default soon), and says
# when that was due, began and ended.
HOLD = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
due = max(int(1e9 * float(sys.stdin.readline() or 0)), time.monotonic_ns() + 10_000_000)
time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
begin = time.monotonic_ns()
while time.monotonic_ns() < begin + 30_000_000: pass
print(due, begin, time.monotonic_ns())
"""
# An echo request each millisecond, at high priority: on a busy machine `ping` leaves gaps in which no packet is on its way.
# It says when it is ready, which is after the first answer.
PINGS = """
import os, socket, sys, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(98))
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as pings:
    pings.connect((sys.argv[1], 0))
    pings.settimeout(0.001)
    answered = False
    while True:
        pings.send(bytes.fromhex("0800f7ff00000000"))
        try:
            answered or pings.recv(64)
            answered or print("ready", flush=True)
            answered = True
        except TimeoutError:
            continue
        time.sleep(0.001)
"""


async def ready(*argv: str) -> asyncio.subprocess.Process:
    """A program that has said that it is ready."""
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


def until_woken(clocks: Clocks, ends: dict[int, int]) -> list[ClockLook]:
    """Looks until each of those cores has a pause that ended at that moment or later (nanoseconds), as long as it may take on a busy machine.

    A clock says of a pause once it has woken from it, which is later where another program of its priority waits for the core as well.
    """
    looks = [clocks.look()]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not all(
        any(one.core == core and one.woke >= end for one in clocks.pauses) for core, end in ends.items()
    ):
        time.sleep(0.01)
        looks.append(clocks.look())
    return looks


def test_a_core_that_is_taken_away_is_seen():
    """A program as high as the clocks, which no clock can displace, is to them as a host that takes the core."""
    clocks = Clocks()
    try:
        clocks.look()
        argv = [sys.executable, "-c", HOLD, str(CORES[0])]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        due, begin, end = map(int, done.stdout.split()[1:])
        looks = until_woken(clocks, {CORES[0]: end})
    finally:
        clocks.close()
    (pause,) = [one for one in clocks.pauses if one.core == CORES[0] and one.due < end - 10_000_000 and one.woke >= end]
    assert pause.ran <= pause.due < pause.woke
    assert due - 10_000_000 < pause.due, "it began when the core was taken, but for a sleep of the clock"
    assert max(look.longest for look in looks) >= 20_000
    told = pauses.host(clocks.pauses, begin, end)
    assert told["pause_share"] > 0.6
    assert told["pause_longest"] > 0.02


def test_the_clocks_wake_no_more_often_than_twice_a_millisecond():
    """Below that what a wake-up costs decides, which is the machine's: crates/cores tests by which rule."""

    def wakeups(pid: int) -> int:
        texts = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/status")]
        return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in texts)

    clocks = Clocks()
    try:
        time.sleep(1)
        begun, before = time.monotonic(), wakeups(clocks._process.pid)
        time.sleep(2)
        count, took = wakeups(clocks._process.pid) - before, time.monotonic() - begun
    finally:
        clocks.close()
    # Less where a core stood still meanwhile: what was missed is one wake-up. More by those of the threads that report.
    assert 0 < count / took / len(CORES) < 2000 * 1.02


@pytest.mark.proof("the clocks that see a machine stand still cost about a hundredth of a core each")
def test_the_clocks_cost_less_than_a_hundredth_of_a_core_each():
    clocks = Clocks()
    try:
        time.sleep(1)
        used, begun = clocks.cpu_seconds(), time.monotonic()
        time.sleep(3)
        used, took = clocks.cpu_seconds() - used, time.monotonic() - begun
    finally:
        clocks.close()
    assert 0 < used / took / len(CORES) < 0.02, "0.008 is aimed at, and a busy machine makes single wake-ups dearer"


def test_they_end_with_the_command():
    text = "import os, time\nfrom tunnelmark.host.pauses import Clocks\nprint(Clocks()._process.pid, flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        clocks = int(command.stdout.readline())
        pidfd = os.pidfd_open(clocks)
        command.kill()

        assert select.select([pidfd], [], [], 30)[0], "the clocks go on"


@pytest.mark.parametrize("awake", [False, True])
def test_wakeups_are_measured_and_nothing_is_left(awake):
    seen = wakeups.measure(0.5, awake)
    assert 0 < seen.p50 <= seen.p99 <= seen.longest
    assert 0 <= seen.pause_share <= 1
    mounts = [mount for mount in (cgroups.find().cpu, cgroups.find().unified) if mount is not None]
    assert [folder for mount in mounts for folder in mount.glob(f"tunnelmark-{os.getpid()}-*")] == []


def test_what_a_pause_made_late_is_not_the_emulators_own(tmp_path):
    """All cores are taken away for 30 ms while packets are on their way over a link of 50 ms."""
    way = Direction(delay=Duration.parse("50 ms"))
    profile = Profile("slow", "50 ms each way", "test", way, way)

    async def run():
        async with LabClient() as labs:
            labs.watch()
            assert "clocks_not" not in labs.record
            begun = time.monotonic()
            async with labs.lab(PAIR, profile, raw=tmp_path) as lab:
                # Outside the node's control group, which has no budget of real-time priority.
                inside = ["nsenter", "-t", str(lab.nodes["a"].pid), "--net"]
                pings = await ready(*inside, sys.executable, "-c", PINGS, str(lab.address("b")))
                holders = [await ready(sys.executable, "-c", HOLD, str(core)) for core in CORES]
                together = f"{time.monotonic() + 0.3}\n".encode()
                for holder in holders:
                    assert holder.stdin is not None
                    holder.stdin.write(together)
                for holder in holders:
                    assert await holder.wait() == 0
                await asyncio.sleep(0.2)  # what was on its way arrives
                pings.terminate()
                await pings.wait()
                return await lab.link_reports(), await lab.stood_still(begun, time.monotonic())

    (report,), still = asyncio.run(run())
    for way_report in report["directions"]:
        whole, own = way_report["lateness_us"], way_report["own_lateness_us"]
        # Those that the last report of pauses does not cover are not counted yet.
        assert 0 < own["count"] <= whole["count"]
        assert whole["max"] > 10_000, "no packet was on its way while the cores were taken"
        # Not the own one's maximum: packets of other tests' labs, which run meanwhile, may keep this emulator waiting, too.
        assert way_report["excused_lateness_us"]["max"] > 10_000, way_report
    assert still["pause_longest"] > 0.02
    assert still["pause_share"] > 0
    assert still["pauses"] >= len(CORES)


def test_the_emulator_knows_of_pauses_long_before_it_is_asked(tmp_path, monkeypatch):
    """It keeps only so many late packets until it knows, and more leave late in minutes of a fast transfer."""
    monkeypatch.setattr(labs_module, "_TELL", 0.05)

    async def run() -> list[str]:
        async with LabClient() as labs:
            labs.watch()
            async with labs.lab(PAIR, Profile("slow", "5 ms", "test", WAY, WAY), raw=tmp_path) as lab:
                said: list[str] = []
                (emulator,) = lab._emulators
                say = emulator._say

                async def heard(line: str) -> None:
                    said.append(line)
                    await say(line)

                monkeypatch.setattr(emulator, "_say", heard)
                while len(said) < 3:
                    await asyncio.sleep(0.01)
                assert await lab.link_reports()
            told = len(said)
            await asyncio.sleep(0.2)
            assert len(said) == told, "of a lab that has ended nothing is said"
            return said

    lines = asyncio.run(run())
    until = [json.loads(line.removeprefix("pauses "))["until"] for line in lines if line.startswith("pauses ")]
    assert len(until) >= 3 and until == sorted(until)


def test_two_that_look_at_once_both_know_of_all_pauses():
    """One look takes what was seen since the one before, whoever asked for it."""
    clocks = Clocks()
    try:
        with ThreadPoolExecutor(4) as threads:
            pipe, argv = subprocess.PIPE, [sys.executable, "-c", HOLD]
            holders = {
                core: subprocess.Popen([*argv, str(core)], stdin=subprocess.DEVNULL, stdout=pipe) for core in CORES
            }
            looks = [threads.submit(clocks.seen) for _ in range(200)]
            said = {core: holder.communicate()[0].split() for core, holder in holders.items()}
            until_woken(clocks, {core: int(words[-1]) for core, words in said.items()})
            looks.append(threads.submit(clocks.seen))
            found = sorted((look.result() for look in looks), key=lambda seen: seen.until)
    finally:
        clocks.close()
    assert found[-1].pauses
    for seen in found:
        assert found[-1].pauses[: len(seen.pauses)] == seen.pauses
        assert {each for each in found[-1].pauses if each.woke < seen.until - 5_000_000} <= set(seen.pauses)
