"""What a run shows while it goes: the plan before, a bar with the time left, a line for what failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from tunnelmark.errors import MissingPart
from tunnelmark.lab.backends import describe
from tunnelmark.plan.model import Plan, Trial
from tunnelmark.run.loop import BETWEEN, Kit
from tunnelmark.run.outcome import Attempt, Failure
from tunnelmark.units import clock

_MISSING = MissingPart("").kind
_REFRESH = 1  # times a second; each costs about 2 ms of a core that trials also use


def dry_run(console: Console, plan: Plan, kit: Kit) -> None:
    """Print every trial in its order, with the seconds of its traffic, and the estimate for all."""
    width = len(str(len(plan.trials)))
    for trial in plan.trials:
        console.print(f"{trial.position + 1:>{width}}  {_name(trial)}  {kit.seconds(trial):g} s", soft_wrap=True)
    console.print(
        f"{len(plan.trials)} trials in {plan.study.blocks} blocks, seed {plan.study.seed}, "
        f"about {clock(estimate(plan, kit))}"
    )


def opening(console: Console, plan: Plan, kit: Kit, folder: Path) -> None:
    """Say what is about to happen."""
    study = plan.study
    console.print(f"[bold]{study.title}[/]")
    console.print(f"  arms       {', '.join(arm.name for arm in study.arms)}", soft_wrap=True)
    console.print(f"  workloads  {', '.join(use.name for use in study.workloads)}", soft_wrap=True)
    for profile in study.profiles:
        console.print(f"  link       {profile.title}: {describe(profile)}", soft_wrap=True)
    console.print(f"  trials     {len(plan.trials)} in {study.blocks} blocks, order by seed {study.seed}")
    console.print(f"  results    {folder}", soft_wrap=True)
    console.print(f"  time       about {clock(estimate(plan, kit))}")


class Live:
    """Follows a run on the terminal: a bar, or a line a trial where there is no terminal.

    `left` is told the seconds that the run will take still, whenever they are known better.
    """

    def __init__(
        self,
        console: Console,
        plan: Plan,
        kit: Kit,
        done: Collection[str],
        left: Callable[[float], object] | None = None,
    ) -> None:
        self._tell = left
        self._console = console
        self._kit = kit
        self._left = sum(kit.seconds(trial) for trial in plan.trials if trial.id not in done)
        self._between = BETWEEN
        self._count = len(done)
        self._all = len(plan.trials)
        self._ran = 0
        self._begun = 0.0
        self._outside = 0.0  # seconds beside traffic, of all trials that ran
        self._told: set[str] = set()  # what is said of parts that are missing
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

    def __enter__(self) -> Live:
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
        took, traffic = time.monotonic() - self._begun, self._kit.seconds(attempt.trial)
        self._count += 1
        self._ran += 1
        self._left -= traffic
        if attempt.outcome == "ok":
            settling = attempt.phases.get("settle", 0.0)  # mostly once, at the beginning: no rule for the rest
            self._outside += max(took - traffic - settling, 0.0)
            self._between = self._outside / self._ran
        self._bar.update(self._task, completed=self._count, left=self._time_left())
        if self._tell is not None:
            self._tell(self._seconds_left())
        if attempt.failure is not None:
            self._failed(attempt, attempt.failure)
        elif not self._console.is_terminal:
            self._console.print(
                f"[{self._count}/{self._all}] {_name(attempt.trial)}: ok, {took:.1f} s; {self._time_left()}",
                markup=False,
                soft_wrap=True,
            )

    def _failed(self, attempt: Attempt, failure: Failure) -> None:
        """Say why a trial has no result; what is not installed is said once, not for every trial that needs it."""
        if failure.message in self._told:
            return
        line = f"{attempt.outcome}: {_name(attempt.trial)}: {failure.message}"
        if failure.kind == _MISSING:
            self._told.add(failure.message)
            line += "; said once, all trials that need it fail"
        self._console.print(Text(line, style="red"), soft_wrap=True)

    def _seconds_left(self) -> float:
        return max(self._left + (self._all - self._count) * self._between, 0.0)

    def _time_left(self) -> str:
        return f"{clock(self._seconds_left())} left"


def estimate(plan: Plan, kit: Kit) -> float:
    """Seconds that all trials of a plan will take, as far as can be known before the first."""
    return sum(kit.seconds(trial) + BETWEEN for trial in plan.trials)


def _name(trial: Trial) -> str:
    return f"block {trial.block}  {trial.arm.name} · {trial.profile.name} · {trial.topology.name} · {trial.use.name}"
