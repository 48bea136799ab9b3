"""The live view: what runs and in which phase, what follows, how far, how long in the user's time, ratios so far; within the terminal, and seldom."""

from __future__ import annotations

import io
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from tunnelmark import registry
from tunnelmark.analyse.so_far import EffectsSoFar
from tunnelmark.cli.live_view import LiveState, LiveView, region
from tunnelmark.cli.progress import RunProgress
from tunnelmark.cli.progress_events import ProgressEvent, TimeLeft, TrialEvent
from tunnelmark.cli.progress_views import ProgressView
from tunnelmark.model.attempt import Attempt, Failure
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.run.runner import RunContext
from unit.builders import PING, TCP, Study

PLAN = order(load_study("quick", Files.standard(), registry.catalogue(), blocks=3))
CASCADE = order(load_study("cascade", Files.standard(), registry.catalogue(), blocks=1))
FIRST = [trial for trial in PLAN.trials if trial.block == 1]
MADE = Study(workloads=(TCP, PING), tcp={"tinc": 0.5}, blocks=4)
LOCAL_NOON = time.mktime((2026, 1, 2, 12, 0, 0, 0, 0, -1))


class Kept(ProgressView):
    """Keeps the state that a live view would have, and the time by a clock of the test."""

    wants_ratios = True

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.time = TimeLeft(lambda: self.now)
        self.state = LiveState()
        self.events: list[ProgressEvent] = []

    def show(self, event: ProgressEvent) -> None:
        self.events.append(event)
        self.state.take(event)

    def lines(self, width: int = 80, height: int = 24) -> list[str]:
        return region(self.state, self.time, width, height, LOCAL_NOON)


def following(effects: EffectsSoFar | None = None) -> tuple[RunProgress, Kept]:
    view = Kept()
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    return RunProgress(view, PLAN, context, results="results/x", effects=effects), view


def ended(place: int, outcome: Any = "ok", number: int = 1) -> Attempt:
    failure = None if outcome == "ok" else Failure("not-ready", f"no ping from a to b ({place})", "look at the log")
    return Attempt(PLAN.trials[place], outcome, "a>b", 0.0, {}, failure=failure, number=number)


def test_it_says_what_runs_in_which_phase_and_what_follows():
    listener, view = following()
    listener.begun(())
    trial, after = PLAN.trials[:2]
    listener.phase(trial, "deploy")
    assert f"now   {trial.arm.name} · {trial.profile.name}" in view.lines()[2]
    assert view.lines()[2].endswith("the VPN is started")
    listener.begin(trial)
    listener.phase(trial, "measure")
    listener.phase(after, "lab")  # is prepared for later
    assert ": traffic, " in view.lines()[2]
    assert (
        view.lines()[3] == f"next  {after.arm.name} · {after.profile.name} · {after.topology.name} · {after.use.name}"
    )
    assert view.lines()[1].startswith(f"block 1 of 3, trial 0 of {len(PLAN.trials)}")


def test_a_wait_is_shown_until_a_trial_runs():
    listener, view = following()
    listener.wait("links", "looking at the link auto, pair")
    assert view.lines() == ["now   looking at the link auto, pair"]
    listener.begun(())
    listener.wait("calm", "waiting for calm: other work takes 0.80 cores")
    assert "now   waiting for calm" in view.lines()[2]
    listener.begin(PLAN.trials[0])
    assert "waiting" not in "\n".join(view.lines())


def test_a_trial_counts_once_also_if_an_earlier_session_has_tried_it():
    listener, view = following()
    listener.begun({PLAN.trials[5].id})
    for number in (2, 3):  # its first attempt was made before this session
        listener.begin(PLAN.trials[0])
        listener.end(ended(0, "void" if number == 2 else "ok", number))
    assert view.lines()[1].startswith(f"block 1 of 3, trial 2 of {len(PLAN.trials)}")
    assert [one.counted for one in view.events if isinstance(one, TrialEvent) and one.state == "end"] == [True, False]


def test_the_time_left_is_by_the_users_clock_whatever_the_guests_says():
    listener, view = following()
    listener.begun(())
    planned = view.time.seconds
    for place in range(10):  # in a guest that is five times as slow as it believes
        traffic = listener._context.seconds(PLAN.trials[place])
        listener.begin(PLAN.trials[place])
        view.now += 5 * (traffic + 0.35)
        listener.end(ended(place))
    rest = len(PLAN.trials) - 10
    assert view.time.seconds > 3 * planned * rest / len(PLAN.trials)
    assert ", until 12:" in "\n".join(view.lines())


def test_the_first_trial_alone_does_not_decide_how_long_the_others_will_take():
    listener, view = following()
    listener.begun(())
    planned = view.time.seconds
    listener.begin(PLAN.trials[0])
    view.now += listener._context.seconds(PLAN.trials[0]) + 6  # its deployment took long
    listener.end(ended(0))
    assert planned < view.time.seconds < planned + 2.1 * len(PLAN.trials)


def test_round_trips_count_in_what_is_expected():
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    far, near = (
        next(trial for trial in CASCADE.trials if (trial.profile.name, trial.topology.name) == path)
        for path in (("cascade-internet", "chain-3"), ("gigabit", "chain-1"))
    )
    assert context.besides(far) > context.besides(near) + 2  # 240 ms of round trip
    assert context.besides(near) < 1


def test_what_a_vpn_takes_until_it_answers_counts_in_what_is_expected():
    """ZeroTier's nodes answer after some ten seconds: an estimate of 49 minutes became 80."""
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    mesh = order(load_study("mesh-vpns", Files.standard(), registry.catalogue(), smoke=True)).trials
    slow, bare = (next(trial for trial in mesh if trial.arm.name == name) for name in ("zerotier", "direct"))
    slow = replace(slow, profile=bare.profile)
    more = context.besides(slow) - context.besides(bare)
    assert more == pytest.approx(registry.vpns()["zerotier"].startup_time)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (200, 60)])
def test_it_holds_in_the_terminal_and_leaves_room_for_the_log(width: int, height: int):
    listener, view = following(EffectsSoFar(MADE.results().plan, MADE.results().trials))
    listener.begun(())
    for place in range(len(FIRST)):
        listener.begin(PLAN.trials[place])
        listener.end(ended(place))
    listener.block([ended(place) for place in range(len(FIRST))])
    lines = view.lines(width, height)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) <= max(height - 6, 7)


def test_ratios_follow_each_block_with_intervals_and_without_a_verdict():
    results = MADE.results()
    listener, view = following(EffectsSoFar(results.plan, results.trials))
    listener.begun(())
    listener.block([ended(place) for place in range(len(FIRST))])
    text = "\n".join(view.lines(120, 40)).replace("\N{NO-BREAK SPACE}", " ")
    assert "gigabit, pair: against direct in 4 blocks with 95 % intervals; no verdict yet" in text
    row = next(line for line in text.splitlines() if line.startswith("tinc"))
    assert "% [" in row and "× [" in row
    assert not set("▲▼=?") & set(text)


def test_ratios_so_far_are_those_of_the_analysis():
    from tunnelmark.analyse import judge

    results = MADE.results()
    found = {(one.arm, one.setting, one.metric): one for _, one in EffectsSoFar(results.plan, results.trials).effects()}
    assert found
    for pair in (pair for pair in judge(results).pairs if pair.against == "direct" and pair.arm != "direct-again"):
        if (pair.arm, pair.setting, pair.metric) in found:
            same = found[pair.arm, pair.setting, pair.metric]
            assert (same.estimate, same.interval, same.blocks) == (pair.estimate, pair.interval, pair.blocks)


def test_ratios_cost_nothing_where_nobody_sees_them():
    class Refuses(EffectsSoFar):
        def effects(self) -> Any:
            raise AssertionError

    view = ProgressView()
    listener = RunProgress(
        view, PLAN, RunContext(registry.vpns(), registry.workloads(), 212992), effects=Refuses(MADE.results().plan)
    )
    listener.block([ended(0)])


def terminal() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=80, height=24, force_terminal=True, color_system=None), out


def test_what_is_said_once_stays_and_the_region_goes():
    console, out = terminal()
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    with LiveView(console) as view:
        listener = RunProgress(view, PLAN, context)
        listener.begun(())
        listener.begin(PLAN.trials[0])
        listener.end(ended(0, "failed"))
        listener.wait("calm", "waiting for calm: other work takes 0.80 cores")
        console.print("after 8 blocks, go on: not yet precise", soft_wrap=True)
    said = out.getvalue()
    for words in ("no ping from a to b (0)", "waiting for calm", "after 8 blocks, go on"):
        assert words in said
    assert "[1/" not in said, "a line for each trial is for where there is no terminal"
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l"), "the cursor is there again"


def test_it_is_drawn_when_something_changed_and_at_most_once_a_second():
    console, _ = terminal()
    view = LiveView(console)
    drawn: list[float] = []
    refresh = view._live.refresh
    once, twice = threading.Event(), threading.Event()

    def counted() -> None:
        drawn.append(time.monotonic())
        refresh()
        (once if len(drawn) == 1 else twice).set()

    view._live.refresh = counted  # type: ignore[method-assign]
    with view:
        listener = RunProgress(view, PLAN, RunContext(registry.vpns(), registry.workloads(), 212992))
        listener.begun(())
        assert once.wait(30)
        for place in range(40):
            listener.begin(PLAN.trials[place])
            listener.end(ended(place))
        assert twice.wait(30), "the last change is drawn, too"
    assert drawn[1] - drawn[0] >= 1.0
    assert len(drawn) <= 3, "rich draws once more when the view is taken away"


def test_the_added_blocks_of_a_run_are_counted():
    listener, view = following()
    listener.begun(())
    listener.longer([replace(trial, block=4) for trial in FIRST])
    assert f"trial 0 of {len(PLAN.trials) + len(FIRST)}" in view.lines()[1]
