"""Defines a metric, and one value of it: plain data that workloads and collectors declare and later stages use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Feels = Literal["counts", "transfer", "delay", "tail", "longest", "processor"]
"""How a metric reacts to late packets, pauses of the machine, and other work on it; `model.grades` has the bounds.

`counts`: not at all; it counts what time does not change (a size, a number of requests).
`transfer`: little; it covers a whole transfer, so that single packets matter little.
`delay`: it is the middle of many delays. `tail`: it is their highest hundredth, or a mean that this hundredth decides.
`longest`: one packet or gap decides it. `processor`: it is CPU time; the same work costs more while other work runs.
"""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a workload or a collector reports."""

    name: str
    """Its name in results, such as `goodput`."""

    unit: str
    """Its unit, such as `bit/s`, `ms`, `%`; "" for a number without a unit."""

    title: str
    """What it is, in a few words for people."""

    better: Literal["higher", "lower"]
    """Whether a higher or a lower value is better."""

    compare: Literal["ratio", "difference"] = "ratio"
    """How two arms are compared: by their ratio, or by their difference where it is often zero."""

    primary: bool = False
    """Primary metrics are ranked and judged; the others explain them."""

    fills: float = 0.95
    """The least share (0 to 1) of the link's rate that the metric must reach on the bare link; 0 if no link limits it.

    The default leaves room for headers: a full TCP segment carries 1,448 bytes in a frame of 1,514.
    """

    limited_by: str = ""
    """The name of the workload's metric that is above zero if the load generator, and not the path, was the limit."""

    feels: Feels = "transfer"
    """How it reacts to late packets or a disturbed machine; most are rates or shares over seconds (`transfer`)."""


DRIFT = "drift"
"""The name of the metric that shows whether a window was stationary; `analyse.steady` marks windows that were not."""

DRIFTS = Metric(
    DRIFT,
    "%",
    "goodput of the window's second half above that of its first, of their mean",
    "lower",
    compare="difference",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric. `time`: in a series, seconds since the window began; None for the whole window."""

    metric: str
    value: float
    time: float | None = None
