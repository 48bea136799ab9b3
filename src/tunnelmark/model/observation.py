"""Holds the raw result of a link check: the received packets by number, with their timestamps. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tunnelmark.model.probe_plan import Pace, Train

RECORDS = np.dtype([("number", "<u4"), ("phase", "<u2"), ("flags", "<u2"), ("sent", "<i8"), ("received", "<i8")])
"""The prober's record of each received packet (`probe_sender.RECORD`); times in nanoseconds of CLOCK_REALTIME."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The packets of a link check in one direction: the nodes, the probes, the train, and each received packet.

    `records`: each received packet, as `RECORDS` describes it, with times of the command's CLOCK_REALTIME.
    `start`: when the first probe was due. `train_start`: when the first packet of the train was due; 0 without a train.
    Both are in nanoseconds of the same clock.
    `pace`, `train`: the plan, with the number of packets that were really sent; None if there were no probes, or no
    train.
    `train_rate`: the rate of frames that the train's sender reached, in bit/s.
    `late`: the largest delay with which a probe was sent after it was due, in seconds.
    `behind`: seconds for which packets waited in front of the emulator at the train's end, because it took them in more
    slowly than they were sent; 0 without an emulator.
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
        """Return the received packets of one phase (`PROBES` or `TRAIN`), in order of arrival."""
        chosen: npt.NDArray[Any] = self.records[self.records["phase"] == number]
        return chosen


@dataclass(frozen=True, slots=True)
class Observation:
    """One link check: the flows of both directions, and the emulators' reports.

    `zero`: when the probers' plans began. `begun`: when the emulator's own time began; None if nothing emulates the link.
    Both are in nanoseconds of the command's CLOCK_REALTIME, like the times in the flows.
    `started`: when the check began, in seconds since the Unix epoch; `seconds`: how long it took. `seed`: the seed of
    the link's random decisions.
    `reports`: the emulators' reports after the probes and before the trains. `final`: their reports when the link was
    empty at the end. Without trains the two are the same.
    `clock_error`: the error, in seconds, that all one-way delays may have in common because the two ends are on
    different hosts, whose clocks are known only with that error; 0 on one host.
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
        """Return the index of the direction to the node `target` among the `directions` of the emulator's report.

        None if nothing emulates the link.
        """
        names = [way["name"] for report in self.reports[:1] for way in report["directions"]]
        return next((place for place, name in enumerate(names) if name.endswith(f" to {target}")), None)
