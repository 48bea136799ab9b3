"""What a run says while it goes: a reason once, void apart from failed, and at once if most of a block is void."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli.progress import RunProgress, estimate, price
from tunnelmark.cli.progress_views import LineView
from tunnelmark.model.attempt import Attempt, Failure
from tunnelmark.plan.enough import Enough
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.run.runner import RunContext
from tunnelmark.units import clock

PLAN = order(load_study("quick", Files.standard(), registry.catalogue(), blocks=2))
CONTEXT = RunContext(registry.vpns(), registry.workloads(), 212992)
REASON = "the link wifi was not what it says (before the trials): delay, 99th percentile a>b: {:.3f} ms, not 9.542 ms to 10.542 ms"


def live() -> tuple[RunProgress, io.StringIO]:
    said = io.StringIO()
    listener = RunProgress(LineView(Console(file=said, width=300)), PLAN, CONTEXT)
    listener.begun(())
    return listener, said


def ended(place: int, outcome: Any = "void", number: int = 1) -> Attempt:
    failure = (
        Failure("trial-void", REASON.format(10.897 + place), "keep the machine quiet") if outcome == "void" else None
    )
    return Attempt(PLAN.trials[place], outcome, "a>b", 0.0, {}, failure=failure, number=number)


def test_a_long_reason_is_printed_once():
    collector, said = live()
    for place in range(8):
        collector.begin(PLAN.trials[place])
        collector.end(ended(place))
    assert said.getvalue().count("10.542 ms") == 1
    assert said.getvalue().count("(as before)") == 7


def test_a_block_that_is_mostly_void_is_told_at_once_with_what_can_be_done_and_the_next_in_short():
    collector, said = live()
    collector.block([ended(0), ended(1), ended(2, "ok")])
    first = said.getvalue()
    assert "2 of 3 trials are void, which is the laboratory's fault and not a VPN's" in first
    assert "keep the machine quiet" in first
    assert "--backend vm" in first
    collector.block([ended(0), ended(1), ended(2, "ok")])
    assert said.getvalue()[len(first) :].count("keep the machine quiet") == 0


def test_a_block_with_nothing_void_is_not_worth_a_word():
    collector, said = live()
    collector.block([ended(0, "ok"), ended(1, "failed")])
    assert said.getvalue() == ""


def test_a_second_attempt_says_so_and_moves_no_count():
    collector, said = live()
    for number in (1, 2):
        collector.begin(PLAN.trials[0])
        collector.end(ended(0, "ok", number))
    lines = said.getvalue().splitlines()
    assert lines[0].startswith(f"[1/{len(PLAN.trials)}]")
    assert lines[1].startswith(f"[1/{len(PLAN.trials)}]")
    assert "(attempt 2)" in lines[1]


def test_an_added_block_is_told_and_counted():
    collector, said = live()
    collector.more(PLAN.trials[:3])
    assert "3 trials" in said.getvalue()
    collector.begin(PLAN.trials[0])
    collector.end(ended(0, "ok"))
    assert f"[1/{len(PLAN.trials) + 3}]" in said.getvalue()


def test_the_price_of_a_run_that_grows_is_its_first_blocks_and_all_that_there_may_be():
    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    first = estimate(PLAN, context)
    assert price(PLAN, context) == f"about {clock(first)}"

    def said(enough: Enough) -> str:
        return price(replace(PLAN, study=replace(PLAN.study, enough=enough)), context)

    assert f"at most {clock(10 * first)} in all" in said(Enough(2, 20, 0.05))
    assert f"at most {clock(2 * first)} in all" in said(Enough(2, 20, 0.05, 2 * first))
    assert "none is added" in said(Enough(2, 20, 0.05, first / 2))


def test_added_blocks_are_counted():
    collector, said = live()
    collector.longer(PLAN.trials)
    collector.begin(PLAN.trials[0])
    collector.end(ended(0, "ok"))
    assert f"[1/{2 * len(PLAN.trials)}]" in said.getvalue()
