"""Compares the emulator's counts of a run's own traffic with the profile. Pure.

A look has a few thousand probes, which are too few to meet a rare loss. So the packets of the trials are counted, too.
Within a block, the emulator decides the same for packets of the same number, whichever arm sends them. The counts of
several arms would therefore say no more than the largest of them, and from each block only the attempt with the most
packets is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunnelmark.analyse.link.expected import GRAIN, SPREADS
from tunnelmark.analyse.link.path import LinkPath
from tunnelmark.model.attempt import LinkCounts
from tunnelmark.plan.order import link_seed
from tunnelmark.plan.struck import CORRELATED
from tunnelmark.record.link_check import LinkPart, PartVerdict
from tunnelmark.record.results import Results

_MISSED = 1.645
"""5 % of counts lie more than this many standard deviations below the mean. A wrong link must be that far beyond the
bound (power 95 %)."""

TOGETHER = (1 + CORRELATED) / (1 - CORRELATED)
"""The variance of packets that skip the delay is at most this many times a binomial's, because they are correlated."""

_LEVEL = 1e-4
"""The share of correct jitters that may be refused: a level of a t test; `SPREADS` does not fit so few blocks."""

_SMALLER = 0.7  # the wrong link that must be found has this many times the jitter
_LEAST = 3  # blocks; with fewer the spread between them is not judged
_HELD = 0.05  # how much packets that wait for earlier ones may change the mean square, as a share


@dataclass(frozen=True, slots=True)
class Count:
    """The packets that the emulator struck in one direction (lost, copied and so on), to be compared with the profile.

    `part`: the part of the profile, such as "loss". `offered`: the number of packets that could be struck. `share`: the
    share that the profile states. `spread`: the variance of the count as a multiple of a binomial's (losses come in
    runs).
    """

    part: str
    offered: int
    struck: int
    share: float
    spread: float

    def deviation(self, share: float) -> float:
        """Return the standard deviation of the count, in packets, on a link that strikes this share."""
        return math.sqrt(self.offered * share * (1 - share) * self.spread)

    @property
    def room(self) -> float:
        """By how many packets the count may differ from `offered * share` if the link does what its profile says."""
        return SPREADS * self.deviation(self.share) + GRAIN

    @property
    def inside(self) -> bool:
        """Whether the count fits the profile: it differs from `offered * share` by at most `room` packets."""
        return abs(self.struck - self.offered * self.share) <= self.room

    @property
    def tells(self) -> bool:
        """Whether so many packets can tell: a link that strikes none, or strikes twice as often, would be outside."""
        twice = min(2 * self.share, 1.0)
        beyond = self.offered * (twice - self.share) - self.room - _MISSED * self.deviation(twice)
        return beyond > 0 and self.offered * self.share > self.room


@dataclass(frozen=True, slots=True)
class Draws:
    """Losses among packets, if seed and packet number decide which packets are lost.

    `expected`: the losses that follow from the profile. `twice`: those that follow from twice its share of losses.
    """

    offered: int
    struck: int
    expected: int
    twice: int

    room = GRAIN
    """By how many packets `struck` may differ from `expected`, though chance has no part in it."""

    @classmethod
    def of(cls, share: float, ones: Sequence[tuple[LinkCounts, LinkPath]]) -> Draws:
        """Return the losses of all these blocks as one sample.

        `ones`: for each block, the counts of a link's direction, and the random numbers that decided that
        direction's losses. `share`: the share of losses (0 to 1) that the profile asks for.
        """
        follow = [path.lost(one.offered, share, min(2 * share, 1.0)) for one, path in ones]
        expected, twice = map(sum, zip(*follow, strict=True))
        return cls(sum(one.offered for one, _ in ones), sum(one.lost for one, _ in ones), expected, twice)

    @property
    def inside(self) -> bool:
        """Whether as many packets were lost as follows from the profile."""
        return abs(self.struck - self.expected) <= self.room

    @property
    def tells(self) -> bool:
        """Whether so many packets can tell: a link that loses none, or loses twice as often, would be outside."""
        return self.expected > self.room and self.twice - self.expected > self.room


@dataclass(frozen=True, slots=True)
class Wander:
    """The variation of delays around the delay that the profile states.

    `squares`: the mean squared deviation in each block, as a multiple of the variance that the profile states.
    """

    squares: tuple[float, ...]

    @classmethod
    def of(cls, ones: Sequence[LinkCounts], delay: float, deviation: float) -> Wander:
        """Return the variation over these blocks; `delay`, `deviation`: those of the profile, in seconds."""
        return cls(tuple((one.deviation**2 + (one.delay - delay) ** 2) / deviation**2 for one in ones))

    @property
    def mean(self) -> float:
        """The mean over blocks; it is 1 if the link does what its profile says."""
        return float(np.mean(self.squares))

    @property
    def room(self) -> float:
        """By how much the mean may differ from 1 if the link does what its profile says."""
        from scipy.special import stdtrit  # SciPy costs 0.4 s, and most commands look at no link

        return float(stdtrit(len(self.squares) - 1, 1 - _LEVEL / 2)) * self._error + _HELD

    @property
    def _error(self) -> float:
        # The squares of a jitter that is too large also spread that much more, which a true link's would not.
        return float(np.std(self.squares, ddof=1)) / math.sqrt(len(self.squares)) / max(self.mean, 1.0)

    @property
    def inside(self) -> bool:
        """Whether the variation of delays fits the profile: the mean differs from 1 by at most `room`."""
        return abs(self.mean - 1) <= self.room

    @property
    def tells(self) -> bool:
        """Whether so many blocks can tell: a link with 0.7 times the jitter would be outside."""
        # The squares of a smaller jitter also spread less, so their error is taken relative to the mean.
        relative = (self.room - _HELD + _MISSED * self._error) / self.mean if self.mean else 0.0
        return _SMALLER**2 * (1 + relative) + _HELD < 1


def place_of(links: Sequence[Sequence[str]], way: str) -> tuple[int, int]:
    """Return the index of the direction's link in `links`, and the index of the direction on that link.

    `links`: the names of each link's nodes, in the link's order. `way`: the direction (`a>b`, on a switch `all>b`). The
    index of a direction is the index of its target among the link's nodes. On a link of `a` and `b`, that is 1 for
    `a>b`, and 0 for the direction back, `b>a`.
    """
    source, _, target = way.partition(">")
    number = next(n for n, nodes in enumerate(links) if target in nodes and (source in nodes or len(nodes) > 2))
    return number, list(links[number]).index(target)


def parts(results: Results) -> Iterator[tuple[str, str, LinkPart]]:
    """Judge the counts of all trials: yield the names of profile and topology, and the judged part of the profile.

    What a link counted that has a profile of its own in its topology says nothing of the study's profile.
    """
    largest: dict[tuple[str, str, str, int], LinkCounts] = {}
    topologies = {topology.name: topology for topology in results.plan.topologies}
    for row in results.trials:
        for one in row.counted:
            key = row.profile, row.topology, one.way, row.block
            if key not in largest or one.offered > largest[key].offered:
                largest[key] = one
    profiles = {profile.name: profile for profile in results.plan.profiles}
    summed: dict[tuple[str, str, str, bool], list[tuple[LinkCounts, LinkPath]]] = {}
    for (profile, topology, way, block), one in largest.items():
        names, nodes = zip(*topologies[topology].links.items(), strict=True)
        number, place = place_of(nodes, way)
        if names[number] in topologies[topology].own:
            continue
        path = LinkPath(link_seed(results.plan.seed, block), number, place)
        summed.setdefault((profile, topology, way, place > 0), []).append((one, path))
    for (profile, topology, way, forward), each in summed.items():
        place, ones = 0 if forward else 1, [one for one, _ in each]
        share = profiles[profile].drawn[place]
        for count in counts(profiles[profile].strikes[place], ones):
            if count.part == "loss" and share is not None:
                yield profile, topology, _losses(way, Draws.of(share, each))
                continue
            follows = f"{count.offered * count.share:,.0f} +- {count.room:,.0f} follow from the profile"
            said = f"the emulator counted {count.struck:,} of {count.offered:,} packets of the trials, {follows}"
            verdict: PartVerdict = "outside" if not count.inside else "shown" if count.tells else "not tested"
            yield profile, topology, LinkPart(way, count.part, verdict, said)
        known = profiles[profile].wanders[place]
        if known is not None and len(delayed := [one for one in ones if one.delayed]) >= _LEAST:
            yield profile, topology, _jitter(way, Wander.of(delayed, *known), known[1])


def _losses(way: str, draws: Draws) -> LinkPart:
    verdict: PartVerdict = "outside" if not draws.inside else "shown" if draws.tells else "not tested"
    said = f"the emulator lost {draws.struck:,} of {draws.offered:,} packets of the trials, {draws.expected:,} follow from profile and seed"
    return LinkPart(way, "loss", verdict, said)


def _jitter(way: str, wander: Wander, deviation: float) -> LinkPart:
    verdict: PartVerdict = "outside" if not wander.inside else "shown" if wander.tells else "not tested"
    low, high = (1e6 * deviation * math.sqrt(max(1 + side * wander.room, 0.0)) for side in (-1, 1))
    met = 1e6 * deviation * math.sqrt(wander.mean)
    said = f"the trials' packets had delays that deviate by {met:.0f} us, {low:.0f} to {high:.0f} us follow from the profile"
    return LinkPart(way, "jitter", verdict, said)


def counts(strikes: Mapping[str, float], ones: Sequence[LinkCounts]) -> Iterator[Count]:
    """Yield, for each part in `strikes`, how many packets the emulator struck, to be compared with the profile's share.

    `strikes`: by part ("loss", "skips" and so on) the share of packets that the profile strikes. `ones`: the emulator's
    counts of each block.
    """
    offered, lost = sum(one.offered for one in ones), sum(one.lost for one in ones)
    runs = sum(one.loss_runs for one in ones)
    for part, share in strikes.items():
        if part == "loss":
            # Runs of geometric lengths with mean L: the variance of their sum is 2 L - 1 times that of as many single losses.
            yield Count(part, offered, lost, share, max(2 * lost / runs - 1, 1.0) if runs else 1.0)
        elif part == "skips":
            yield Count(part, sum(one.delayed for one in ones), sum(one.skipped for one in ones), share, TOGETHER)
        else:
            struck = sum(one.duplicated if part == "duplication" else one.corrupted for one in ones)
            yield Count(part, offered - lost, struck, share, 1.0)
