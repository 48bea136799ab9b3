"""What a run shows while it goes: the plan before, a bar with the time left, a line for what failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from tunnelmark.analyse.intervals import MIN_BLOCKS
from tunnelmark.cli.enough_blocks import until
from tunnelmark.errors import MissingPart
from tunnelmark.lab.backends import describe
from tunnelmark.model.attempt import Attempt, Failure, stem
from tunnelmark.plan.model import Plan, Trial
from tunnelmark.run.runner import BETWEEN, RunContext
from tunnelmark.units import clock

_MISSING = MissingPart("").kind
_SHORT = 80  # characters of a reason that may be said again
_REFRESH = 1  # times a second; each costs about 2 ms of a core that trials also use


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
    console.print(f"  trials     {len(plan.trials)} in {study.blocks} blocks, order by seed {study.seed}")
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
    """Follows a run on the terminal: a bar, or one line per trial without a terminal.

    `left` is called with the seconds that the run will still take, whenever they are known better.
    """

    def __init__(
        self,
        console: Console,
        plan: Plan,
        context: RunContext,
        done: Collection[str],
        left: Callable[[float], object] | None = None,
    ) -> None:
        self._tell = left
        self._console = console
        self._context = context
        self._left = sum(context.seconds(trial) for trial in plan.trials if trial.id not in done)
        self._between = BETWEEN
        self._count = len(done)
        self._all = len(plan.trials)
        self._ran = 0
        self._begun = 0.0
        self._outside = 0.0  # seconds besides traffic, of all trials that ran
        self._told: set[str] = set()  # reasons, without their figures
        self._warned = False
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            refresh_per_second=_REFRESH,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=self._all, completed=self._count, left="")

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, trial: Trial) -> None:
        """Show which trial runs now, and the time left."""
        self._begun = time.monotonic()
        self._bar.update(
            self._task, description=f"block {trial.block}  {trial.arm.name} · {trial.use.name}", left=self._time_left()
        )

    def end(self, attempt: Attempt) -> None:
        """Count the trial; say so at once when it failed."""
        took, traffic = time.monotonic() - self._begun, self._context.seconds(attempt.trial)
        if attempt.number == 1:  # of a trial that is tried again only the first attempt is counted
            self._count += 1
            self._left -= traffic
        self._ran += 1
        if attempt.outcome == "ok":
            convergence_time = attempt.phases.get("settle", 0.0)  # mostly once, at the beginning
            self._outside += max(took - traffic - convergence_time, 0.0)
            self._between = self._outside / self._ran
        self._bar.update(self._task, completed=self._count, left=self._time_left())
        if self._tell is not None:
            self._tell(self._seconds_left())
        if attempt.failure is not None:
            self._failed(attempt, attempt.failure)
        elif not self._console.is_terminal:
            self._console.print(
                f"[{self._count}/{self._all}] {_name(attempt.trial)}{_which(attempt)}: {_worth(attempt)}, {took:.1f} s; "
                f"{self._time_left()}",
                markup=False,
                soft_wrap=True,
            )

    def block(self, attempts: Sequence[Attempt]) -> None:
        """Say how many trials of a block the laboratory has spoilt, if it has, and at the first such block what can be done."""
        void = [attempt for attempt in attempts if attempt.outcome == "void"]
        if not void:
            return
        block = void[0].trial.block
        many = 2 * len(void) > len(attempts)
        line = f"block {block}: {len(void)} of {len(attempts)} trials are void, which is the laboratory's fault and not a VPN's"
        if many and not self._warned:
            self._warned = True
            causes = Counter(stem(attempt.failure.message) for attempt in void if attempt.failure is not None)
            hint = next(attempt.failure.hint for attempt in void if attempt.failure is not None)
            line += (
                f"; most often: {causes.most_common(1)[0][0]}. What can be done: {hint}; a lower rate; or --backend vm"
            )
        self._console.print(Text(line, style="bold red" if many else "yellow"), soft_wrap=True)

    def more(self, trials: Sequence[Trial]) -> None:
        """Say that a block is added."""
        self._all += len(trials)
        self._left += sum(self._context.seconds(trial) for trial in trials)
        self._bar.update(self._task, total=self._all)
        said = f"block {trials[0].block} is added for trials that stayed void: {len(trials)} trials"
        self._console.print(Text(said, style="yellow"), soft_wrap=True)

    def longer(self, trials: Sequence[Trial]) -> None:
        """Count the trials of blocks that the run adds by itself; why it does was said when it was decided."""
        self._all += len(trials)
        self._left += sum(self._context.seconds(trial) for trial in trials)
        self._bar.update(self._task, total=self._all)

    def _failed(self, attempt: Attempt, failure: Failure) -> None:
        """Say why a trial has no result; a reason that many share is shown in full once, and then by its beginning."""
        line = f"{attempt.outcome}: {_name(attempt.trial)}{_which(attempt)}: "
        if (known := stem(failure.message)) in self._told:
            if failure.kind == _MISSING:
                return
            line += failure.message if len(known) <= _SHORT else f"{failure.message[:_SHORT]}… (as before)"
        else:
            self._told.add(known)
            line += failure.message
            line += "; shown once: all trials that need it fail" if failure.kind == _MISSING else ""
        self._console.print(Text(line, style="yellow" if attempt.outcome == "void" else "red"), soft_wrap=True)

    def _seconds_left(self) -> float:
        return max(self._left + (self._all - self._count) * self._between, 0.0)

    def _time_left(self) -> str:
        return f"{clock(self._seconds_left())} left"


def _which(attempt: Attempt) -> str:
    return f" (attempt {attempt.number})" if attempt.number > 1 else ""


def _worth(attempt: Attempt) -> str:
    return "disturbed" if attempt.graded is not None and attempt.graded.grade == "disturbed" else "ok"


def estimate(plan: Plan, context: RunContext) -> float:
    """Seconds that all trials of a plan will take, as far as can be known before the first."""
    return sum(context.seconds(trial) + BETWEEN for trial in plan.trials)


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
    return f"block {trial.block}  {trial.arm.name} · {trial.profile.name} · {trial.topology.name} · {trial.use.name}"
