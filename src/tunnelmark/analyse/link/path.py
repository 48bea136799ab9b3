"""Computes from seed, link and direction what a link's emulator does: jitter in time, bursts, cuts, lost packets. Pure.

What the emulator does at each moment follows from its seed, the link's index and the direction's index on the link
(docs/emulator.md, "Random numbers"), so a look need not allow for chance. The code is written from that definition, and
has no code in common with the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tunnelmark.analyse.link.processes import GRID, in_time
from tunnelmark.analyse.link.statistics import Flags, Floats
from tunnelmark.model.probe_plan import Pace
from tunnelmark.plan.blackouts import begun_at
from tunnelmark.plan.impairments import Blackout, Bursts, Direction
from tunnelmark.plan.model import Profile

Words = npt.NDArray[np.uint64]

_START = 2**64 - 1
"""A number that no packet and no burst has: the start of a process is drawn from it."""

_LOSS, _WANDER, _BURST = 1, 6, 7
"""The purposes of random numbers: loss, jitter in time, bursts."""

_AT_ONCE = 1 << 17  # packets whose numbers are drawn at a time

_MET, _TRIED = 12, 3000
"""Probes that bursts, and cuts, must strike in a look, and seeds that are tried for that."""

MARGIN = 0.02
"""Seconds from the link's zero to the first probe."""


@dataclass(frozen=True, slots=True)
class LinkPath:
    """The random numbers of one direction of a link (docs/emulator.md).

    `seed`: that of the emulator.
    `link`: the index of the link.
    `place`: the index of the direction on that link; 0 is the direction to the link's first node.
    """

    seed: int
    link: int
    place: int

    def wandering(self, times: Floats, correlation_time: float) -> Floats:
        """Return the standard normal process behind a jitter at `times` (seconds since the link's zero).

        `correlation_time`: in seconds.
        """
        from scipy.special import ndtri  # SciPy costs 0.4 s, and most commands look at no link

        place = times / (correlation_time * GRID) + self._share(_WANDER)
        cell = place.astype(np.int64)
        angle = (place - cell) * (np.pi / 2)
        begin, end = (ndtri(_open_unit(self._draw(_WANDER, cell + after))) for after in (0, 1))
        return np.asarray(np.cos(angle) * begin + np.sin(angle) * end)

    def in_burst(self, loss: Bursts, times: Floats) -> Flags:
        """Return whether a burst is on at each of `times` (seconds since the link's zero)."""
        begins = self._share(_BURST) < loss.share
        means = np.array([loss.burst, loss.every - loss.burst] if begins else [loss.every - loss.burst, loss.burst])
        ends, number, last = np.zeros(0), 0, float(times.max(initial=0.0))
        while not len(ends) or ends[-1] <= last:
            stretches = np.arange(number, number + 4 * int(last / loss.every) + 64)
            lengths = -means[stretches % 2] * np.log(_open_unit(self._draw(_BURST, stretches)))
            ends = np.concatenate((ends, (ends[-1] if len(ends) else 0.0) + np.cumsum(lengths)))
            number = len(ends)
        passed = np.searchsorted(ends, times, side="right")
        return np.asarray((passed % 2 == 0) == begins)

    def black(self, blackouts: tuple[Blackout, ...], times: Floats) -> Flags:
        """Return whether the link is cut at each of `times` (seconds since the link's zero)."""
        found = np.zeros(times.shape, dtype=bool)
        for number, each in enumerate(blackouts):
            since = times - begun_at(each, self.seed, self.link, number)
            if each.every is not None:
                since = np.where((since >= 0) | (each.start is None), since % each.every, since)
            found |= (since >= 0) & (since < each.length)
        return found

    def lost(self, packets: int, *shares: float) -> tuple[int, ...]:
        """Return, for each of `shares` (0 to 1), how many of the first `packets` packets are lost at that share.

        The loss is independent: the seed and a packet's number alone decide (`plan.struck.drawn`).
        """
        below, found = np.array([round(share * 2**32) for share in shares], dtype=np.uint64), np.zeros(len(shares), int)
        for first in range(0, packets, _AT_ONCE):
            numbers = np.arange(first, min(first + _AT_ONCE, packets), dtype=np.uint64)
            found += (self._draw(_LOSS, numbers)[0] < below[:, None]).sum(axis=1)
        return tuple(map(int, found))

    def _share(self, purpose: int) -> float:
        """Return the number from 0 up to 1 with which a process begins."""
        return float(self._draw(purpose, np.array([_START], dtype=np.uint64))[0, 0]) / 2**32

    def _draw(self, purpose: int, numbers: npt.NDArray[np.integer]) -> Words:
        wide = numbers.astype(np.uint64)
        what = self.place << 16 | purpose
        counter = np.stack([wide & _LOW, wide >> _HALF, np.full_like(wide, what), np.full_like(wide, self.link)])
        return philox(counter, (self.seed & 0xFFFFFFFF, self.seed >> 32 & 0xFFFFFFFF))


def telling_seed(profile: Profile, pace: Pace | None, nodes: int, seed: int) -> int:
    """Return the first seed from `seed` on with which probes at this pace meet enough of the profile's bursts and cuts.

    A look of two seconds would mostly miss a cut that comes every 40 s, and so not test the cut. The look may choose
    its seed freely, because a correct link does what its profile says with every seed. `pace`: None if the look sends
    no probes. `nodes`: the number of nodes on the link. The result is `seed` itself if there are no probes, if the
    profile has no process in time (`in_time`), or if none of `_TRIED` seeds is good enough.
    """
    ways = [(profile.forward, nodes - 1), (profile.back, 0)]
    if pace is None or not any(in_time(way) for way, _ in ways):
        return seed
    times: Floats = MARGIN + pace.interval * np.arange(pace.count, dtype=np.float64)
    tried = range(seed, seed + _TRIED)
    return next(
        (each for each in tried if all(_tells(LinkPath(each, 0, place), way, times) for way, place in ways)), seed
    )


def _tells(path: LinkPath, way: Direction, times: Floats) -> bool:
    cut = path.black(way.blackouts, times)
    if way.blackouts and not _MET <= cut.sum() <= len(times) / 2:
        return False
    if not isinstance(way.loss, Bursts):
        return True
    return float(way.loss.probability) * int((path.in_burst(way.loss, times) & ~cut).sum()) >= _MET


_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Return four random words of 32 bits for each column of `counter`.

    A column has four words. The function is Philox4x32-10 of Random123 (Salmon et al., SC 2011).
    """
    one, two, three, four = counter
    for turn in range(10):
        keys = [np.uint64((key[n] + turn * weyl) & 0xFFFFFFFF) for n, weyl in enumerate((0x9E3779B9, 0xBB67AE85))]
        left, right = one * np.uint64(0xD2511F53), three * np.uint64(0xCD9E8D57)
        one, two, three, four = (
            (right >> _HALF) ^ two ^ keys[0],
            right & _LOW,
            (left >> _HALF) ^ four ^ keys[1],
            left & _LOW,
        )
    return np.stack([one, two, three, four])


def _open_unit(words: Words) -> Floats:
    """Return 52 bits as a number strictly between 0 and 1."""
    bits = (words[0] << np.uint64(20)) | (words[1] >> np.uint64(12))
    return np.asarray((bits.astype(np.float64) + 0.5) / 2**52)
