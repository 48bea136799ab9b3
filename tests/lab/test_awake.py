"""Cores are kept awake while a lab stands: by loops that give way to everything, are in no account, and leave nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from support.labs import PAIR, UNSHAPED
from tunnelmark.host import keep_awake
from tunnelmark.lab.client import LabClient
from tunnelmark.linux import cgroups
from tunnelmark.run import interference

pytestmark = pytest.mark.root
CORES = sorted(os.sched_getaffinity(0))
BURN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print("there", flush=True)
while True: pass
"""


def standing(body):
    """What `body(loops)` finds while a lab server stands."""

    async def run():
        async with LabClient() as labs:
            assert labs.record["awake"] is True
            (loops,) = keep_awake.STANDING
            for _ in range(1000):
                if len(loops.spent()) == len(CORES) and min(own for own, _ in loops.spent().values()) > 0:
                    break
                await asyncio.sleep(0.02)
            else:
                pytest.fail("the loops got no time in 20 s")
            return await asyncio.to_thread(body, loops)

    found = asyncio.run(run())
    assert keep_awake.STANDING == []
    return found


def test_each_core_has_a_loop_of_idle_class_in_a_group_of_its_own():
    """One group for several cores has next to no weight on each, and that makes the scheduler keep a lab waiting for a hog."""

    def look(loops):
        processes = [[int(word) for word in (group / "cgroup.procs").read_text().split()] for group in loops.groups]
        return [[(*os.sched_getaffinity(one), os.sched_getscheduler(one)) for one in each] for each in processes]

    assert standing(look) == [[(core, os.SCHED_IDLE)] for core in CORES]


def test_a_loop_is_in_its_groups_as_soon_as_it_is_begun():
    """The caller moves it: one that moved itself slept, at idle class, with the locks of all control groups."""
    counts = keep_awake.memory(set(CORES))
    place = keep_awake.LoopGroups(cgroups.find(), f"tunnelmark-{os.getpid()}-begun", CORES)
    processes = keep_awake.begin(place, set(CORES), counts)
    try:
        held = [int((folder / "cgroup.procs").read_text()) for folder in place.folders]
        classes = {os.sched_getscheduler(process) for process in processes}
    finally:
        os.close(counts)
        keep_awake.end(place, processes)
    assert sorted(held) == sorted(processes * (len(held) // len(processes)))
    assert classes == {os.SCHED_IDLE}


def test_groups_that_refuse_a_loop_leave_no_process(tmp_path):
    counts = keep_awake.memory({CORES[0]})
    place = keep_awake.LoopGroups(cgroups.Hierarchies(tmp_path / "missing", None), "tunnelmark-1-a", CORES[:1])
    with pytest.raises(OSError, match="No such file"):
        keep_awake.begin(place, {CORES[0]}, counts)
    os.close(counts)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("session", [False, True])
def test_a_loop_gives_way_to_whatever_runs(session):
    """Counted in CPU time of both, between two moments in which a program of normal priority is busy on the loop's core."""

    def burn(loops):
        argv = [sys.executable, "-c", BURN, str(CORES[0])]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=session) as program:
            try:
                assert program.stdout is not None and program.stdout.readline()
                seen = [(_cpu(program.pid), loops.spent()[CORES[0]][0])]
                while seen[-1][0] < seen[0][0] + 0.7:
                    assert program.poll() is None
                    time.sleep(0.01)
                    seen.append((_cpu(program.pid), loops.spent()[CORES[0]][0]))
            finally:
                program.kill()
        return seen[0], seen[-1]

    (used, own), (used_later, own_later) = standing(burn)
    share = (used_later - used) / (used_later - used + own_later - own)
    assert share > 0.97, f"beside the loop a busy program had {100 * share:.1f} %"


WAKES = """
import time
late, end = [], time.perf_counter() + 3
while time.perf_counter() < end:
    begun = time.perf_counter()
    time.sleep(0.005)
    late.append(time.perf_counter() - begun - 0.005)
print(max(late))
"""


@pytest.mark.proof("busy programs of normal priority beside a lab do not keep its own waiting")
def test_a_lab_beside_busy_programs_does_not_wait_for_them():
    """A dozen labs, each made while a program is busy on every core: a second's wait came in one of ten, when all loops shared a group."""
    hog = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"

    async def one():
        async with LabClient() as labs, labs.lab(PAIR, UNSHAPED) as lab:
            runs = (lab.nodes[node].run([sys.executable, "-c", WAKES], timeout=60) for node in "ab")
            return [float(done.stdout) for done in await asyncio.gather(*runs)]

    hogs = [subprocess.Popen([sys.executable, "-c", hog, str(core)], start_new_session=True) for core in CORES]
    try:
        waits = [wait for _ in range(12) for wait in asyncio.run(one())]
    finally:
        for each in hogs:
            each.kill()
            each.wait()
    assert max(waits) < 0.3, f"{1e3 * max(waits):.0f} ms"


def _cpu(process):
    """CPU seconds of a process, 0 when it has ended."""
    try:
        return time.clock_gettime(~process << 3 | 2)
    except OSError:
        return 0.0


def test_its_time_is_in_no_account():
    """The machine's busy time without the loops and theirs together are no more than the cores had."""

    def own(loops):
        return sum(spent for spent, _ in loops.spent().values())

    def look(loops):
        begun, spent, before = time.monotonic(), own(loops), interference.glance(0.0)
        time.sleep(1)
        after, spent = interference.glance(0.0), own(loops) - spent
        return before, after, spent, own(loops), time.monotonic() - begun

    before, after, spent, ever, took = standing(look)
    assert ever > 0
    tick = 1 / os.sysconf("SC_CLK_TCK")  # /proc/stat counts in ticks: a core may have one more than fits into the time
    assert after.busy - before.busy + spent < (took + tick) * len(CORES)
    booked = interference.between(before, after)
    assert booked["softirq_cpu"] < len(CORES), "what came in place of the loops is no part of them"


def test_they_are_off_by_an_option_and_the_record_says_so(monkeypatch):
    monkeypatch.setenv(keep_awake.VARIABLE, "1")

    async def run():
        async with LabClient() as labs:
            return labs.record, list(keep_awake.STANDING)

    record, loops = asyncio.run(run())
    assert (record["awake"], record["awake_not"], loops) == (False, "switched off", [])


@pytest.fixture
def busy():
    """Three programs of normal priority on each core, beside which idle class gets next to nothing."""
    text = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    programs = [subprocess.Popen([sys.executable, "-c", text, str(core)], start_new_session=True) for core in 3 * CORES]
    yield
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_command_is_killed_and_cores_are_busy(number):
    text = (
        "import asyncio\nfrom tunnelmark.lab.client import LabClient\n"
        "async def main():\n    async with LabClient() as labs:\n"
        "        print(labs.record['awake'], flush=True)\n        await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "True\n"
        command.send_signal(number)
        command.wait()
    found = cgroups.find()
    mounts = [mount for mount in {found.cpu, found.unified} if mount is not None]

    def left():
        return [str(group) for mount in mounts for group in mount.glob(f"tunnelmark-{command.pid}-*")]

    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left() == [], "a group goes when the last process in it has"
