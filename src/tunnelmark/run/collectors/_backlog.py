"""What has reached an end outside and is not inside yet: packets that a daemon without a core takes in a look or more later."""

from __future__ import annotations

from collections import deque

KEPT = 10
"""Looks, a second of them, after which nothing is still waited for: no daemon that goes on rests longer. What never appears inside,
as headers and a VPN's own packets, is forgotten with them."""


class Backlog:
    """The bytes of the last looks at one end that may still appear inside, by whether they came directly or through a third node."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def add(self, direct: float, relayed: float) -> None:
        """What one look saw outside beyond what it saw inside."""
        self._looks.append((max(direct, 0.0), max(relayed, 0.0)))

    def take(self, inside: float) -> tuple[float, float]:
        """The ways of so many bytes inside that nothing outside in the same look can have carried.

        The latest look is asked first: what has waited for long is mostly headers, of another path perhaps.
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
