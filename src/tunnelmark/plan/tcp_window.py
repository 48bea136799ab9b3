"""Models how long a TCP stream takes until its congestion window is what its path leaves it in the long run. Pure.

CUBIC (RFC 9438) after slow start (RFC 5681). A trial that is measured before that depends on its length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunnelmark.plan.impairments import FRAME, Bursts, Chance

if TYPE_CHECKING:
    from tunnelmark.plan.model import Profile

_LIMIT = 1000  # packets: netem's default (tc-netem(8))
_SEGMENT = 1448  # bytes of payload of a full TCP segment with timestamps
_INITIAL = 10  # segments of the initial window (RFC 6928)
_BUFFER = 4 * 2**20  # bytes: the kernel's default of tcp_wmem, which limits what is in flight if no rate does
_BETA, _CUBE = 0.7, 0.4  # CUBIC's decrease and its scaling in segments/s^3 (RFC 9438, 4.6 and 4.1.2)
_FRIENDLY = 3 * (1 - _BETA) / (1 + _BETA)  # segments a round trip by which CUBIC grows if Reno would be faster (4.3)
_BALANCED = 0.9  # a window is in balance with losses if the next one finds at least this share of it


def settled(path: Sequence[Profile], trip: float) -> tuple[float, float]:
    """Return the seconds until a stream's window is what the path leaves it in the long run, and those between losses.

    Slow start doubles the window each round trip (RFC 5681, 3.1) from ten segments (RFC 6928) up to rate x round trip,
    or until the first of the links' independent losses, of which one comes in 1 / p packets. The loss at a full queue
    leaves 0.7 of the window (RFC 9438, 4.6). If that is less than the path holds, it grows again. Rate and queue are
    those of the slowest link. The seconds between losses are 0 if losses do not keep the window below what the path
    holds. Where they do, slow start ends at a window far above the one that they leave, and each loss takes 0.3 of it.
    A burst that lasts a round trip loses a whole window, and then the kernel's timer decides, and what the kernel takes
    back of a timeout: windows rise and fall between extremes, and only slow start's end, the first burst, is waited for.
    """
    slowest = min(path, key=lambda link: float(link.carried or math.inf))
    full = float(slowest.carried) / 8 * trip / _SEGMENT if slowest.carried else _BUFFER / _SEGMENT
    most = full + _queue(slowest) / _SEGMENT
    losses = Losses.on(path, trip)
    reached = min(most, 1 / losses.share) if losses.share else most
    started = trip * (1 + math.ceil(math.log2(max(min(full, reached) / _INITIAL, 1))))
    down, window = losses.settle(reached, full)
    if down and losses.whole:
        return started + losses.every, losses.every
    if down or reached < full:
        return started + down, losses.apart(window)
    if slowest.rate is None or _BETA * most >= full:
        return started, 0.0
    gone = (1 - _BETA) * most
    return started + min(math.cbrt(gone / _CUBE), gone / _FRIENDLY * trip), 0.0


@dataclass(frozen=True, slots=True)
class Losses:
    """How often a stream loses packets: a `share` of them, and in bursts, one each `every` seconds (0: no bursts).

    `whole`: whether the bursts last a round trip or longer, on average.
    """

    trip: float  # seconds of a round trip
    share: float
    every: float
    whole: bool = False

    @classmethod
    def on(cls, path: Sequence[Profile], trip: float) -> Losses:
        """Return the losses of a path; no losses if it has no delay, where a window is back within no time."""
        losses = [link.forward.loss for link in path if trip]
        share = 1 - math.prod(1 - float(loss.probability) for loss in losses if isinstance(loss, Chance))
        bursts = min((loss for loss in losses if isinstance(loss, Bursts)), key=lambda loss: loss.every, default=None)
        if bursts is None:
            return cls(trip, share, 0.0)
        return cls(trip, share, float(bursts.every), float(bursts.burst) >= trip)

    def apart(self, window: float) -> float:
        """Return the mean seconds between two losses at a window of so many segments; 0 without losses."""
        often = (self.share * window / self.trip if self.share else 0.0) + (1 / self.every if self.every else 0.0)
        return 1 / often if often else 0.0

    def settle(self, window: float, full: float) -> tuple[float, float]:
        """Return the seconds until losses have brought a window down to where they leave it, and that window.

        It is there if the next loss finds at least `_BALANCED` of it again, or of the `full` segments of the path.
        """
        took = 0.0
        while apart := self.apart(window):
            after = grown(window, self.trip, apart)
            if after >= _BALANCED * min(window, full):
                break
            window, took = after, took + apart
        return took, window


def grown(window: float, trip: float, seconds: float) -> float:
    """Return the window, in segments, that CUBIC has so many seconds after a loss at `window` segments.

    It grows from 0.7 of it by 0.4 (t - K)^3 + W with K = cbrt(0.3 W / 0.4) (RFC 9438, 4.2), or as Reno would where that
    is faster (4.3).
    """
    cubic = _CUBE * (seconds - math.cbrt((1 - _BETA) * window / _CUBE)) ** 3 + window
    return max(cubic, _BETA * window + _FRIENDLY * seconds / trip)


def _queue(profile: Profile) -> float:
    """Return the bytes that may wait in front of the forward rate; a limit in packets counts as so many full frames."""
    way = profile.forward
    if way.queue is not None:
        return float(way.queue)
    packets = way.queue_packets or (way.limit or _LIMIT if profile.model == "netem" else 0)
    return float(packets * FRAME)
