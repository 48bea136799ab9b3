"""Defines the events by which a run reports its progress: to a terminal, to programs as JSON, or from guest to host.

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
"""The plan's estimate has the weight of so many measured trials: the first of a shuffle may be the longest."""

MARK = "\x1e"
"""The first character of an event's line where other text may come between events (RFC 7464, record separator)."""


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """What the run will do; reported at its begin, and again when blocks are added.

    `added`: why blocks are added: "void" (trials stayed void) or "more" (the study needs more blocks); "" at the begin.
    `block`: the first added block. `count`: the number of added trials. `done`: trials that need no other attempt.
    `seconds`: the planned duration of the traffic of all trials that are still to be made. `besides`: the seconds that
    each of these trials takes on average in addition to its traffic.
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
    """A trial begins, enters another phase, or ends with an outcome (`state`).

    `phase`: one of `model.attempt.PHASES` but `warmup`, which `measure` includes; the first can come before `begin`.
    `seconds`: the planned duration of its traffic.
    `took`: seconds that all phases took together, by the clock of the machine that ran the trial.
    `settle`: those seconds of `took` in which the run only waited for the VPN to converge.
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
    """An arm's effect over the blocks so far, compared with `against`: a ratio, or a difference in the metric's unit.

    `low`, `high`: its confidence interval; None for an end that is unknown or infinite. `text`: as a report writes it.
    """

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
    """All trials of a block have had their first attempt: how many are void or failed, and the ratios so far.

    `cause`: the most frequent cause of void trials; "" if none is void. `cpu`: CPU seconds that the ratios took.
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
    """No trial runs, for the reason `why`; `text` is the reason in words for people.

    "calm": the run waits for other work to end. "links": it checks links. "machine": it measures the machine.
    """

    why: Literal["calm", "links", "machine"]
    text: str


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The run has ended with exit code `code`; `error` says why it ended early, and is "" otherwise."""

    results: str
    code: int
    error: str = ""


ProgressEvent = PlanEvent | TrialEvent | BlockEvent | WaitEvent | EndEvent

KINDS: Mapping[str, type[Any]] = {
    "plan": PlanEvent,
    "trial": TrialEvent,
    "block": BlockEvent,
    "wait": WaitEvent,
    "end": EndEvent,
}
"""The class of each event, by the name that its JSON line has in `event`."""


def line(event: ProgressEvent, **more: float) -> str:
    """Return an event as one line of JSON, without a newline; the fields `more` come before its own."""
    kind = next(name for name, each in KINDS.items() if isinstance(event, each))
    return json.dumps({"event": kind, **more, **asdict(event)}, ensure_ascii=False)


def read(text: str) -> ProgressEvent:
    """Return the event that a line of JSON holds. Raises ValueError or KeyError if it holds none."""
    fields = json.loads(text)
    event: ProgressEvent = TypeAdapter(KINDS[fields.pop("event")]).validate_python(fields)
    return event


class TimeLeft:
    """Estimates how many seconds a run still takes, by this process's clock, also if a guest runs the trials.

    The estimate is the planned traffic of the trials that remain, and for each of them the mean time that a trial took
    besides its traffic, counted from the end of the trial before. Waits do not count. The plan's estimate of that mean
    has the weight of two trials.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._planned = self._outside = self._begun = self._since = 0.0
        self._waiting = self._ran = 0
        self._besides = BETWEEN
        self._waits = False
        self.took = 0.0
        """How many seconds the last trial took from its begin to its end."""

    def take(self, event: ProgressEvent) -> None:
        """Update the estimate with an event."""
        now = self._clock()
        if self._waits and isinstance(event, TrialEvent):  # nothing else says that a wait is over
            self._since = now
        self._waits = isinstance(event, WaitEvent) or (self._waits and not isinstance(event, TrialEvent))
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
        """The estimated seconds until the run ends; at least 0."""
        each = (_EXPECTED * self._besides + self._outside) / (_EXPECTED + self._ran)
        return max(self._planned + self._waiting * each, 0.0)
