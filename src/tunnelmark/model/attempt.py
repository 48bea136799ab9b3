"""Holds the result of one attempt at a trial as plain data: the outcome, its samples, its times, its logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal

from tunnelmark.errors import MissingPart
from tunnelmark.model.grades import Graded
from tunnelmark.model.metrics import Sample
from tunnelmark.plan.model import Trial

PHASES = ("lab", "deploy", "ready", "settle", "server", "warmup", "measure", "collect")
"""The phases of a trial, in order, to which its wall time is booked. Only `measure` lies inside the measured window.

`settle` is the time in which the run only waited for the VPN to converge. A deployment that needs long to converge is
made some trials earlier, and converges while those are measured.
"""

_FIGURES = re.compile(r"-?\d+(?:[.,]\d+)*")

NOT_INSTALLED = MissingPart("").kind
"""The kind of the failure of an attempt that could not begin, because a program or a kernel feature was not there."""

UNVERIFIED = "`tunnelmark check-link PROFILE` shows every line; keep the machine quiet, or ask less of the link"
"""The hint for the user if a link does not do what its profile says."""


def folder_of(trial: str, number: int) -> str:
    """Return the name of the folder for an attempt's raw output: the trial's id, or `id~number` from number 2 on."""
    return trial if number == 1 else f"{trial}~{number}"  # no name in an id has this sign


def stem(message: str) -> str:
    """Return the message with "…" for its numbers, so that attempts that ended for one reason have the same text."""
    return _FIGURES.sub("…", message)


def alike(messages: Sequence[str]) -> list[list[str]]:
    """Return messages in groups that differ only in their numbers, the largest group first."""
    found: dict[str, list[str]] = {}
    for message in messages:
        found.setdefault(stem(message), []).append(message)
    return sorted(found.values(), key=lambda group: -len(group))


def merged_messages(messages: Sequence[str]) -> list[tuple[str, int]]:
    """Merge messages that differ only in their numbers; return each with how often it occurs, the most frequent first.

    Where the numbers differ, the least and the largest one are given: `0.26 to 0.61 cores`.
    """
    return [(_with_ranges(group), len(group)) for group in alike(messages)]


def _with_ranges(group: Sequence[str]) -> str:
    words = _FIGURES.split(group[0])
    columns = zip(*(_FIGURES.findall(message) for message in group), strict=True)
    return "".join(map("".join, zip_longest(words, map(_range, columns), fillvalue="")))


def _range(figures: Sequence[str]) -> str:
    """Return the one figure, or the least and the largest; "…" if they differ and not all are numbers, as addresses."""
    different = set(figures)
    if len(different) == 1:
        return figures[0]
    try:
        ordered = sorted(different, key=lambda text: float(text.replace(",", "")))
    except ValueError:
        return "…"
    return f"{ordered[0]} to {ordered[-1]}"


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a trial has no result: the error's kind, message and hint, and the ends of the daemons' logs."""

    kind: str
    message: str
    hint: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The packets that the emulator of a trial's first link counted in one direction (`way`: `a>b`).

    `offered`: packets that entered. `lost`: lost by the profile's loss, not by queues or cuts. `loss_runs`: runs of
    consecutive losses. `delayed`: packets that reached the delay stage. `skipped`: those of them that did not wait
    there. `delay` and `deviation`: mean and standard deviation of the delay of all `delayed` packets, in seconds.
    """

    way: str
    offered: int
    lost: int
    loss_runs: int
    duplicated: int
    corrupted: int
    delayed: int = 0  # 0 in results that were written before this field existed
    skipped: int = 0
    delay: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, reports: Sequence[Mapping[str, Any]]) -> tuple[LinkCounts, ...]:
        """Return the counts of a lab's first link, one for each direction; () if the kernel carries the links.

        `reports`: those of the lab's emulators, the first link's first (`Lab.link_reports`).
        """
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
    """One attempt at a trial: the first one, or a later one (`number` > 1) after a void attempt.

    `link`: the direction that was measured (`a>b`). `phases`: wall seconds by phase (PHASES).
    `first_packet`: seconds from the start of the first daemon to the first answered ping, by direction.
    `host`: cores that other work (`other_cpu`) and the hypervisor (`steal`) took, and the machine's pauses
    (`host.pauses.host`).
    `raw`: the names of the kept files in the attempt's folder. `graded`: the grade; None if the attempt was not graded.
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
        """Whether the value of a primary metric is void or missing by the laboratory's fault.

        False for a failed attempt: its values are missing by the fault of the VPN or the workload.
        """
        return self.outcome == "void" or (self.outcome == "ok" and self.graded is not None and self.graded.wanting)
