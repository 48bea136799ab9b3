"""Links are looked at again where a look is outside, every look is kept, and one without a rate is refused where that is asked for."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from tunnelmark.analyse.link import judge
from tunnelmark.cli import run_links
from tunnelmark.errors import LabError, UsageError
from tunnelmark.lab.client import LabClient
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.plan.model import Arm, Plan, Study, Trial, WorkloadUse
from tunnelmark.record.journal import Journal, entries
from tunnelmark.record.link_check import LinkCheck, LinkLine, When
from tunnelmark.units import Duration

FILES = Files.standard()
DIRECT, PING = Arm("direct", "direct"), WorkloadUse("ping", "ping")
PROFILE, PAIR = load_profile("wifi-good+gigabit", FILES), load_topology("pair", FILES)


class Alive:
    """A lab server that is there."""

    async def check(self) -> None:
        pass


LINES = ("rate", "delay_p99", "distribution")


def check(*outside: str) -> LinkCheck:
    """A look that found these lines outside, and the others inside."""
    lines = tuple(LinkLine("a>b", name, "ms", "", 1.0, 0.0, 1.0, 2.0, name not in outside) for name in LINES)
    verdict: Any = "outside" if outside else "verified"
    return LinkCheck(PROFILE.name, "pair", "before", 1.0, 1.0, verdict, "; ".join(outside), lines)


class Looked:
    """What became of links whose looks find these, one after the other (an error: the look fails)."""

    def __init__(
        self,
        folder: Path,
        found: Sequence[LinkCheck | LabError],
        monkeypatch: pytest.MonkeyPatch,
        rounds: Sequence[When] = ("before",),
        **more: Any,
    ) -> None:
        left = list(found)
        self.waits = 0
        self.said = io.StringIO()

        async def observe(*_: object, **__: object) -> object:
            look = left.pop(0)
            if isinstance(look, LabError):
                raise look
            return look

        async def calm() -> None:
            self.waits += 1

        monkeypatch.setattr(run_links, "observe", observe)
        monkeypatch.setattr(judge, "judge", lambda _, seen, when, raw=(): replace(seen, when=when, raw=raw))
        monkeypatch.setattr(run_links, "PAUSE", 0.0)
        (folder / "raw").mkdir()
        self.path = folder / "journal.jsonl"
        study = Study("s", "S", "", 1, 1, Duration(1), (DIRECT,), (PROFILE,), (PAIR,), (PING,), "")
        self.trial = cast(Trial, type("Trial", (), {"profile": PROFILE, "topology": PAIR}))

        async def all_of_it() -> None:
            with Journal(self.path) as journal:
                console = Console(file=self.said, width=200)
                looked = run_links.RunLinks(
                    Plan(study, ()), cast(LabClient, Alive()), folder, journal, console, calm, **more
                )
                for when in rounds:
                    await looked.verify(when)
                self.before = looked.trouble(self.trial)
                for _ in range(9 if left else 0):
                    await looked.again(self.trial)
                self.later = looked.trouble(self.trial)

        asyncio.run(all_of_it())
        self.kept = [entry["link"]["verdict"] for entry in entries(self.path)]
        self.unseen = len(left)


def test_a_link_that_is_proved_is_looked_at_once(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check()], monkeypatch)
    assert (seen.before, seen.kept, seen.waits, seen.said.getvalue()) == (None, ["verified"], 0, "")


def test_a_look_that_is_outside_is_taken_again_after_a_wait_and_both_are_kept(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check("delay_p99"), check()], monkeypatch)
    assert (seen.before, seen.kept, seen.waits) == (None, ["outside", "verified"], 1)
    assert "looking again (2 of 3)" in seen.said.getvalue()


def test_what_is_outside_in_one_look_and_inside_in_another_is_verified(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check("delay_p99"), check("distribution")], monkeypatch)
    assert (seen.before, seen.kept) == (None, ["outside", "outside"])


def test_what_is_outside_in_every_look_is_given_up_within_bounds(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check("rate")] * 20, monkeypatch)
    assert str(seen.before).endswith("(before the trials): rate")
    assert seen.later is not None
    assert len(seen.kept) == run_links.LOOKS + run_links.LATER
    assert "void:" in seen.said.getvalue()


def test_a_later_look_proves_it(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check("rate")] * 4 + [check()], monkeypatch)
    assert seen.before is not None
    assert seen.later is None


def test_a_look_that_failed_acquits_no_link(tmp_path: Path, monkeypatch):
    failed = LabError("the prober on a did not end in time", hint="the machine is overloaded")
    seen = Looked(tmp_path, [check("rate"), failed, failed], monkeypatch)
    assert str(seen.before).endswith("(before the trials): rate")


def test_each_round_between_trials_is_judged_by_itself(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check(), *[check("rate")] * 3], monkeypatch, rounds=("during", "during"))
    assert str(seen.before).endswith("(during the trials): rate")
    assert [entry["link"]["round"] for entry in entries(seen.path)] == [1, 2, 2, 2]


def test_a_look_that_fails_is_no_end_of_the_run(tmp_path: Path, monkeypatch):
    failed = LabError("the prober on a did not end in time", hint="the machine is overloaded")
    seen = Looked(tmp_path, [failed, check()], monkeypatch)
    assert (seen.before, seen.kept) == (None, ["outside", "verified"])
    assert "did not end in time" in seen.said.getvalue()


def test_with_a_single_look_asked_for_there_is_one(tmp_path: Path, monkeypatch):
    seen = Looked(tmp_path, [check("rate")] * 3, monkeypatch, looks=1)
    assert (len(seen.kept), seen.waits) == (1, 0)


def test_a_search_for_the_most_that_a_link_carries_needs_a_rate():
    free = load_profile("wifi-bad", FILES)
    with pytest.raises(UsageError, match="latency looks for the most") as caught:
        run_links.require_rates([free], ["latency"])
    assert "wifi-bad+fast-ethernet" in caught.value.hint
    run_links.require_rates([free], [])
    for name in ("wifi-bad+fast-ethernet", "gigabit", "unshaped", "home-dsl", "train"):
        run_links.require_rates([load_profile(name, FILES)], ["latency", "udp-search"])


def test_only_what_searches_is_refused():
    from tunnelmark import registry
    from tunnelmark.run.runner import RunContext

    context = RunContext(registry.vpns(), registry.workloads(), 212992)
    asked = {name: context.searches(WorkloadUse(name, name)) for name in registry.workloads()}
    assert {name for name, searches in asked.items() if searches} == {"latency", "udp-search"}
    assert not context.searches(WorkloadUse("idle", "latency", {"load": ["0 %"]}))
