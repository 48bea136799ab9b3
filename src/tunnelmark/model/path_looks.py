"""Which way traffic went, look by look: the rule by which a path is called direct, for all who read what the collector `path` saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DIRECT, RELAYED = "path_direct", "path_relayed"
"""The shares of bytes in per cent: from the other end itself, and through a third node."""

STRAY = 10.0
"""The percentage of bytes on another path from which on traffic is not what its path is called."""

Look = Mapping[str, float]
"""The shares of one look, and its `time` in seconds."""


def relayed(look: Look) -> bool:
    """Whether a third node carried what counts."""
    return look[RELAYED] >= STRAY and look[RELAYED] > look[DIRECT]


def direct_from(looks: Sequence[Look]) -> float | None:
    """The time of the first look from which on no other path carried more than stray bytes; None if the last one did.

    A packet that was seen outside in one look may be seen inside in the next only, so a share below 100 % alone proves nothing.
    """
    found = None
    for look in reversed(looks):
        if look[RELAYED] >= STRAY or look[DIRECT] <= look[RELAYED]:
            break
        found = look["time"]
    return found
