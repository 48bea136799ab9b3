"""Reports on a run: prints its plan beforehand, and sends a view an event for each trial, block and wait."""

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
from tunnelmark.plan import lengths
from tunnelmark.plan.model import Plan, Trial
from tunnelmark.plan.routes import crossed
from tunnelmark.run.runner import RunContext
from tunnelmark.units import clock


def dry_run(console: Console, plan: Plan, context: RunContext) -> None:
    """Print every trial in order with the seconds of its traffic, and the estimated time of all trials."""
    width = len(str(len(plan.trials)))
    for trial in plan.trials:
        console.print(f"{trial.position + 1:>{width}}  {_name(trial)}  {context.seconds(trial):g} s", soft_wrap=True)
    console.print(
        f"{len(plan.trials)} trials in {plan.study.blocks} blocks, seed {plan.study.seed}, "
        f"about {clock(estimate(plan, context))}"
    )
    for said in (*long_trials(plan), _claims(plan)):
        if said:
            console.print(said, soft_wrap=True)
    if plan.study.enough is not None:
        console.print(f"further blocks follow until {until(plan.study.enough)}")
        console.print(price(plan, context))


def opening(console: Console, plan: Plan, context: RunContext, folder: Path) -> None:
    """Print what the run will measure, where its results go, and how long it takes."""
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
    for said in long_trials(plan):
        console.print(f"             {said}", soft_wrap=True)
    if said := _claims(plan):
        console.print(f"  claims     {said}")


def long_trials(plan: Plan) -> tuple[str, ...]:
    """Return a line for each workload and path whose trials the links make much longer, with the reason."""
    study = plan.study
    ways = {(use.name, p.name, topology.name): (use, p, topology) for _, p, topology, use in study.cells()}
    said = []
    for use, profile, topology in ways.values():
        if why := lengths.reason(use, crossed(topology, profile)):
            where = profile.name if len(study.topologies) == 1 else f"{profile.name} on {topology.name}"
            said.append(f"a trial of {use.name} over {where} lasts {why}")
    return tuple(said)


def price(plan: Plan, context: RunContext) -> str:
    """Return in words how long a plan takes.

    If it may add blocks: how long its first blocks take, and how long all blocks take at most.
    """
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
    """Follows a run, and sends its events to a view.

    `results`: the path of the results folder, which events state. `effects`: the effects so far, which the caller
    updates after each attempt; a view may show them after each block. None: no effects are shown.
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
        """Report the plan; the trials with the ids in `done` need no further attempt."""
        self._done = set(done)
        self._view.take(self._plan())

    def wait(self, why: Literal["calm", "links", "machine"], text: str) -> None:
        """Report that no trial is running, and why; `text` is the reason in words for people.

        `why`: "calm" (other work on the machine is to end), "links" (links are checked), or "machine" (the machine is
        measured).
        """
        self._view.take(WaitEvent(why, text))

    def begin(self, trial: Trial) -> None:
        """Report which trial begins, and which one follows."""
        self._running = replace(self._event(trial, "begin"), following=self._following(trial))
        self._view.take(self._running)

    def phase(self, trial: Trial, name: str) -> None:
        """Report that a trial enters a phase, unless another trial is running (the next one is prepared meanwhile)."""
        running = self._running or self._event(trial, "begin")
        if running.trial == trial.id:
            self._view.take(replace(running, state="phase", phase=name))

    def end(self, attempt: Attempt) -> None:
        """Report how an attempt at a trial ended. A trial counts as done only once, however many attempts it has."""
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
        """Report a block's void and failed trials, and the ratios so far; call it while no trial is measured."""
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
        """Report that a block is added to replace one with void trials."""
        self._trials += trials
        self._view.take(replace(self._plan(), added="void", block=trials[0].block, count=len(trials)))

    def longer(self, trials: Sequence[Trial]) -> None:
        """Count and report the trials of blocks that the run adds because it has too few; `Growth` prints why."""
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
        """Return the next trial without an attempt in this session, or ""; repeats come last in a block."""
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
    """Return both ends of an interval; None for an end that is infinite or does not exist."""
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return low if low is None or isfinite(low) else None, high if high is None or isfinite(high) else None


def estimate(plan: Plan, context: RunContext) -> float:
    """Return how many seconds all trials of a plan will take, as estimated before the first one."""
    return sum(context.seconds(trial) + context.besides(trial) for trial in plan.trials)


def _claims(plan: Plan) -> str:
    """Return how many published claims a study of this length can judge, in words; "" if it repeats no source."""
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
    """Return a trial's name, made of its arm and scenario."""
    return f"{trial.arm.name} · {trial.profile.name} · {trial.topology.name} · {trial.use.name}"
