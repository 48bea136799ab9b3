"""What a run tells while it goes, as plain events: for people on a terminal, as lines of JSON for programs, from a guest to its host.

docs/progress.md has the fields for those who read the lines.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from tunnelmark.run.runner import BETWEEN

_EXPECTED = 2
"""Trials that what is expected of them counts for among those that ran: the first of a shuffle may be the longest."""

MARK = "\x1e"
"""Begins an event's line where other text may come between events: the record separator of RFC 7464."""


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """What the run will do: at its begin, and again when a block was `added`, because trials stayed void or `more` blocks are asked for.

    `done` of the `trials` need no other attempt. `seconds` of traffic are planned for the others, and each is likely to take `besides` more.
    """

    study: str
    title: str
    results: str
    blocks: int
    trials: int
    done: int
    seconds: float
    arms: tuple[str, ...] = ()
    added: Literal["", "void", "more"] = ""
    block: int = 0
    count: int = 0
    besides: float = BETWEEN


@dataclass(frozen=True, slots=True)
class TrialEvent:
    """A trial begins, is in another phase of `model.attempt.PHASES` (the first ones come before it begins), or has ended with an outcome.

    `seconds` of traffic are planned, `settle` of them the VPN needed to converge; `took` by the clock of where it ran.
    """

    state: Literal["begin", "phase", "end"]
    trial: str
    block: int
    arm: str
    profile: str
    topology: str
    workload: str
    done: int
    trials: int
    seconds: float
    phase: str = ""
    following: str = ""
    attempt: int = 1
    counted: bool = True
    outcome: Literal["", "ok", "failed", "void"] = ""
    grade: str = ""
    took: float = 0.0
    settle: float = 0.0
    reason: str = ""
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class RatioEvent:
    """The effect of an arm against direct by the blocks so far: a ratio, or a difference in the metric's unit; and as a report writes it."""

    profile: str
    topology: str
    workload: str
    metric: str
    title: str
    arm: str
    against: str
    estimate: float
    low: float | None
    high: float | None
    blocks: int
    text: str


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """All trials of a block have had their first attempt: how many are void or failed, why most often, and the ratios so far.

    `cpu` are the CPU seconds that the ratios took.
    """

    block: int
    trials: int
    void: int
    failed: int
    cause: str = ""
    hint: str = ""
    ratios: tuple[RatioEvent, ...] = ()
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """No trial runs: the run waits for other work on the machine to end (`calm`), or looks at links or at the machine."""

    why: Literal["calm", "links", "machine"]
    text: str


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The run is over, with that exit code; `error` says why if it did not come to its end."""

    results: str
    code: int
    error: str = ""


Event = PlanEvent | TrialEvent | BlockEvent | WaitEvent | EndEvent

KINDS: Mapping[str, type[Any]] = {
    "plan": PlanEvent,
    "trial": TrialEvent,
    "block": BlockEvent,
    "wait": WaitEvent,
    "end": EndEvent,
}
"""The events by the name that their line has."""


def line(event: Event, **more: float) -> str:
    """An event as one line of JSON, without what ends the line; `more` comes first."""
    kind = next(name for name, each in KINDS.items() if isinstance(event, each))
    return json.dumps({"event": kind, **more, **asdict(event)}, ensure_ascii=False)


def read(text: str) -> Event:
    """The event of a line. ValueError if it is none."""
    fields = json.loads(text)
    event: Event = TypeAdapter(KINDS[fields.pop("event")]).validate_python(fields)
    return event


class TimeLeft:
    """How long a run still takes, in seconds of this process's clock, which is the user's also where a guest runs the trials.

    What is left is the traffic that is planned, and for each trial what trials so far took besides their traffic, from the end of
    the trial before; waits are left out. What the plan expects counts for as much as two trials.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._planned = self._outside = self._begun = self._since = 0.0
        self._waiting = self._ran = 0
        self._besides = BETWEEN
        self.took = 0.0
        """Seconds of the last trial that ended, from its begin."""

    def take(self, event: Event) -> None:
        """Count what has happened."""
        now = self._clock()
        match event:
            case PlanEvent():
                self._planned, self._waiting = event.seconds, event.trials - event.done
                self._besides = event.besides
            case TrialEvent(state="begin"):
                self._begun = now
            case TrialEvent(state="end"):
                self.took = now - self._begun
                if event.counted:
                    self._planned -= event.seconds
                    self._waiting = event.trials - event.done
                if event.outcome == "ok":
                    self._ran += 1
                    self._outside += max(
                        now - self._since - event.seconds - event.settle, 0.0
                    )  # it settles mostly once
        if not isinstance(event, TrialEvent) or event.state == "end":
            self._since = now

    @property
    def seconds(self) -> float:
        """What is left."""
        each = (_EXPECTED * self._besides + self._outside) / (_EXPECTED + self._ran)
        return max(self._planned + self._waiting * each, 0.0)
