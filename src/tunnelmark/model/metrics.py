"""What a metric is, and one value of it: plain data that workloads declare and every later stage speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Feels = Literal["counts", "transfer", "delay", "tail", "longest", "processor"]
"""What a metric feels of a link that is late, or of a machine that pauses or works for others.

`counts`: nothing; it counts what time does not change (a size, a number of requests). `transfer`: it is spread over a whole
transfer, so that single packets weigh little. `delay`: the middle of many delays. `tail`: their highest hundredth, or a
mean that it decides. `longest`: a single packet or gap. `processor`: CPU time, which other work makes dearer. `model.grades` has the bounds.
"""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a workload reports."""

    name: str
    """Its name in results, such as `goodput`."""

    unit: str
    """Its unit, such as `bit/s`, `ms`, `%`; empty for a number."""

    title: str
    """What it is, in a few words for people."""

    better: Literal["higher", "lower"]
    """Which direction is good."""

    compare: Literal["ratio", "difference"] = "ratio"
    """How two arms are compared: by their ratio, or by their difference where it is often zero."""

    primary: bool = False
    """Primary metrics are ranked and judged; the others explain them."""

    fills: float = 0.95
    """The least share of the link's rate that the bare link must reach; 0 where no link limits it.

    The default leaves room for headers: a full TCP segment carries 1,448 bytes in a frame of 1,514.
    """

    limited_by: str = ""
    """The metric of the same reading that is above zero where the load generator, not the path, was the limit."""

    feels: Feels = "transfer"
    """What a late link or a disturbed machine does to it; most are rates or shares over seconds (`transfer`)."""


DRIFT = "drift"
"""The metric that says whether a window was stationary; `analyse.steady` marks where it was not."""

DRIFTS = Metric(
    DRIFT,
    "%",
    "goodput of the window's second half above that of its first, of their mean",
    "lower",
    compare="difference",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric; `time` is seconds since the window began for a series, None for the whole."""

    metric: str
    value: float
    time: float | None = None
