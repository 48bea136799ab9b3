"""When the blackouts of a link begin that a profile leaves to the seed: the same for all arms of a block. Pure."""

from __future__ import annotations

from hashlib import sha256

from tunnelmark.plan.impairments import Blackout


def begun_at(blackout: Blackout, seed: int, link: int, place: int) -> float:
    """When the first window of a link's blackout at that place of the profile's list begins, in seconds since the link's zero."""
    if blackout.every is None or blackout.start is not None:
        return float(blackout.start or 0.0)
    every = round(round(1e6 * blackout.every, 3))
    return int.from_bytes(sha256(f"blackout {seed}/{link}/{place}".encode()).digest()[:8]) % every / 1e6
