"""Defines when a path counts as direct, from the shares of bytes that the collector `path` saw in each of its looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DIRECT, RELAYED = "path_direct", "path_relayed"
"""The metrics for the bytes, in per cent, that came from the other end itself, and through a third node."""

STRAY = 10.0
"""If at least so many per cent of the bytes took another path, the traffic did not take the path of the arm's name.

An arm is named as direct or as relayed.
"""

Look = Mapping[str, float]
"""The shares of one look in per cent, by metric, and its `time` in seconds."""


def relayed(look: Look) -> bool:
    """Return whether a third node carried at least `STRAY` per cent of the traffic, and more than came directly."""
    return look[RELAYED] >= STRAY and look[RELAYED] > look[DIRECT]


def direct_from(looks: Sequence[Look]) -> float | None:
    """Return the time of the first look from which on all looks were direct; None if the last look was not direct.

    A look is direct if less than `STRAY` per cent of its bytes came through a third node, and more bytes came directly.
    A packet seen outside in one look may be seen inside only in the next, so a direct share below 100 % proves nothing.
    """
    found = None
    for look in reversed(looks):
        if look[RELAYED] >= STRAY or look[DIRECT] <= look[RELAYED]:
            break
        found = look["time"]
    return found
