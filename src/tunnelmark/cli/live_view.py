"""Draws the live view of a run on a terminal, below the log: current trial, next trial, progress and ratios so far.

It is drawn only when something has changed, and at most once a second. Nothing is drawn while a window is measured,
since none of the view's figures changes in that time. Messages (failures, voids, waits) are log
lines above it, and stay when the run is over.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from tunnelmark.cli.progress_events import (
    BlockEvent,
    PlanEvent,
    ProgressEvent,
    RatioEvent,
    TimeLeft,
    TrialEvent,
    WaitEvent,
)
from tunnelmark.cli.progress_views import LineView
from tunnelmark.units import clock

_REFRESH = 1.0  # least seconds between two drawings; each costs 0.6 ms of a core that trials also use, and 1.2 kB
_LOG = 6  # least number of rows that are left to the log
_BAR = 24
_COLUMN = 21  # least width of a column of ratios in characters, with a space: `+423 µs [332 to 514]`
_PHASES = {
    "": "prepared",
    "lab": "the lab is made or ended",
    "deploy": "the VPN is started",
    "ready": "waiting for the first ping",
    "settle": "the VPN converges",
    "server": "servers are started",
    "measure": "traffic",
    "collect": "results are read",
}


class LiveState:
    """The state that the view shows; each event updates it."""

    def __init__(self) -> None:
        self.plan: PlanEvent | None = None
        self.trial: TrialEvent | None = None
        self.waiting = ""
        self.outcomes: Counter[str] = Counter()
        self.ratios: tuple[RatioEvent, ...] = ()

    def take(self, event: ProgressEvent) -> None:
        """Update the state by an event."""
        match event:
            case PlanEvent():
                self.plan = event
            case WaitEvent():
                self.waiting = event.text
            case TrialEvent(state="end"):
                self.trial, self.waiting = event, ""
                self.outcomes[event.grade or event.outcome if event.outcome == "ok" else event.outcome] += 1
            case TrialEvent():
                self.trial, self.waiting = event, ""
            case BlockEvent():
                self.ratios = event.ratios or self.ratios


def region(state: LiveState, left: TimeLeft, width: int, height: int, now: float) -> list[str]:
    """Return the view's lines, cut to the terminal's width and height; `now` is in seconds since the Unix epoch."""
    plan, trial = state.plan, state.trial
    if plan is None:
        return _cut([f"now   {state.waiting}"] if state.waiting else [], width)
    done, every = (
        (trial.done, trial.trials) if trial is not None and trial.trials >= plan.trials else (plan.done, plan.trials)
    )
    full = round(_BAR * done / max(every, 1))
    where = f"block {trial.block} of {max(plan.blocks, trial.block)}, " if trial is not None else ""
    lines = ["", f"{where}trial {done} of {every}  {'━' * full}{'─' * (_BAR - full)}"]
    lines.append(f"now   {_now(state)}")
    if trial is not None and trial.following and trial.state != "end":
        lines.append(f"next  {trial.following}")
    at = time.strftime("%H:%M", time.localtime(now + left.seconds))
    lines.append(f"left  about {clock(left.seconds)}, until {at}")
    if state.outcomes:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(state.outcomes.items()))
        lines.append(f"ended {counts}; the last took {clock(left.took)}")
    lines += _ratios(state, width, max(height - _LOG - len(lines), 0))
    return _cut(lines[: max(height - 1, 1)], width)


def _now(state: LiveState) -> str:
    if state.waiting:
        return state.waiting
    trial = state.trial
    if trial is None or trial.state == "end":
        return "between two trials"
    doing = _PHASES.get(trial.phase, trial.phase)
    doing += f", {trial.seconds:g} s" if trial.phase == "measure" else ""
    return f"{trial.arm} · {trial.profile} · {trial.topology} · {trial.workload}: {doing}"


def _ratios(state: LiveState, width: int, room: int) -> list[str]:
    """Return the ratios in the running trial's condition: a row for each arm, a column for each metric, as they fit."""
    if not state.ratios:
        return []
    trial, first = state.trial, state.ratios[0]
    where = (first.profile, first.topology) if trial is None else (trial.profile, trial.topology)
    shown = [one for one in state.ratios if (one.profile, one.topology) == where]
    if not shown or room < 4:
        return []
    arms = list(dict.fromkeys(one.arm for one in shown))
    names = max(cell_len(arm) for arm in arms) + 2
    metrics = list(dict.fromkeys((one.workload, one.title) for one in shown))[: max((width - names) // _COLUMN, 1)]
    column = min((width - names) // len(metrics), 2 * _COLUMN)
    by = {(one.arm, one.workload, one.title): one.text for one in shown}
    lines = [
        "",
        f"{where[0]}, {where[1]}: against {first.against} in {_blocks(shown)} with 95 % intervals; no verdict yet",
    ]
    lines.append(_row("", [title for _, title in metrics], names, column))
    kept = arms if len(arms) <= room - 3 else arms[: max(room - 4, 1)]
    lines += [_row(arm, [by.get((arm, *metric), "") for metric in metrics], names, column) for arm in kept]
    return [*lines, f"and {len(arms) - len(kept)} more arms"] if len(kept) < len(arms) else lines


def _blocks(shown: Sequence[RatioEvent]) -> str:
    most = max(one.blocks for one in shown)
    return "1 block" if most == 1 else f"{most} blocks"


def _row(arm: str, cells: Sequence[str], names: int, column: int) -> str:
    return set_cell_size(arm, names) + "".join(set_cell_size(_cut([cell], column - 1)[0], column) for cell in cells)


def _cut(lines: list[str], width: int) -> list[str]:
    return [line.rstrip() if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…" for line in lines]


class LiveView(LineView):
    """The view that draws the live region below the printed lines, and removes it at the end."""

    wants_ratios = True
    every_trial = False

    def __init__(self, console: Console, left: Callable[[float], object] | None = None) -> None:
        super().__init__(console, left)
        self._state = LiveState()
        self._live = Live(
            get_renderable=self._region, console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        )
        self._changed, self._over = threading.Event(), threading.Event()
        self._drawing = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        self._drawing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._changed.set()
        self._drawing.join()
        self._live.stop()

    def show(self, event: ProgressEvent) -> None:
        """Print the event's message if it has one, and have the region drawn again."""
        self._state.take(event)
        super().show(event)
        self._changed.set()

    def _region(self) -> Text:
        size = self._console.size
        return Text("\n".join(region(self._state, self.time, size.width, size.height, time.time())), no_wrap=True)

    def _draw(self) -> None:
        while self._changed.wait() and not self._over.is_set():
            self._changed.clear()
            self._live.refresh()
            self._over.wait(_REFRESH)
