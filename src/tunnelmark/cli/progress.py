"""What a run says: its plan before, and while it goes each trial, block and wait, as events for a view."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Literal

from rich.console import Console

from tunnelmark.analyse.intervals import MIN_BLOCKS
from tunnelmark.analyse.model import Interval
from tunnelmark.analyse.so_far import EffectsSoFar
from tunnelmark.cli.enough_blocks import until
from tunnelmark.cli.progress_events import BlockEvent, PlanEvent, RatioEvent, TrialEvent, WaitEvent
from tunnelmark.cli.progress_views import ProgressView
from tunnelmark.lab.backends import describe
from tunnelmark.model.attempt import Attempt, stem
from tunnelmark.plan.model import Plan, Trial
from tunnelmark.run.runner import RunContext
from tunnelmark.units import clock


def dry_run(console: Console, plan: Plan, context: RunContext) -> None:
    """Print every trial in its order, with the seconds of its traffic, and the estimate for all."""
    width = len(str(len(plan.trials)))
    for trial in plan.trials:
        console.print(f"{trial.position + 1:>{width}}  {_name(trial)}  {context.seconds(trial):g} s", soft_wrap=True)
    console.print(
        f"{len(plan.trials)} trials in {plan.study.blocks} blocks, seed {plan.study.seed}, "
        f"about {clock(estimate(plan, context))}"
    )
    if said := _claims(plan):
        console.print(said)
    if plan.study.enough is not None:
        console.print(f"further blocks follow until {until(plan.study.enough)}")
        console.print(price(plan, context))


def opening(console: Console, plan: Plan, context: RunContext, folder: Path) -> None:
    """Say what is about to happen."""
    study = plan.study
    console.print(f"[bold]{study.title}[/]")
    console.print(f"  arms       {', '.join(arm.name for arm in study.arms)}", soft_wrap=True)
    console.print(f"  workloads  {', '.join(use.name for use in study.workloads)}", soft_wrap=True)
    for profile in study.profiles:
        console.print(f"  link       {profile.title}: {describe(profile)}", soft_wrap=True)
    blocks = "1 block" if study.blocks == 1 else f"{study.blocks} blocks"
    console.print(f"  trials     {len(plan.trials)} in {blocks}, order by seed {study.seed}")
    console.print(f"  results    {folder}", soft_wrap=True)
    if study.enough is not None:
        console.print(f"  until      {until(study.enough)}", soft_wrap=True)
    console.print(f"  time       {price(plan, context)}", soft_wrap=True)
    if said := _claims(plan):
        console.print(f"  claims     {said}")


def price(plan: Plan, context: RunContext) -> str:
    """How long a plan takes, as far as can be known before: of one that grows, its first blocks and all that there may be."""
    first, enough = estimate(plan, context), plan.study.enough
    said = f"about {clock(first)}"
    if enough is None:
        return said
    most = first * max(enough.most, plan.study.blocks) / plan.study.blocks
    if enough.budget is not None and enough.budget < first:
        return (
            f"{said} for the first {plan.study.blocks} blocks, which is more than the time that is given: none is added"
        )
    most = most if enough.budget is None else min(most, enough.budget)
    return f"{said} for the first {plan.study.blocks} blocks, at most {clock(most)} in all; how long is said after the first"


class RunProgress:
    """Follows a run and tells a view of it, as events.

    `effects` are the effects so far, which the view may want after each block.
    """

    def __init__(
        self,
        view: ProgressView,
        plan: Plan,
        context: RunContext,
        *,
        results: str = "",
        effects: EffectsSoFar | None = None,
    ) -> None:
        self._view, self._context, self._effects, self._results = view, context, effects, results
        self._study = plan.study
        self._trials = list(plan.trials)
        self._done: set[str] = set()
        self._running: TrialEvent | None = None
        self._blocks = plan.study.blocks

    def begun(self, done: Collection[str]) -> None:
        """Say what will be done; trials with these ids need no other attempt."""
        self._done = set(done)
        self._view.take(self._plan())

    def wait(self, why: Literal["calm", "links", "machine"], text: str) -> None:
        """Say that no trial runs, and why."""
        self._view.take(WaitEvent(why, text))

    def begin(self, trial: Trial) -> None:
        """Say which trial runs now, and which follows."""
        self._running = replace(self._event(trial, "begin"), following=self._following(trial))
        self._view.take(self._running)

    def phase(self, trial: Trial, name: str) -> None:
        """Say in which phase the running trial is, or between two trials the one that is prepared."""
        running = self._running or self._event(trial, "begin")
        if running.trial == trial.id:
            self._view.take(replace(running, state="phase", phase=name))

    def end(self, attempt: Attempt) -> None:
        """Count the trial, once however many attempts it has, and say what came of it."""
        counted = attempt.trial.id not in self._done
        self._done.add(attempt.trial.id)
        failure, graded = attempt.failure, attempt.graded
        self._running = None
        self._view.take(
            replace(
                self._event(attempt.trial, "end"),
                attempt=attempt.number,
                counted=counted,
                outcome=attempt.outcome,
                grade="" if graded is None else graded.grade,
                took=sum(attempt.phases.values()),
                settle=attempt.phases.get("settle", 0.0),
                reason="" if failure is None else failure.kind,
                message="" if failure is None else failure.message,
                hint="" if failure is None else failure.hint,
            )
        )

    def block(self, attempts: Sequence[Attempt]) -> None:
        """Say how many trials of a block are void or failed, with the ratios so far if they are shown: no trial is measured now."""
        if not attempts:
            return
        void = [attempt for attempt in attempts if attempt.outcome == "void"]
        failures = [attempt.failure for attempt in void if attempt.failure is not None]
        causes = Counter(stem(failure.message) for failure in failures)
        begun = time.process_time()
        ratios = self._ratios()
        self._view.take(
            BlockEvent(
                attempts[0].trial.block,
                len(attempts),
                len(void),
                sum(attempt.outcome == "failed" for attempt in attempts),
                cause=causes.most_common(1)[0][0] if causes else "",
                hint=failures[0].hint if failures else "",
                ratios=ratios,
                cpu=round(time.process_time() - begun, 4),
            )
        )

    def more(self, trials: Sequence[Trial]) -> None:
        """Say that a block is added in place of one with void trials."""
        self._trials += trials
        self._view.take(replace(self._plan(), added="void", block=trials[0].block, count=len(trials)))

    def longer(self, trials: Sequence[Trial]) -> None:
        """Count the trials of blocks that the run adds by itself; why it does was said when it was decided."""
        self._trials += trials
        self._blocks = max(self._blocks, *(trial.block for trial in trials))
        self._view.take(replace(self._plan(), added="more", block=trials[0].block, count=len(trials)))

    def _plan(self) -> PlanEvent:
        left = [trial for trial in self._trials if trial.id not in self._done]
        return PlanEvent(
            self._study.name,
            self._study.title,
            self._results,
            self._blocks,
            len(self._trials),
            len(self._trials) - len(left),
            sum(self._context.seconds(trial) for trial in left),
            tuple(arm.name for arm in self._study.arms),
            besides=sum(map(self._context.besides, left)) / max(len(left), 1),
        )

    def _event(self, trial: Trial, state: Literal["begin", "end"]) -> TrialEvent:
        return TrialEvent(
            state,
            trial.id,
            trial.block,
            trial.arm.name,
            trial.profile.name,
            trial.topology.name,
            trial.use.name,
            len(self._done),
            len(self._trials),
            self._context.seconds(trial),
        )

    def _following(self, trial: Trial) -> str:
        """The next trial in the order of the plan that has no attempt in this session; what is tried again comes at the end of a block."""
        waiting = (one for one in self._trials if one.id not in self._done and one.id != trial.id)
        following = next(waiting, None)
        return "" if following is None else short_name(following)

    def _ratios(self) -> tuple[RatioEvent, ...]:
        if self._effects is None or not self._view.wants_ratios:
            return ()
        from tunnelmark.report import formatting

        return tuple(
            RatioEvent(
                one.setting.profile,
                one.setting.topology,
                one.setting.workload,
                one.metric,
                metric.title,
                one.arm,
                one.against,
                one.estimate,
                *_ends(one.interval),
                len(one.blocks),
                formatting.effect(metric, one),
            )
            for metric, one in self._effects.effects()
            if one.estimate is not None and isfinite(one.estimate)
        )


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """Both ends of an interval; None for one that there is not."""
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return low if low is None or isfinite(low) else None, high if high is None or isfinite(high) else None


def estimate(plan: Plan, context: RunContext) -> float:
    """Seconds that all trials of a plan will take, as far as can be known before the first."""
    return sum(context.seconds(trial) + context.besides(trial) for trial in plan.trials)


def _claims(plan: Plan) -> str:
    """How many claims of the source that the study repeats this length can tell; "" where it repeats none."""
    from tunnelmark.claims import reading
    from tunnelmark.claims.reach import within_reach

    claims = reading.of_study(plan.study.name)
    if claims is None:
        return ""
    few = f", and none with fewer than {MIN_BLOCKS} blocks" if plan.study.blocks < MIN_BLOCKS else ""
    return f"{len(within_reach(claims, plan.study))} of {len(claims.claims)} published claims within reach{few}"


def _name(trial: Trial) -> str:
    return f"block {trial.block}  {short_name(trial)}"


def short_name(trial: Trial) -> str:
    """A trial by its arm and scenario."""
    return f"{trial.arm.name} · {trial.profile.name} · {trial.topology.name} · {trial.use.name}"
