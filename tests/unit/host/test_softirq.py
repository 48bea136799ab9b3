"""CPU time that no control group has: what a core's tasks ran by the scheduler's count, and workers that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.host import keep_awake, softirq
from tunnelmark.linux.kernel_threads import Thread

SCHEDSTAT = """\
version 15
timestamp 4295029181
cpu0 0 0 34215 10230 17203 6120 9000000000 1512004410 23651
domain0 3 123 123 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
cpu1 0 0 24001 8823 12410 4099 4000000000 902231104 15122
"""
STAT = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 {0} 0 3 7 0 0 0\ncpu1 0 0 0 {1} 0 0 0 0 0 0\nintr 0\n"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pure cgroup v2 host, 20 s after its start: core 0 idle for 10 s and core 1 for 15 s of them."""
    (tmp_path / "schedstat").write_text(SCHEDSTAT)
    stat = STAT.format(*(round(seconds / softirq._TICK**-1) for seconds in (10, 15)))
    words = {int(line.split()[0][3:]): line.split() for line in stat.splitlines()[1:3]}
    monkeypatch.setattr(softirq, "_SCHEDSTAT", tmp_path / "schedstat")
    monkeypatch.setattr(softirq, "_stat", lambda: words)
    monkeypatch.setattr(softirq, "_cpuacct", lambda: None)
    monkeypatch.setattr("tunnelmark.host.softirq.time.monotonic", lambda: 20.0)
    monkeypatch.setattr(keep_awake, "STANDING", [])
    return tmp_path


def test_without_cgroup_v1_the_scheduler_says_what_ran(kernel: Path):
    assert softirq.ran() == 13.0
    assert softirq.unbilled() == pytest.approx({0: 1.0, 1: 1.0})


def test_where_nobody_counts_nothing_is_said(kernel: Path):
    (kernel / "schedstat").unlink()
    assert (softirq.ran(), softirq.unbilled()) == (None, {})


def test_a_core_that_is_kept_awake_is_told_by_its_loop(kernel: Path, monkeypatch: pytest.MonkeyPatch):
    """The scheduler adds a turn when it ends, and a loop's does not."""
    monkeypatch.setattr(keep_awake, "interrupted", lambda: {0: 0.25})
    assert softirq.unbilled() == pytest.approx({0: 0.25, 1: 1.0})


def test_what_this_machine_cannot_count_is_said(kernel: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(softirq, "_interrupts_apart", lambda: True)
    assert softirq.lacking() is None, "the scheduler counts"
    monkeypatch.setattr(keep_awake, "interrupted", lambda: {0: 0.25, 1: 0.25})
    assert "CONFIG_IRQ_TIME_ACCOUNTING" in (softirq.lacking() or "")
    monkeypatch.setattr(keep_awake, "interrupted", dict)
    (kernel / "schedstat").unlink()
    assert "the kernel does not count" in (softirq.lacking() or "")


def test_workers_that_are_born_count_and_those_that_end_take_nothing_back(monkeypatch: pytest.MonkeyPatch):
    there = {1: Thread("kworker", 0), 2: Thread("kworker", 1), 3: Thread("ksoftirqd", 0)}
    used = {1: 5.0, 2: 7.0, 3: 1.0}
    monkeypatch.setattr(softirq, "_WORKED", {})
    monkeypatch.setattr(softirq._CENSUS, "look", lambda: there)
    monkeypatch.setattr(softirq, "_of", used.get)
    assert softirq.workers() == {0: 5.0, 1: 7.0}
    assert softirq.seconds() == {0: 1.0}
    del there[1]
    there[4] = Thread("kworker", 0)
    used |= {4: 0.5, 2: 7.5}
    assert softirq.workers() == {0: 5.5, 1: 7.5}


def test_this_machine_says_something_or_nothing_but_no_nonsense():
    first, again = softirq.workers(), softirq.workers()
    assert all(again[core] >= spent for core, spent in first.items())
    assert all(spent >= 0 for spent in softirq.seconds().values())
