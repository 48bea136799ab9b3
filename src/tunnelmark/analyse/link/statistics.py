"""Statistics of one row of packets through a link: delay and its variation, loss and its bursts, order, copies. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Property:
    """A statistic of a link, and by how much it may be off on a correct link, apart from chance.

    The allowance is for what the instrument adds: stamps in user space when sending, the path through the nodes.
    It is `slack` (in `unit`), or `share` of the expected value if that is more. `below`: the slack on the lower side,
    if it differs.
    """

    name: str
    title: str
    unit: str
    slack: float = 0.0
    share: float = 0.0
    below: float | None = None


STEPS = (1, 20)
"""Over how many probes the variation of delay is taken (RFC 3393): for jitter drawn by packet, and for slow jitter."""

PROPERTIES = (
    Property("delay_mean", "delay, mean", "ms", 0.15, 0.01),
    Property("delay_p50", "delay, median", "ms", 0.1, 0.01),
    Property("delay_p05", "delay, 5th percentile", "ms", 0.1, 0.01, below=0.02),
    Property("delay_p99", "delay, 99th percentile", "ms", 0.5, 0.02),
    Property("delay_sd", "jitter, deviation", "ms", 0.15, 0.03),
    *(Property(f"ipdv_{step}", f"delay variation over {step} (RFC 3393)", "ms", 0.05, 0.03) for step in STEPS),
    Property("delay_lag1", "jitter, lag-1 correlation", "", 0.02),
    Property("loss", "loss", "%"),
    Property("burst", "loss, mean burst", "packets"),
    Property("duplicated", "duplicated", "%"),
    Property("corrupted", "corrupted", "%"),
    Property("skipped", "skipped the delay", "%"),
    Property("reordered", "reordered (RFC 4737)", "%"),
    Property("early", "overtaking (RFC 5236)", "%"),
    Property("displaced", "displaced (RFC 5236)", "%"),
)
"""The statistics of one look at probes.

*5th percentile*: what disturbs a look makes packets late and never early, so a link whose delay is missing shows here first.
*variation*: half of the differences between two probes' delays (IPDV) are below this, so a few late probes do not move it.
*skipped*: the share of those that arrive below the row's `floor`: netem's reordering, packets that skip the delay.
Deviation and correlation are of the others. The correlation leaves out those above the row's `ceiling` too: when a machine
pauses, all packets that wait are late together. Mean, deviation and distribution show that, and it is not jitter.
*reordered*: the share of packets that arrive after one with a larger number (RFC 4737, 3.3, Type-P-Reordered).
*displaced*: the share whose place among those that arrived is not the place of its number, 1 - RD[0] of the reorder
density of RFC 5236, 3.2 (lost packets have no place, copies are left out); *early* is the part of it with D < 0,
which overtakes.
"""


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """Packets in the order in which they were sent: lost or not, copied, corrupted; delay in seconds (NaN: not known)."""

    sent: Floats  # seconds
    lost: Flags
    duplicated: Flags
    corrupted: Flags
    delay: Floats
    floor: float = 0.0  # seconds: a delay below it is that of a packet that skipped the delay
    ceiling: float = float("inf")  # seconds: the link's profile makes no delay above it


def statistics(row: ProbeRow) -> dict[str, float]:
    """Return every property in `PROPERTIES` by name, in its unit; NaN if it cannot be computed."""
    arrived = ~np.isnan(row.delay)
    delay = 1e3 * row.delay[arrived]
    found = dict.fromkeys((each.name for each in PROPERTIES), float("nan"))
    if len(row.lost):
        found |= {
            "loss": 100 * float(row.lost.mean()),
            "duplicated": 100 * float(row.duplicated.mean()),
            "burst": mean_burst(row.lost),
            "corrupted": 100 * float(row.corrupted.mean()),
        }
    if len(delay):
        order = np.argsort(row.sent[arrived] + row.delay[arrived], kind="stable")
        displacement = displacements(order)
        median, low, high = np.quantile(delay, (0.5, 0.05, 0.99))
        found |= {
            "delay_mean": float(delay.mean()),
            "delay_p50": float(median),
            "delay_p05": float(low),
            "delay_p99": float(high),
            "delay_sd": float(delay[delay >= 1e3 * row.floor].std()) if (delay >= 1e3 * row.floor).any() else 0.0,
            "delay_lag1": lag1(np.where((row.delay < row.floor) | (row.delay > row.ceiling), np.nan, row.delay)),
            **{f"ipdv_{step}": variation(1e3 * row.delay, step) for step in STEPS},
            "skipped": 100 * float((delay < 1e3 * row.floor).mean()),
            "reordered": 100 * reordered(order),
            "early": 100 * float((displacement < 0).mean()),
            "displaced": 100 * float((displacement != 0).mean()),
        }
    return found


def bursts(lost: Flags) -> Numbers:
    """Return the lengths of runs of consecutive losses, in packets, in order."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], lost, [False])).astype(np.int8)))
    return np.asarray(edges[1::2] - edges[::2], dtype=np.int64)


def mean_burst(lost: Flags) -> float:
    """Return the mean length of the runs of consecutive losses, in packets; NaN without losses."""
    lengths = bursts(lost)
    return float(lengths.mean()) if len(lengths) else float("nan")


def lag1(values: Floats) -> float:
    """Return the correlation of each value with that sent before it, over pairs that both arrived.

    NaN without variation, or with fewer than three pairs.
    """
    both = ~np.isnan(values[:-1]) & ~np.isnan(values[1:])
    first, second = values[:-1][both], values[1:][both]
    if len(first) < 3 or first.std() == 0 or second.std() == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def variation(delay: Floats, step: int) -> float:
    """Return the median absolute difference of delays `step` probes apart, if both arrived; NaN without such a pair."""
    differences = np.abs(delay[step:] - delay[:-step])
    known = differences[~np.isnan(differences)]
    return float(np.median(known)) if len(known) else float("nan")


def reordered(numbers: Numbers) -> float:
    """Return the share (0 to 1) of packets that come after one with a larger number (RFC 4737); NaN without packets.

    `numbers`: in order of arrival.
    """
    largest = np.maximum.accumulate(numbers)
    return float((numbers < largest).mean()) if len(numbers) else float("nan")


def displacements(numbers: Numbers) -> Numbers:
    """Return how many places late (above 0) or early (below 0) each packet arrives, in order of arrival (RFC 5236).

    The receive index leaves out numbers that are lost, so that a loss displaces nothing.
    """
    place = np.arange(len(numbers))
    index = np.empty(len(numbers), dtype=np.int64)
    index[np.argsort(numbers, kind="stable")] = place
    return np.asarray(place - index, dtype=np.int64)


def distance(one: Floats, other: Floats) -> float:
    """Return the largest difference of the distribution functions of two samples (Smirnov); NaN if one is empty."""
    if not len(one) or not len(other):
        return float("nan")
    if len(other) < len(one):
        one, other = other, one
    # From left to right `one`'s function less the other's rises at values of `one` only, so it is largest at one of them,
    # and smallest just before one.
    one, other = np.sort(one, kind="stable"), np.sort(other, kind="stable")  # which is fast for what is sorted already
    above = np.searchsorted(one, one, side="right") / len(one) - np.searchsorted(other, one, side="right") / len(other)
    below = np.searchsorted(other, one, side="left") / len(other) - np.searchsorted(one, one, side="left") / len(one)
    return float(max(above.max(), below.max()))
