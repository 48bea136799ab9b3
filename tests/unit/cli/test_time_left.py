"""The time that is left is the planned traffic, and what a trial takes besides it; waiting for a quiet machine is no part of a trial."""

from __future__ import annotations

from tunnelmark.cli.progress_events import PlanEvent, TimeLeft, TrialEvent, WaitEvent


def trial(state: str, done: int, outcome: str = "") -> TrialEvent:
    return TrialEvent(state, "t", 1, "tinc", "lan", "pair", "tcp", done, 10, 2.0, outcome=outcome)  # type: ignore[arg-type]


def left(wait: float) -> float:
    """After one trial of ten, which took a second besides its two of traffic, and a wait before it."""
    now = 0.0
    time = TimeLeft(lambda: now)
    time.take(PlanEvent("s", "S", "r", 1, 10, 0, 20.0, besides=1.0))
    time.take(WaitEvent("calm", "waiting"))
    now = wait
    time.take(trial("begin", 0))
    now += 3.0
    time.take(trial("end", 1, "ok"))
    return time.seconds


def test_a_wait_is_no_part_of_what_each_trial_takes() -> None:
    """As it was, a minute's wait before the first of 200 trials added an hour to what was said to be left."""
    assert left(wait=59.0) == left(wait=0.0) == 18.0 + 9 * 1.0
