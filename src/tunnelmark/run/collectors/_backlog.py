"""Remembers bytes that reached an end outside the tunnel and are not inside yet: a busy daemon takes packets late."""

from __future__ import annotations

from collections import deque

KEPT = 10
"""For how many looks (together one second) bytes are remembered: no running daemon takes longer to read its packets.

Bytes that never appear inside, such as headers and a VPN's own packets, are forgotten after that time, too.
"""


class Backlog:
    """Bytes of the last looks at an end that may still appear inside: those that came directly, and by a third node."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def add(self, direct: float, relayed: float) -> None:
        """Add the bytes that one look saw outside beyond those that it saw inside, by path."""
        self._looks.append((max(direct, 0.0), max(relayed, 0.0)))

    def take(self, inside: float) -> tuple[float, float]:
        """Attribute `inside` bytes to earlier looks: return how many came directly, and how many through a third node.

        These are bytes that the outside bytes of their own look do not explain. Bytes of the latest look are taken
        first: bytes that have waited for long are mostly headers, maybe of another path.
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
