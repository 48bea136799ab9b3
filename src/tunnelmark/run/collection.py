"""Runs the collectors of one trial during its traffic, and gathers what they saw and how much CPU they took."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.host import keep_awake
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Sampler

COST = Metric("watch_cpu", "s", "CPU of the collectors themselves", "lower", "difference", feels="processor")
"""The CPU seconds of all collectors of a trial together; the file `FILE` has them by collector."""

FILE = "watch.cost.json"


@dataclass(slots=True)
class _Post:
    """A collector at work: its sampler (None if refused), when its next look is due, and its CPU seconds so far."""

    collector: Collector
    sampler: Sampler | None = None
    due: float = 0.0
    spent: float = 0.0
    seen: Collected = field(default_factory=Collected)


@dataclass(frozen=True, slots=True)
class CollectorFinding:
    """What a collector saw of the nodes on one host, and the CPU seconds that it took (`cost`).

    `refused`: why it could not look; "" if it could.
    """

    collector: Collector
    seen: Collected = field(default_factory=Collected)
    cost: float = 0.0
    refused: str = ""


class Collection:
    """The collectors of one trial on this host; make it while the mesh is idle."""

    def __init__(self, context: CollectorContext, collectors: Sequence[Collector]) -> None:
        self._context = context
        self._posts = [_Post(collector) for collector in collectors]
        self._looking: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self.notes: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        """For each collector that could not measure on this machine: the reason."""

        self.limits: dict[str, float] = {}
        for post in self._posts:
            with self._costing(post):
                post.sampler = post.collector.watch(context)

    async def begin(self) -> None:
        """Begin to collect; call it when the traffic's client is about to start."""
        for post in self._in_turn():
            await self._call(post, lambda sampler: sampler.begin())
            post.due = time.monotonic() + (post.collector.every or 0.0)
        if any(post.collector.every for post in self._posts):
            self._looking = asyncio.create_task(self._look())

    async def end(self) -> tuple[Sample, ...]:
        """Stop all collectors, and return their samples; call it when the traffic is over.

        The times of series count from `begin`. `notes` and `limits` are complete now. The CPU seconds of each collector
        are written to the file `FILE`.
        """
        found = await self.found()
        notes, limits, samples = concluded(found, self._context.raw)
        self.notes |= notes
        self.limits |= limits
        return samples

    async def found(self) -> tuple[CollectorFinding, ...]:
        """Stop all collectors, and return what each of them saw and what it cost; call it when the traffic is over.

        Call it instead of `end` on one of several hosts: the command makes the samples from the findings of all hosts.
        """
        await self._rest()
        for post in reversed(self._in_turn()):
            await self._call(post, lambda sampler: sampler.end(), last=True)
        return tuple(
            CollectorFinding(
                post.collector, post.seen, post.spent + post.seen.cpu, self.refused.get(post.collector.name, "")
            )
            for post in self._posts
        )

    def give_up(self) -> None:
        """Drop all collectors, because the trial has failed; what they opened before `begin` is closed with them."""
        self._over.set()
        self._posts.clear()

    def _in_turn(self) -> list[_Post]:
        """Return the collectors in the order in which they begin (see `Turn`); they end in the reverse order."""
        return sorted(self._posts, key=lambda post: post.collector.turn)

    async def _look(self) -> None:
        posts = [post for post in self._posts if post.collector.every]
        while not self._over.is_set():
            due = min(post.due for post in posts)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), max(due - time.monotonic(), 0.0))
            for post in posts:
                if post.due <= (now := time.monotonic()) and not self._over.is_set():
                    await self._call(post, lambda sampler: sampler.sample())
                    post.due = next_due(post.due, post.collector.every or 0.0, now)

    async def _rest(self) -> None:
        """Wait until a look that has begun is finished, and begin no other."""
        self._over.set()
        if self._looking is not None:
            await self._looking
            self._looking = None

    async def _call(
        self, post: _Post, ask: Callable[[Sampler], Coroutine[Any, Any, Any]], *, last: bool = False
    ) -> None:
        if post.sampler is not None:
            with self._costing(post):
                seen = await ask(post.sampler)
                if last:
                    post.seen = seen

    @contextlib.contextmanager
    def _costing(self, post: _Post) -> Iterator[None]:
        """Add the CPU that this command uses in the `with` block to the collector; drop it if the machine refuses.

        During the traffic the command only waits, so the CPU is the collector's, unless a program's end is reported.
        """
        before = keep_awake.process_seconds()
        try:
            yield
        except (LabError, OSError) as error:
            self.refused[post.collector.name] = getattr(error, "message", None) or str(error)
            self.notes |= self.refused
            post.sampler = None
        finally:
            post.spent += keep_awake.process_seconds() - before


def next_due(due: float, every: float, now: float) -> float:
    """Return when the next look is due, after a look due at `due` and taken at `now` (seconds of one clock).

    A look is one reading of the counters. `every`: the interval between two looks in seconds. The next look is due at
    `due + every`; but after a look that was late by half an interval or more, it is due at `now + every`. Otherwise it
    might come a few milliseconds later, which is too short to see how much a program works.
    """
    return due + every if now - due < every / 2 else now + every


def concluded(
    findings: Sequence[CollectorFinding], raw: Path
) -> tuple[dict[str, str], dict[str, float], tuple[Sample, ...]]:
    """Return a trial's notes, limits and samples from what each collector saw on all hosts.

    The collectors' cost is one of the samples, and is written to the file `FILE` in the folder `raw`.
    """
    notes, limits, samples = dict[str, str](), dict[str, float](), list[Sample]()
    if not findings:
        return notes, limits, ()
    for finding in findings:
        seen, conclude = finding.seen, finding.collector.conclude
        if conclude is not None and seen.sums:
            seen = seen.joined(conclude(seen))
        samples += seen.samples
        notes |= _brief(finding.collector, seen)
        limits |= seen.limits
    cost = {finding.collector.name: finding.cost for finding in findings}
    (raw / FILE).write_text(json.dumps({"CPU seconds by collector": cost}) + "\n")
    return notes, limits, (*samples, Sample(COST.name, sum(cost.values())))


def _brief(collector: Collector, seen: Collected) -> dict[str, str]:
    """Return a collector's notes, those with the same reason merged.

    The key of a merged note is the common prefix of the metrics' names, if no other metric has that prefix. Otherwise
    each metric keeps its own note.
    """
    found: dict[str, str] = {}
    for reason in dict.fromkeys(seen.notes.values()):
        names = [name for name, why in seen.notes.items() if why == reason]
        start = _beginning(names).rstrip("_")
        alike = {metric.name for metric in collector.metrics if metric.name.startswith(start)}
        found |= {start: reason} if start and alike == set(names) else dict.fromkeys(names, reason)
    return found


def _beginning(names: Sequence[str]) -> str:
    """Return the longest common prefix of all names."""
    first, last = min(names), max(names)
    same = next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first)
    )
    return first[:same]


def shifted(samples: Sequence[Sample], seconds: float) -> tuple[Sample, ...]:
    """Return the samples, with the times of series counted from a moment that is `seconds` later.

    Values of series before that moment are left out.
    """
    moved = (s if s.time is None else replace(s, time=round(s.time - seconds, 3)) for s in samples)
    return tuple(sample for sample in moved if sample.time is None or sample.time >= 0)
