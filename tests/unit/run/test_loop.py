"""Which trials are prepared ahead: those whose VPN would otherwise not have settled by its turn."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tunnelmark import registry
from tunnelmark.lab.lab import Keeper
from tunnelmark.plan.model import Arm, Link, Plan, Profile, Study, Topology, Trial, Use
from tunnelmark.run.loop import Kit, carry_out
from tunnelmark.run.outcome import Attempt
from tunnelmark.units import Duration

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("wire", ("a", "b")),))
PROFILE = Profile("unshaped", "no shaper", "test")


def trials(*arms: str) -> list[Trial]:
    """One trial of two seconds for each arm, in this order."""
    use = Use("ping", "ping", {"duration": "2 s"})
    return [Trial(place, 1, Arm(arm, arm), PROFILE, PAIR, use) for place, arm in enumerate(arms)]


def kit(settling: float) -> Kit:
    drivers = dict(registry.vpns())
    drivers["tinc"] = replace(drivers["tinc"], settling=settling)
    return Kit(drivers, registry.workloads(), 212992)


@pytest.mark.parametrize(
    ("settling", "prepared"),
    [
        (0.0, []),
        (1.0, [1]),  # the next one: at its own turn it would be too late
        (2.0, [1]),
        (3.0, [1, 2]),
        (8.0, [1, 2, 3, 4]),
    ],
)
def test_a_slow_vpn_is_prepared_as_many_seconds_ahead_as_it_needs(settling: float, prepared: list[int]):
    todo = trials("direct", "tinc", "tinc", "tinc", "tinc", "tinc", "tinc")
    assert [trial.position for trial in kit(settling).due(todo)] == prepared


def test_others_are_prepared_at_their_turn():
    todo = trials("direct", "nebula", "tinc", "openvpn", "tinc")
    assert [trial.position for trial in kit(8.0).due(todo)] == [2, 4]


def test_nothing_is_due_after_the_last_trial():
    assert list(kit(8.0).due(trials("tinc"))) == []


class Silent:
    """A watcher that counts."""

    def __init__(self) -> None:
        self.ended: list[Attempt] = []

    def begin(self, trial: Trial) -> None:
        pass

    def end(self, attempt: Attempt) -> None:
        self.ended.append(attempt)


def test_trials_on_an_unproved_link_are_void_and_not_run(tmp_path: Path):
    todo = trials("direct", "tinc")
    study = Study("s", "S", "", 1, 1, Duration(1), (), (PROFILE,), (PAIR,), (), "")
    kept: list[Attempt] = []
    watcher = Silent()
    never_used = cast(Keeper, None)
    asyncio.run(
        carry_out(
            Plan(study, tuple(todo)),
            kit(0.0),
            never_used,
            tmp_path,
            done=(),
            ready=lambda: None,
            keep=lambda attempt, _: kept.append(attempt),
            watcher=watcher,
            unproved={("unshaped", "pair"): "the link unshaped was not what it says"},
        )
    )
    assert kept == watcher.ended
    for attempt in kept:
        assert attempt.outcome == "void"
        assert attempt.failure is not None
        assert (attempt.failure.kind, attempt.failure.message) == (
            "trial-void",
            "the link unshaped was not what it says",
        )
        assert "prove-link" in attempt.failure.hint
