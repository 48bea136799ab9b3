"""The kernel's threads: which they are by their names, what weight they get beside a lab, and that they get their own back."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from tunnelmark.host import fair_nice
from tunnelmark.linux import cgroups, kernel_threads
from tunnelmark.linux.cgroups import Hierarchies
from tunnelmark.linux.kernel_threads import Raised, Thread


@pytest.mark.parametrize(
    ("comm", "thread"),
    [
        ("ksoftirqd/0\n", Thread("ksoftirqd", 0)),
        ("ksoftirqd/63", Thread("ksoftirqd", 63)),
        ("kworker/1:0", Thread("kworker", 1)),
        ("kworker/12:3-wg-crypt-wg0", Thread("kworker", 12)),
        ("kworker/0:1+events", Thread("kworker", 0)),
        ("kworker/0:0H-kblockd", Thread("kworker", 0, high=True)),
        ("kworker/u8:2-writeback", None),
        ("kworker/R-wg-crypt-wg0", None),
        ("kworker/3", None),
        ("ksoftirqd/1:0", None),
        ("rcu_preempt", None),
    ],
)
def test_threads_are_known_by_their_names(comm: str, thread: Thread | None):
    assert kernel_threads.read(comm) == thread


def test_a_thread_that_has_no_name_yet_is_looked_at_again(monkeypatch: pytest.MonkeyPatch):
    names = {10: "kthreadd", 11: "rcu_preempt"}
    monkeypatch.setattr(os, "listdir", lambda _: ["10", "11", "self"])
    monkeypatch.setattr(kernel_threads, "kernel_name", names.__getitem__)
    census = kernel_threads.Census()
    assert census.look() == {}
    names |= {10: "kworker/1:0", 11: "kworker/1:1"}
    assert census.look() == {10: Thread("kworker", 1)}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Threads 10 to 13 with their nice values: ksoftirqd, a worker, a worker of high priority, one somebody has set."""
    kinds = {10: Thread("ksoftirqd", 0), 11: Thread("kworker", 0), 12: Thread("kworker", 0, high=True)}
    nices = {10: 0, 11: 0, 12: -20, 13: -5}

    def look(_: object) -> dict[int, Thread]:
        return {process: kinds.get(process, Thread("kworker", 1)) for process in nices}

    monkeypatch.setattr(kernel_threads.Census, "look", look)
    monkeypatch.setattr(kernel_threads, "thread", lambda process: look(None).get(process))
    monkeypatch.setattr(os, "getpriority", lambda _, process: nices[process])
    monkeypatch.setattr(os, "setpriority", lambda _, process, nice: nices.__setitem__(process, nice))
    return nices


def test_those_with_the_kernels_own_value_are_raised_and_get_it_back(machine: dict[int, int]):
    raised = Raised(-18)
    raised.raise_all()
    assert machine == {10: -18, 11: -18, 12: -20, 13: -5}
    raised.restore()
    assert machine == {10: 0, 11: 0, 12: -20, 13: -5}


def test_a_worker_that_is_born_later_is_met_and_one_that_has_ended_is_no_trouble(machine: dict[int, int]):
    raised = Raised(-18)
    raised.raise_all()
    del machine[11]
    machine[14] = 0
    raised.raise_all()
    assert machine[14] == -18
    raised.restore()
    assert machine == {10: 0, 12: -20, 13: -5, 14: 0}


def test_what_somebody_has_set_meanwhile_is_left_alone(machine: dict[int, int]):
    raised = Raised(-18)
    raised.raise_all()
    machine[10] = -3
    raised.restore()
    assert machine[10] == -3


def test_two_labs_leave_nothing_whichever_ends_first(machine: dict[int, int]):
    one, other = Raised(-18), Raised(-18)
    for lab in (one, other):
        lab.raise_all()
    one.restore()
    assert machine[10] == 0
    other.raise_all()  # as its janitor does twice a second
    assert machine[10] == -18
    other.restore()
    assert machine == {10: 0, 11: 0, 12: -20, 13: -5}


def test_what_a_killed_janitor_has_left_is_given_back(machine: dict[int, int]):
    Raised(-18).raise_all()
    kernel_threads.restore_all(-18)
    assert machine == {10: 0, 11: 0, 12: -20, 13: -5}


def test_a_nice_value_of_nothing_changes_nothing(machine: dict[int, int]):
    Raised(0).raise_all()
    assert machine == {10: 0, 11: 0, 12: -20, 13: -5}


@pytest.mark.parametrize(("weight", "nice"), [(1024, 0), (1, 0), (131072, -20), (51200, -18), (14577, -12), (9e9, -20)])
def test_a_nice_value_weighs_as_much_as_the_lab(weight: float, nice: int):
    assert fair_nice.nice_of(weight) == nice


def test_each_step_of_nice_is_a_quarter():
    steps = [math.log(one / other) for one, other in zip(fair_nice.WEIGHTS, fair_nice.WEIGHTS[1:], strict=False)]
    assert len(fair_nice.WEIGHTS) == 21
    assert all(math.log(1.2) < step < math.log(1.3) for step in steps)


def test_the_labs_own_group_decides_and_below_another_that_group(tmp_path: Path):
    v1, v2, none = (
        Hierarchies(None, tmp_path, tmp_path),
        Hierarchies(tmp_path, tmp_path, tmp_path),
        Hierarchies(None, None),
    )
    assert [fair_nice.nice_beside(found) for found in (v1, v2, none)] == [-20, -18, -12]
    below = tmp_path / "slow" / "slower"
    below.mkdir(parents=True)
    (tmp_path / "slow" / "cpu.shares").write_text("1024\n")
    assert fair_nice.nice_beside(Hierarchies(None, below, tmp_path)) == 0
    (tmp_path / "slow" / "cpu.weight").write_text("10000\n")
    assert fair_nice.nice_beside(Hierarchies(below, below, tmp_path)) == -18


def test_this_machine_is_read_as_it_is():
    assert cgroups.find().cpu_mount == cgroups.mounted()[1]
    cores = {thread.core for thread in kernel_threads.Census().look().values() if thread.kind == "ksoftirqd"}
    assert cores == set() or 0 in cores
