"""The margins for each kind of metric: up to which effect two arms are equal, and up to which an effect is negligible.

Both are fixed here, before any result: a margin chosen after a look at the numbers can make anything equal. An effect is
a ratio or a difference in the metric's unit, whichever the metric declares.
"""

from __future__ import annotations

from tunnelmark.record.results import MetricInfo

EQUAL_RATIO = 1.05
"""Arms within 5 % of each other are equal: a tunnel's own headers alone take 3 to 8 % of a packet of 1,500 bytes."""

EQUAL_POINTS = 1.0
"""The margin for a share, in percentage points. ITU-T G.1010 (2001), table I.1, lets conversational video lose 1 %."""

EQUAL_DELAY = 1e-4
"""The margin for a delay, in seconds: 100 µs, what eight full frames in a gigabit queue take. A hundred round trips in a
row, as a large page makes them, then differ by 10 ms, which is less than one picture of a screen at 60 Hz."""

EQUAL_SPAN = 1e-2
"""The margin for an outage, a gap or another span, in seconds: 10 ms, less than one picture of a screen at 60 Hz."""

EQUAL_OTHER = 1.0
"""The margin for a difference in any other unit: one packet, one request, one ms/s of a core."""

NEGLIGIBLE_RATIO = 1.01
"""A ratio within one per cent of 1 is negligible, however sure it is."""

NEGLIGIBLE_POINTS = 0.1
NEGLIGIBLE_TIME = 1e-5
NEGLIGIBLE_OTHER = 0.1
"""A difference of a tenth of a percentage point, ten microseconds, or a tenth of any other unit is negligible, too.

Differences are used for metrics that are often zero, where a relative margin would be zero as well."""

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
"""Each unit of time in seconds."""


def equal_within(metric: MetricInfo) -> float:
    """Return the largest effect between equal arms: a ratio above 1, or a difference in the metric's unit."""
    if metric.compare == "ratio":
        return EQUAL_RATIO
    if metric.unit == "%":
        return EQUAL_POINTS
    if metric.unit in SECONDS:
        return (EQUAL_DELAY if metric.feels in ("delay", "tail") else EQUAL_SPAN) / SECONDS[metric.unit]
    return EQUAL_OTHER


def negligible(metric: MetricInfo) -> float:
    """Return the largest effect that is negligible: a ratio above 1, or a difference in the metric's unit."""
    if metric.compare == "ratio":
        return NEGLIGIBLE_RATIO
    if metric.unit == "%":
        return NEGLIGIBLE_POINTS
    return NEGLIGIBLE_TIME / SECONDS[metric.unit] if metric.unit in SECONDS else NEGLIGIBLE_OTHER
