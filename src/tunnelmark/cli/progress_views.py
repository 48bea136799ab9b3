"""Shows a run's events as lines of text, as lines of JSON, or not at all; the live view is in `live_view`."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.text import Text

from tunnelmark.cli.progress_events import (
    MARK,
    BlockEvent,
    PlanEvent,
    ProgressEvent,
    TimeLeft,
    TrialEvent,
    WaitEvent,
    line,
    read,
)
from tunnelmark.model.attempt import NOT_INSTALLED, stem
from tunnelmark.units import clock

_SHORT = 80  # characters of a reason that may be said again


class ProgressView:
    """The base of all views; it shows nothing. After each trial it calls `left` with the seconds that remain."""

    wants_ratios = False
    """Whether the view shows the ratios so far; if not, they are not computed."""

    def __init__(self, left: Callable[[float], object] | None = None) -> None:
        self.time = TimeLeft()
        self._left = left

    def tells(self, left: Callable[[float], object] | None) -> None:
        """Set the function that is called after each trial with the seconds that remain; None removes it."""
        self._left = left

    def take(self, event: ProgressEvent) -> None:
        """Take the next event: update the time that remains, and show the event."""
        self.time.take(event)
        if self._left is not None and isinstance(event, TrialEvent) and event.state == "end":
            self._left(self.time.seconds)
        self.show(event)

    def show(self, event: ProgressEvent) -> None:
        """Show an event; the base class shows nothing."""

    def __enter__(self) -> ProgressView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove from the terminal what the view redraws in place."""


class JsonView(ProgressView):
    """Writes each event at once as a line of JSON.

    A line also has `time` (seconds in Unix time), and for plans and trials `left` (seconds that remain).
    """

    wants_ratios = True

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def show(self, event: ProgressEvent) -> None:
        """Write the event as one line of JSON."""
        more = {"time": round(time.time(), 3)}
        more |= {"left": round(self.time.seconds, 1)} if isinstance(event, (PlanEvent, TrialEvent)) else {}
        self._stream.write(f"{line(event, **more)}\n")
        self._stream.flush()


class GuestView(ProgressView):
    """In a virtual machine: writes the events for the host, between lines of other output."""

    def __init__(self, stream: TextIO, *, ratios: bool) -> None:
        super().__init__()
        self._stream = stream
        self.wants_ratios = ratios

    def show(self, event: ProgressEvent) -> None:
        """Write the event as one line of JSON behind `MARK`, by which the host distinguishes it from other output."""
        self._stream.write(f"{MARK}{line(event)}\n")
        self._stream.flush()


class GuestLines:
    """On the host: splits a guest's output into events, which go to a view, and text, which goes to `say`."""

    def __init__(self, view: ProgressView, say: Callable[[str], object]) -> None:
        self._view, self._say, self._begun = view, say, ""

    def take(self, text: str) -> None:
        """Take the next piece of the guest's output; it may end in the middle of a line."""
        *lines, self._begun = (self._begun + text).split("\n")
        for one in lines:
            if one.startswith(MARK):
                self._view.take(read(one[1:]))
            else:
                self._say(f"{one}\n")


class LineView(ProgressView):
    """Prints a line for each ended trial, each block with void trials, and each wait for other work to end.

    A block that is added to replace trials that stayed void has a line, too.
    """

    every_trial = True
    """Whether trials with the outcome "ok" get a line, too."""

    def __init__(self, console: Console, left: Callable[[float], object] | None = None) -> None:
        super().__init__(left)
        self._console = console
        self._told: set[str] = set()  # reasons, without their figures
        self._warned = False

    def show(self, event: ProgressEvent) -> None:
        """Print a line for the event, if it is of a kind that gets one."""
        match event:
            case TrialEvent(state="end"):
                self._ended(event)
            case BlockEvent(void=void) if void:
                self._void(event)
            case PlanEvent(added="void"):
                self._say(f"block {event.block} is added for trials that stayed void: {event.count} trials", "yellow")
            case WaitEvent(why="calm"):
                self._say(event.text, "yellow")

    def _ended(self, event: TrialEvent) -> None:
        """Print how a trial ended. A reason that several trials share is printed in full once, then shortened."""
        if event.outcome == "ok":
            if self.every_trial:
                worth = "disturbed" if event.grade == "disturbed" else "ok"
                self._say(
                    f"[{event.done}/{event.trials}] {_name(event)}: {worth}, {self.time.took:.1f} s; {time_left(self.time)}"
                )
            return
        said = f"{event.outcome}: {_name(event)}: "
        missing = event.reason == NOT_INSTALLED
        if (known := stem(event.message)) in self._told:
            if missing:
                return
            said += event.message if len(known) <= _SHORT else f"{event.message[:_SHORT]}… (as before)"
        else:
            self._told.add(known)
            said += event.message + ("; shown once: all trials that need it fail" if missing else "")
        self._say(said, "yellow" if event.outcome == "void" else "red")

    def _void(self, event: BlockEvent) -> None:
        """Print how many trials of a block are void; once, if more than half are, also what can be done."""
        many = 2 * event.void > event.trials
        said = f"block {event.block}: {event.void} of {event.trials} trials are void, which is the laboratory's fault and not a VPN's"
        if many and not self._warned:
            self._warned = True
            said += f"; most often: {event.cause}. What can be done: {event.hint}; a lower rate; or --backend vm"
        self._say(said, "bold red" if many else "yellow")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def time_left(left: TimeLeft) -> str:
    """Return the time that remains, in words."""
    return f"{clock(left.seconds)} left"


def _name(event: TrialEvent) -> str:
    again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    return f"block {event.block}  {event.arm} · {event.profile} · {event.topology} · {event.workload}{again}"
