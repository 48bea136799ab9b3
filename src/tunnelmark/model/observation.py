"""What a look at a link brings back: packets by number with their stamps, before anything is made of them. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunnelmark.model.probe_plan import Pace, Train

RECORDS = np.dtype([("number", "<u4"), ("phase", "<u2"), ("flags", "<u2"), ("sent", "<i8"), ("received", "<i8")])
"""What the prober writes for each packet received (`probe_sender.RECORD`); times in nanoseconds of one clock."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What was sent one way and what arrived: the nodes, the probes, the train, and each packet received.

    `start` and `train_start` are when the first packet was due (nanoseconds of the clock, as in `records`);
    `train_rate` is the bit/s of frames that the sender reached; `pace` and `train` count what was really sent.
    `behind` is by how many seconds the emulator was behind the sender of the train, packets that waited for it.
    """

    source: str
    target: str
    start: int
    pace: Pace | None
    train: Train | None
    train_start: int
    train_rate: float
    late: float
    behind: float
    records: npt.NDArray[Any]

    def phase(self, number: int) -> npt.NDArray[Any]:
        """The packets received of one phase, in order of arrival."""
        chosen: npt.NDArray[Any] = self.records[self.records["phase"] == number]
        return chosen


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at a link: both ways, what its emulator says, when (seconds since the Unix epoch), how long it took.

    `zero` is when the plan of the probes began, on the clock of the flows' stamps, and `begun` when the link's own time did, as
    its emulator says (None: there is none). `seed` is that of the link. `reports` were made before the trains, `final` once the link was empty; without trains
    they are the same.
    `clock_error`: seconds by which all delays one way may be wrong together, because each end has the clock of another host.
    """

    profile: str
    topology: str
    forward: Flow
    back: Flow
    zero: int
    reports: tuple[Mapping[str, Any], ...]
    started: float
    seconds: float
    final: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0
    begun: int | None = None
    clock_error: float = 0.0

    def place(self, target: str) -> int | None:
        """The place of the direction to a node among those of its emulator; None if nothing emulates the link."""
        names = [way["name"] for report in self.reports[:1] for way in report["directions"]]
        return next((place for place, name in enumerate(names) if name.endswith(f" to {target}")), None)
