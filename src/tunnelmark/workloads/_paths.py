"""Reads which path traffic took before, during and after an event; the collector `path` recorded it every 0.1 s."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from tunnelmark.model import path_looks
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.path_looks import RELAYED, Look

METRICS = (
    Metric(
        "relayed_before", "%", "bytes through a third node, before the event", "lower", "difference", feels="counts"
    ),
    Metric(
        "relayed_during", "%", "bytes through a third node, during the event", "lower", "difference", feels="counts"
    ),
    Metric("relayed_after", "%", "bytes through a third node, after the event", "lower", "difference", feels="counts"),
    Metric(
        "relay_after",
        "s",
        "from the event's begin to traffic through a third node",
        "lower",
        "difference",
        feels="delay",
    ),
    Metric(
        "direct_again", "s", "from the event's end until all went directly again", "lower", "difference", feels="delay"
    ),
)
"""A metric has no sample if nothing was seen: no traffic during the event, no relay, no return to the direct path."""


def read(text: str, begun: float, ended: float) -> list[Sample]:
    """Return the samples of METRICS, from the JSON `text` of the collector; none if `text` is "".

    The event lasted from `begun` to `ended` (seconds of CLOCK_MONOTONIC).
    """
    looks: list[Look] = json.loads(text)["looks"] if text else []
    parts = {
        "relayed_before": [look for look in looks if look["time"] <= begun],
        "relayed_during": [look for look in looks if begun < look["time"] <= ended],
        "relayed_after": [look for look in looks if look["time"] > ended],
    }
    samples = [Sample(name, fmean(look[RELAYED] for look in some)) for name, some in parts.items() if some]
    since = [look for look in looks if look["time"] > begun]
    if (relay := next((look for look in since if path_looks.relayed(look)), None)) is not None:
        samples.append(Sample("relay_after", relay["time"] - begun))
        if (again := path_looks.direct_from(since)) is not None:
            samples.append(Sample("direct_again", max(0.0, again - ended)))
    return samples


def relayed(text: str, spans: Sequence[tuple[float, float]]) -> list[float | None]:
    """Return the relayed share of bytes in each span (seconds of CLOCK_MONOTONIC), in %; None if nothing was seen."""
    looks: list[Look] = json.loads(text)["looks"] if text else []
    of_span = [[look[RELAYED] for look in looks if begun < look["time"] <= ended] for begun, ended in spans]
    return [fmean(shares) if shares else None for shares in of_span]


def changes(shares: Sequence[float | None]) -> int:
    """Return how often the path changed: from mostly direct (under 50 %) to mostly through a third node, or back.

    `shares`: the relayed shares in %, in the order of time. A share of None is left out.
    """
    ways = [share >= 50 for share in shares if share is not None]
    return sum(one != other for one, other in pairwise(ways))
