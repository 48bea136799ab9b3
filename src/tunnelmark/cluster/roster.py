"""Keeps the list of a cluster's workers: which may measure, which are left out and why, which are to be asked again."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunnelmark.cluster.tasks import WorkerFacts

if TYPE_CHECKING:
    from tunnelmark.cluster.dispatch import Watcher

_NUMBER = re.compile(r"[\d.]+")


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """A worker that may not measure: since when (CLOCK_MONOTONIC, s), why, and its facts if it has sent them."""

    when: float
    why: str
    found: WorkerFacts | None


class Roster:
    """The workers of a scheduler.

    `seen`: by address, the number of threads of each worker. `fit`: by address, the facts of those that may measure.
    `again`: seconds after which a worker that was left out is asked again.
    """

    def __init__(self, watcher: Watcher, again: float) -> None:
        self._watcher, self._again = watcher, again
        self.seen: Mapping[str, int] = {}
        self.fit: dict[str, WorkerFacts] = {}
        self._left_out: dict[str, _LeftOut] = {}

    def look(self, now: Mapping[str, int]) -> None:
        """Set the workers that are there now (address -> number of threads); all others are forgotten."""
        self.seen = now
        self.fit = {address: found for address, found in self.fit.items() if address in now}
        self._left_out = {address: left for address, left in self._left_out.items() if address in now}

    def to_ask(self, asked: Collection[str]) -> list[str]:
        """Return the addresses of the workers to ask for facts now, without those in `asked`.

        New workers are asked, and workers that were left out at least `again` seconds ago, unless `Watcher.held` says
        to wait. `asked`: the addresses of workers that have been asked and have not answered yet.
        """
        return sorted(each for each in self.seen if each not in self.fit and each not in asked and self._due(each))

    def takes(self, address: str, found: WorkerFacts) -> bool:
        """Let the worker with these facts measure if `Watcher.fit` allows it, else leave the worker out.

        Return whether the worker may measure.
        """
        if why := self._watcher.fit(found, [*self.fit.values()]):
            self.leave_out(address, found.worker, why, found)
            return False
        self._left_out.pop(address, None)
        self.fit[address] = found
        self._watcher.taken(found)
        return True

    def leave_out(self, address: str, name: str, why: str, found: WorkerFacts | None = None) -> None:
        """Leave a worker out until it is asked again, and report the reason to `Watcher.left_out`.

        A worker's reason is reported once, even if numbers in the reason change. `name`: the worker's name for people.
        `found`: the worker's facts. If None, the facts that `fit` has of the worker are used and removed from `fit`.
        """
        known = self._left_out.get(address)
        if known is None or _NUMBER.sub("", known.why) != _NUMBER.sub("", why):
            self._watcher.left_out(name, why)
        self._left_out[address] = _LeftOut(time.monotonic(), why, found or self.fit.pop(address, None))

    def any_hope(self, asked: Collection[str]) -> bool:
        """Return whether any worker is fit, or may turn out to be fit.

        `asked`: the addresses of workers that have not answered yet. A new worker counts; a worker that was
        left out and is asked again does not count.
        """
        return bool(self.fit or set(asked) - self._left_out.keys())

    def reasons(self) -> list[str]:
        """Return why workers are left out, each reason once."""
        return list(dict.fromkeys(left.why for left in self._left_out.values()))

    def _due(self, address: str) -> bool:
        left = self._left_out.get(address)
        if left is None:
            return True
        if left.when > time.monotonic() - self._again:
            return False
        return left.found is None or not self._watcher.held(left.found, [*self.fit.values()])
