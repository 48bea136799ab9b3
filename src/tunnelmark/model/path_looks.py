"""Defines when a path counts as direct, from the shares of bytes that the collector `path` reads again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DIRECT, RELAYED = "path_direct", "path_relayed"
"""The metrics for the bytes, in per cent, that came from the other end itself, and through a third node."""

STRAY = 10.0
"""If at least so many per cent of the bytes took another path, the traffic did not take the path of the arm's name.

An arm is named as direct or as relayed.
"""

Look = Mapping[str, float]
"""What the collector read at one time: the shares of bytes in per cent, by metric, and its `time` in seconds."""


def relayed(look: Look) -> bool:
    """Return whether, in one reading, a third node carried at least `STRAY` per cent, and more than came directly."""
    return look[RELAYED] >= STRAY and look[RELAYED] > look[DIRECT]


def direct_from(looks: Sequence[Look]) -> float | None:
    """Return the `time` of the first reading from which on all were direct; None if the last was not direct.

    A reading is direct if less than `STRAY` per cent of its bytes came through a third node, and more bytes came
    directly. A direct share below 100 % proves nothing: a packet that is counted on the underlay in one reading may be
    counted inside the tunnel only in the next.
    """
    found = None
    for look in reversed(looks):
        if look[RELAYED] >= STRAY or look[DIRECT] <= look[RELAYED]:
            break
        found = look["time"]
    return found
