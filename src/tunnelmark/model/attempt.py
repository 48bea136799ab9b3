"""What one attempt at a trial left behind, as plain data: the outcome, its samples, its times, its logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tunnelmark.model.grades import Graded
from tunnelmark.model.metrics import Sample
from tunnelmark.plan.model import Trial

PHASES = ("lab", "deploy", "ready", "settle", "server", "warmup", "measure", "collect")
"""Where the wall time of a trial goes, in order; `measure` is the only one inside a measuring window.

`settle` is only the waiting that nothing else was done in: a deployment that needs long is made some
trials ahead of its own, and settles while those are measured.
"""

_FIGURES = re.compile(r"-?\d+(?:[.,]\d+)*")

UNVERIFIED = "`tunnelmark check-link PROFILE` shows every line; keep the machine quiet, or ask less of the link"
"""What to do about a link that is not what its profile says."""


def folder_of(trial: str, number: int) -> str:
    """The name of the folder for an attempt's raw output: the trial's id, and from the second attempt on its number."""
    return trial if number == 1 else f"{trial}~{number}"  # no name in an id has this sign


def stem(message: str) -> str:
    """A message without its figures, which is the same for all attempts that ended for one reason."""
    return _FIGURES.sub("…", message)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial has no result: the error's kind, what it says, its hint, and the end of the guilty log."""

    kind: str
    message: str
    hint: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """What the emulator of a trial's first link counted one way (`a>b`), in packets: offered, and what became of them.

    `loss_runs` are runs of consecutive losses; `lost` is by the profile's loss, not by queues or cuts. `delayed` packets came to the
    delay: `skipped` of them did not wait for it, and all of them together had the mean `delay` with that `deviation` (seconds).
    """

    way: str
    offered: int
    lost: int
    loss_runs: int
    duplicated: int
    corrupted: int
    delayed: int = 0  # 0 in results written before
    skipped: int = 0
    delay: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, reports: Sequence[Mapping[str, Any]]) -> tuple[LinkCounts, ...]:
        """What a lab's emulators report of the first link, a way each; nothing where the kernel carries the links."""
        return tuple(
            cls(
                way=each["name"].replace(" to ", ">"),
                offered=int(realised["offered"]),
                lost=int(each["dropped"]["loss"]),
                loss_runs=int(realised["loss_runs"]),
                duplicated=int(realised["duplicated"]),
                corrupted=int(realised["corrupted"]),
                delayed=int(realised["delay_us"]["count"]),
                skipped=int(realised["reordered"]),
                delay=realised["delay_us"]["mean"] / 1e6,
                deviation=realised["delay_us"]["deviation"] / 1e6,
            )
            for report in reports[:1]
            for each in report["directions"]
            for realised in (each["realised"],)
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a trial: the first, or a later one (`number`) of a trial that was void before.

    `link` is the direction measured (`a>b`); `phases` are wall seconds by PHASES; `first_packet` are
    seconds from the first daemon's start to the first answered ping, by direction; `host` holds what
    other work did to the machine meanwhile (`other_cpu`, `steal`: cores) and how it paused
    (`host.pauses.host`); `raw` lists kept files, relative to the results; `graded` says what the result is worth
    (None without one).
    """

    trial: Trial
    outcome: Literal["ok", "failed", "void"]
    link: str
    started: float  # seconds since the Unix epoch
    phases: Mapping[str, float]
    samples: tuple[Sample, ...] = ()
    first_packet: Mapping[str, float] = field(default_factory=dict)
    host: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    raw: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)  # by metric or collector: why it is absent
    number: int = 1
    graded: Graded | None = None
    counted: tuple[LinkCounts, ...] = ()  # by the emulator of the trial's first link
    limits: Mapping[str, float] = field(default_factory=dict)  # what held the traffic back (`run.collectors.limits`)

    @property
    def wanting(self) -> bool:
        """Whether a value is missing for a reason that lies with the laboratory and not with the VPN; a failure is the VPN's."""
        return self.outcome == "void" or (self.outcome == "ok" and self.graded is not None and self.graded.wanting)
