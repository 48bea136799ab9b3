"""Computes when blackouts without a stated start begin: the same for all arms of a block. Pure."""

from __future__ import annotations

from hashlib import sha256

from tunnelmark.plan.impairments import Blackout


def begun_at(blackout: Blackout, seed: int, link: int, place: int) -> float:
    """Return when a blackout first begins, as stated or drawn within its period, in seconds since the link's zero.

    The link's zero is the last call of `Lab.zero`: in a trial, just before the traffic starts.
    The draw depends on `seed` (which differs by block), on `link` (the index of the link in its lab), and on `place`
    (the index of the blackout in its direction).
    """
    if blackout.every is None or blackout.start is not None:
        return float(blackout.start or 0.0)
    every = round(round(1e6 * blackout.every, 3))
    return int.from_bytes(sha256(f"blackout {seed}/{link}/{place}".encode()).digest()[:8]) % every / 1e6
