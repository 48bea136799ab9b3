"""Which way traffic went before, during and after an event, from what the collector `path` saw of each tenth of a second."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean

from tunnelmark.model.metrics import Metric, Sample

_MUCH = 10.0  # per cent: less through a third node is a VPN's own chatter (`traffic_path.STRAY`)
_DIRECT, _RELAYED = "path_direct", "path_relayed"

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
"""A metric is absent where there was nothing to see: no traffic during the event, no relay, no way back to the direct path."""


def read(text: str, begun: float, ended: float) -> list[Sample]:
    """What the collector wrote, as samples; the event's begin and end are seconds of CLOCK_MONOTONIC."""
    looks: list[Mapping[str, float]] = json.loads(text)["looks"] if text else []
    parts = {
        "relayed_before": [look for look in looks if look["time"] <= begun],
        "relayed_during": [look for look in looks if begun < look["time"] <= ended],
        "relayed_after": [look for look in looks if look["time"] > ended],
    }
    samples = [Sample(name, fmean(look[_RELAYED] for look in some)) for name, some in parts.items() if some]
    since = [look for look in looks if look["time"] > begun]
    if (relay := next((look for look in since if _relays(look)), None)) is not None:
        samples.append(Sample("relay_after", relay["time"] - begun))
        if (again := _direct_from(since)) is not None:
            samples.append(Sample("direct_again", max(0.0, again - ended)))
    return samples


def _relays(look: Mapping[str, float]) -> bool:
    return look[_RELAYED] >= _MUCH and look[_RELAYED] > look[_DIRECT]


def _direct_from(looks: Sequence[Mapping[str, float]]) -> float | None:
    """The time of the first look from which on no relay carried much; None if the last one saw that."""
    found = None
    for look in reversed(looks):
        if look[_RELAYED] >= _MUCH or look[_DIRECT] <= look[_RELAYED]:
            break
        found = look["time"]
    return found
