"""Decides what is tried again because the laboratory has spoilt it, how often, and which blocks replace others. Pure.

Only what is void is repeated: the evidence for that is the laboratory's own (its emulator, its looks at the links, its
generator, the machine) and never the result of a VPN. A VPN's own failure is a result, and is never repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tunnelmark.model.attempt import Attempt
from tunnelmark.plan.model import Plan, Trial
from tunnelmark.plan.order import again, replacement

SHARE = 0.5
"""Attempts beyond the first that a run makes at most, as a share of its planned trials: it takes no more than half as long again."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How many attempts a trial has, and whether one of them is all that was asked (a result, or the VPN's own failure)."""

    count: int
    settled: bool


class RetryLedger:
    """Counts the attempts of each trial, over all sessions of a run, and says which trials may be tried again."""

    def __init__(self, plan: Plan, tries: Mapping[str, Retries]) -> None:
        self._plan = plan
        self._tries = dict(tries)
        self._spare = -int(-SHARE * len(plan.trials) // 1) - sum(max(one.count - 1, 0) for one in tries.values())

    def grow(self, plan: Plan) -> None:
        """The plan has more blocks from now on, and may make so many more attempts again."""
        self._spare += -int(-SHARE * len(plan.trials) // 1) + int(-SHARE * len(self._plan.trials) // 1)
        self._plan = plan

    def number(self, trial: Trial) -> int:
        """The number of its next attempt."""
        return self._of(trial).count + 1

    def note(self, attempt: Attempt) -> None:
        """An attempt has ended."""
        before = self._of(attempt.trial)
        self._tries[attempt.trial.id] = Retries(attempt.number, before.settled or not attempt.wanting)
        self._spare -= attempt.number > 1

    def new(self, trials: Iterable[Trial]) -> list[Trial]:
        """The trials without an attempt."""
        return [trial for trial in trials if not self._of(trial).count]

    def wanting(self, trials: Iterable[Trial]) -> list[Trial]:
        """The trials whose attempts so far are not what was asked and that may have another, in the order in which to try them."""
        most = self._plan.study.attempts
        found = [trial for trial in trials if 0 < self._of(trial).count < most and not self._of(trial).settled]
        return again(self._plan.study, found)[: max(self._spare, 0)]

    def replacement(self, number: int) -> list[Trial]:
        """The trials of the replacement block of that number (from 1): every arm of each setting that lacks a whole block."""
        study = self._plan.study
        block = replacement(study, number, len(self._plan.trials))
        known = [*self._plan.trials, *(trial for early in range(1, number) for trial in replacement(study, early, 0))]
        whole: dict[tuple[str, str, str], dict[int, bool]] = {}
        for trial in known:
            blocks = whole.setdefault(_setting(trial), {})
            blocks[trial.block] = blocks.get(trial.block, True) and self._of(trial).settled
        short = {setting for setting, blocks in whole.items() if sum(blocks.values()) < study.blocks}
        return [trial for trial in block if _setting(trial) in short]

    def settled(self, trials: Iterable[Trial]) -> Collection[str]:
        """The ids of those that need no other attempt."""
        return {
            trial.id
            for trial in trials
            if self._of(trial).settled or self._of(trial).count >= self._plan.study.attempts
        }

    def _of(self, trial: Trial) -> Retries:
        return self._tries.get(trial.id, Retries(0, False))


def _setting(trial: Trial) -> tuple[str, str, str]:
    return trial.profile.name, trial.topology.name, trial.use.name
