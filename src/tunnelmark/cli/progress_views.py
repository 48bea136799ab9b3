"""Who shows a run's events: lines of text, lines of JSON, or nothing; the live view is in `live_view`."""

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
    Event,
    PlanEvent,
    TimeLeft,
    TrialEvent,
    WaitEvent,
    line,
    read,
)
from tunnelmark.errors import MissingPart
from tunnelmark.model.attempt import stem
from tunnelmark.units import clock

_MISSING = MissingPart("").kind
_SHORT = 80  # characters of a reason that may be said again


class ProgressView:
    """The base of all views: takes events and shows nothing. `left` is called with the seconds that remain."""

    wants_ratios = False
    """Whether the ratios so far are shown, so that they are worth their CPU time."""

    def __init__(self, left: Callable[[float], object] | None = None) -> None:
        self.time = TimeLeft()
        self._left = left

    def tells(self, left: Callable[[float], object] | None) -> None:
        """Call this with the seconds that remain from now on."""
        self._left = left

    def take(self, event: Event) -> None:
        """One more thing has happened."""
        self.time.take(event)
        if self._left is not None and isinstance(event, TrialEvent) and event.state == "end":
            self._left(self.time.seconds)
        self.show(event)

    def show(self, event: Event) -> None:
        """Show it."""

    def __enter__(self) -> ProgressView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever was shown in place is taken away."""


class JsonView(ProgressView):
    """One JSON object a line, at once; `time` is seconds since the Unix epoch, `left` the seconds that remain."""

    wants_ratios = True

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def show(self, event: Event) -> None:
        """Write its line."""
        more = {"time": round(time.time(), 3)}
        more |= {"left": round(self.time.seconds, 1)} if isinstance(event, (PlanEvent, TrialEvent)) else {}
        self._stream.write(f"{line(event, **more)}\n")
        self._stream.flush()


class GuestView(ProgressView):
    """In a virtual machine: hands the events on to the host, between other lines."""

    def __init__(self, stream: TextIO, *, ratios: bool) -> None:
        super().__init__()
        self._stream = stream
        self.wants_ratios = ratios

    def show(self, event: Event) -> None:
        """Write its line, marked."""
        self._stream.write(f"{MARK}{line(event)}\n")
        self._stream.flush()


class GuestLines:
    """On the host: what a guest prints, as events for a view and as text for the console."""

    def __init__(self, view: ProgressView, say: Callable[[str], object]) -> None:
        self._view, self._say, self._begun = view, say, ""

    def take(self, text: str) -> None:
        """Some more of what the guest prints, which may end in the middle of a line."""
        *lines, self._begun = (self._begun + text).split("\n")
        for one in lines:
            if one.startswith(MARK):
                self._view.take(read(one[1:]))
            else:
                self._say(f"{one}\n")


class LineView(ProgressView):
    """A line for each trial that ended, for what failed, what is void, and what is waited for."""

    every_trial = True
    """Whether trials that went well have a line, too."""

    def __init__(self, console: Console, left: Callable[[float], object] | None = None) -> None:
        super().__init__(left)
        self._console = console
        self._told: set[str] = set()  # reasons, without their figures
        self._warned = False

    def show(self, event: Event) -> None:
        """Print what is worth a line."""
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
        """A trial that has no result is reported with its reason; one that many share in full once, and then by its beginning."""
        if event.outcome == "ok":
            if self.every_trial:
                worth = "disturbed" if event.grade == "disturbed" else "ok"
                self._say(
                    f"[{event.done}/{event.trials}] {_name(event)}: {worth}, {self.time.took:.1f} s; {time_left(self.time)}"
                )
            return
        said = f"{event.outcome}: {_name(event)}: "
        missing = event.reason == _MISSING
        if (known := stem(event.message)) in self._told:
            if missing:
                return
            said += event.message if len(known) <= _SHORT else f"{event.message[:_SHORT]}… (as before)"
        else:
            self._told.add(known)
            said += event.message + ("; shown once: all trials that need it fail" if missing else "")
        self._say(said, "yellow" if event.outcome == "void" else "red")

    def _void(self, event: BlockEvent) -> None:
        """How many trials of a block the laboratory has spoilt, and at the first such block what can be done."""
        many = 2 * event.void > event.trials
        said = f"block {event.block}: {event.void} of {event.trials} trials are void, which is the laboratory's fault and not a VPN's"
        if many and not self._warned:
            self._warned = True
            said += f"; most often: {event.cause}. What can be done: {event.hint}; a lower rate; or --backend vm"
        self._say(said, "bold red" if many else "yellow")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def time_left(left: TimeLeft) -> str:
    """The time that remains, in words."""
    return f"{clock(left.seconds)} left"


def _name(event: TrialEvent) -> str:
    again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    return f"block {event.block}  {event.arm} · {event.profile} · {event.topology} · {event.workload}{again}"
