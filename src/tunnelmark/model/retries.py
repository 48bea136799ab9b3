"""Decides which trials are attempted again because the laboratory spoilt them, and which blocks replace others. Pure.

Void attempts are repeated, and so are those that lacked a workload's program, once that is installed. The evidence for
void comes from the laboratory (its emulator, its link checks, its generator, the machine), never from a VPN's result. A
VPN's own failure is a result, and is never repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tunnelmark.model.attempt import NOT_INSTALLED, Attempt
from tunnelmark.plan.model import Plan, Trial
from tunnelmark.plan.order import again, replacement

SHARE = 0.5
"""How many repeated attempts a run makes at most, as a share of planned trials: it takes at most half as long again."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How many attempts at a trial have ended, and whether one of these attempts settled the trial.

    An attempt settles its trial by a usable result, or by a failure that is the VPN's own. `not_begun`: how many of the
    attempts lacked a program; they measured nothing, so they use up no attempt.
    """

    count: int
    settled: bool
    not_begun: int = 0

    @property
    def begun(self) -> int:
        """Return how many attempts had all programs."""
        return self.count - self.not_begun

    def after(self, number: int, *, wanting: bool, lacked: bool) -> Retries:
        """Return this with attempt `number`, which has ended. `lacked`: a program was not installed."""
        return Retries(number, self.settled or not wanting, self.not_begun + lacked)


class RetryLedger:
    """Counts the attempts of each trial, over all sessions of a run, and says which trials may be tried again."""

    def __init__(self, plan: Plan, tries: Mapping[str, Retries]) -> None:
        self._plan = plan
        self._tries = dict(tries)
        self._spare = -int(-SHARE * len(plan.trials) // 1) - sum(max(one.begun - 1, 0) for one in tries.values())

    def grow(self, plan: Plan) -> None:
        """Continue with a plan that has more blocks, and allow correspondingly more repeated attempts."""
        self._spare += -int(-SHARE * len(plan.trials) // 1) + int(-SHARE * len(self._plan.trials) // 1)
        self._plan = plan

    def number(self, trial: Trial) -> int:
        """Return the number of the trial's next attempt, counted from 1."""
        return self._of(trial).count + 1

    def note(self, attempt: Attempt) -> None:
        """Count an attempt that has ended."""
        lacked = attempt.failure is not None and attempt.failure.kind == NOT_INSTALLED
        now = self._of(attempt.trial).after(attempt.number, wanting=attempt.wanting, lacked=lacked)
        self._tries[attempt.trial.id] = now
        self._spare -= not lacked and now.begun > 1

    def new(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return the trials that have had no attempt yet."""
        return [trial for trial in trials if not self._of(trial).count]

    def wanting(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return the attempted trials that are not settled and may be attempted again, in the order to try them."""
        most = self._plan.study.attempts
        found = [
            one for one in trials if self._of(one).count and self._of(one).begun < most and not self._of(one).settled
        ]
        chosen, spare = [], self._spare
        for trial in again(self._plan.study, found):
            repeats = bool(self._of(trial).begun)
            if spare > 0 or not repeats:
                chosen.append(trial)
            spare -= repeats
        return chosen

    def replacement(self, number: int) -> list[Trial]:
        """Return the trials of replacement block `number` (from 1), in the scenarios that lack whole blocks.

        A block is whole in a scenario if all trials of the block in that scenario are settled. A scenario lacks blocks
        if it has fewer whole blocks than the study has blocks.
        """
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
        """Return the ids of the trials that get no further attempt.

        A trial gets no further attempt if an attempt has settled the trial, or if all allowed attempts have been made.
        """
        return {
            trial.id
            for trial in trials
            if self._of(trial).settled or self._of(trial).begun >= self._plan.study.attempts
        }

    def _of(self, trial: Trial) -> Retries:
        return self._tries.get(trial.id, Retries(0, False))


def _setting(trial: Trial) -> tuple[str, str, str]:
    return trial.profile.name, trial.topology.name, trial.use.name
