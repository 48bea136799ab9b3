"""Defines when a path counts as direct, from the shares of bytes that the collector `path` saw in each of its looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DIRECT, RELAYED = "path_direct", "path_relayed"
"""The metrics for the bytes, in per cent, that came from the other end itself, and through a third node."""

STRAY = 10.0
"""From this percentage of bytes on another path on, traffic does not count as taking the path its arm is named by."""

Look = Mapping[str, float]
"""The shares of one look in per cent, by metric, and its `time` in seconds."""


def relayed(look: Look) -> bool:
    """Return whether a third node carried at least `STRAY` per cent of the traffic, and more than came directly."""
    return look[RELAYED] >= STRAY and look[RELAYED] > look[DIRECT]


def direct_from(looks: Sequence[Look]) -> float | None:
    """Return the time of the look from which all were direct: under `STRAY` per cent relayed; None if the last was not.

    A packet seen outside in one look may be seen inside only in the next, so a direct share below 100 % proves nothing.
    """
    found = None
    for look in reversed(looks):
        if look[RELAYED] >= STRAY or look[DIRECT] <= look[RELAYED]:
            break
        found = look["time"]
    return found
