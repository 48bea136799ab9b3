"""Remembers bytes that an end received outside the tunnel, until they arrive inside it, which may be some looks later.

A look is one reading of the counters. A busy daemon takes packets late: bytes that a look sees inside may have arrived
outside before an earlier look, which saw their path.
"""

from __future__ import annotations

from collections import deque

KEPT = 10
"""For how many looks (together one second) bytes are remembered: no running daemon takes longer to read its packets.

Bytes that never appear inside, such as headers and a VPN's own packets, are forgotten after that time, too.
"""


class Backlog:
    """The bytes that the last looks at an end saw outside, and that may still arrive inside, by path.

    There are two paths: directly from the other end (`direct`), and through a third node (`relayed`).
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def add(self, direct: float, relayed: float) -> None:
        """Add, for each path, the bytes that one look saw outside, less those of them that it also saw inside.

        A negative number counts as 0.
        """
        self._looks.append((max(direct, 0.0), max(relayed, 0.0)))

    def take(self, inside: float) -> tuple[float, float]:
        """Attribute bytes to earlier looks, and return how many of them came directly, and how many were relayed.

        `inside`: the bytes that the present look saw inside, less those that it saw outside as well. Bytes of the
        latest look are taken first: bytes that have waited for long are mostly headers, maybe of another path. Bytes
        for which no look has bytes left are in neither number.
        """
        direct = relayed = 0.0
        for place in reversed(range(len(self._looks))):
            waiting = self._looks[place]
            if inside <= 0:
                break
            if not (total := sum(waiting)):
                continue
            share = min(inside / total, 1.0)
            direct, relayed = direct + share * waiting[0], relayed + share * waiting[1]
            self._looks[place] = ((1 - share) * waiting[0], (1 - share) * waiting[1])
            inside -= share * total
        return direct, relayed
