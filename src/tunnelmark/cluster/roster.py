"""The workers of a cluster as one command knows them: which may measure, which are left out and why, and which are to be asked what they have."""

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
    """A worker that may not measure: since when (CLOCK_MONOTONIC, in seconds), why, and what it said of itself, if it did."""

    when: float
    why: str
    found: WorkerFacts | None


class Roster:
    """By address: the workers that the scheduler has, with their threads (`seen`), and what each said that may measure (`fit`).

    `again`: seconds after which one that was left out is asked once more.
    """

    def __init__(self, watcher: Watcher, again: float) -> None:
        self._watcher, self._again = watcher, again
        self.seen: Mapping[str, int] = {}
        self.fit: dict[str, WorkerFacts] = {}
        self._left_out: dict[str, _LeftOut] = {}

    def look(self, now: Mapping[str, int]) -> None:
        """These are there now; the others are forgotten."""
        self.seen = now
        self.fit = {address: found for address, found in self.fit.items() if address in now}
        self._left_out = {address: left for address, left in self._left_out.items() if address in now}

    def to_ask(self, asked: Collection[str]) -> list[str]:
        """Those that are to say what they would measure with, besides those that were asked: new ones, and ones that were left out a while ago."""
        return sorted(each for each in self.seen if each not in self.fit and each not in asked and self._due(each))

    def takes(self, address: str, found: WorkerFacts) -> bool:
        """Whether a worker with these facts may measure from now on."""
        if why := self._watcher.fit(found, [*self.fit.values()]):
            self.leave_out(address, found.worker, why, found)
            return False
        self._left_out.pop(address, None)
        self.fit[address] = found
        self._watcher.taken(found)
        return True

    def leave_out(self, address: str, name: str, why: str, found: WorkerFacts | None = None) -> None:
        """A worker may not measure until it is asked again; the same reason is said once, whatever its numbers."""
        known = self._left_out.get(address)
        if known is None or _NUMBER.sub("", known.why) != _NUMBER.sub("", why):
            self._watcher.left_out(name, why)
        self._left_out[address] = _LeftOut(time.monotonic(), why, found or self.fit.pop(address, None))

    def any_hope(self, asked: Collection[str]) -> bool:
        """Whether one may measure, or is among those that were `asked` and was not left out before."""
        return bool(self.fit or set(asked) - self._left_out.keys())

    def reasons(self) -> list[str]:
        """Why workers are left out, each reason once."""
        return list(dict.fromkeys(left.why for left in self._left_out.values()))

    def _due(self, address: str) -> bool:
        left = self._left_out.get(address)
        if left is None:
            return True
        if left.when > time.monotonic() - self._again:
            return False
        return left.found is None or not self._watcher.held(left.found, [*self.fit.values()])
