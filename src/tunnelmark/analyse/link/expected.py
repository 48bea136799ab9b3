"""What a row of probes may show where its link is as its profile says: simulated runs, and the limits that follow. Pure.

A line is in tolerance when it lies within what the profile's own chance does to a row of so many packets at these
moments (a Monte Carlo test, Barnard 1963), widened by what the instrument adds (`statistics.PROPERTIES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunnelmark.analyse.link.path import LinkPath
from tunnelmark.analyse.link.processes import Flags, Floats, in_time
from tunnelmark.analyse.link.simulation import Fates, simulate
from tunnelmark.analyse.link.statistics import PROPERTIES, ProbeRow, Property, distance, statistics
from tunnelmark.model.probe_plan import HEADERS, SIZE
from tunnelmark.plan.impairments import Bursts, Direction, Model
from tunnelmark.plan.model import Profile

SPREADS = 4.5
"""Standard deviations of simulated runs that a line may be off: with some forty lines in the proofs of a study, less
than one in a thousand studies should be void by chance."""

BEYOND = 2.0
"""Deviations beyond the most extreme simulated run that a line may be where the profile has processes in time.

A look of seconds sees few bursts and few turns of a slow jitter, so what it reads has long tails: with `SPREADS` alone one true look
at `train` in fifty would be refused, and all looks meet the same draws.
"""

_RUNS = (40, 300)  # simulated runs, at least and at most
_DRAWS = 600_000  # packets in all runs together
_VARIES = 50e-6  # seconds: a delay with a smaller deviation does not vary, except for the path's own delay

_GUARD = 0.01
"""Seconds around the start or end of a burst or cut in which a probe is not judged: of a lost one only the planned moment is known."""

GRAIN = 2.0  # packets more or fewer that are always chance
_CHANGE = 0.2  # of the chance to be lost: a larger change from one probe to the next is a start or an end

_OWN = next(each.slack for each in PROPERTIES if each.name == "delay_p99") / 1e3
"""Seconds that the path through the nodes may add to a single delay, as to the largest ones that are judged."""

LEVELS = ("delay_mean", "delay_p50", "delay_p05", "delay_p99")
"""The properties that move with all delays alike."""

_FATAL = 207 / (8 * (SIZE + 28))
"""Share of a frame's bits (its Ethernet header apart) that lose a probe when they are inverted: those of the IP header, and
of the UDP header the destination, the checksum, and 15 bits of the length (one only cuts the probe short)."""

_SILENT = 16 / (8 * (SIZE + 28))
"""Share of those that change nothing that a probe can notice: the UDP source."""


@dataclass(frozen=True, slots=True)
class ExpectedRange:
    """What follows for a line, and from where to where it may lie, in the line's unit."""

    middle: float
    low: float
    high: float

    def wider(self, by: float) -> ExpectedRange:
        """The range with both limits `by` further out, in the line's unit."""
        return ExpectedRange(self.middle, self.low - by, self.high + by)

    def holds(self, value: float) -> bool:
        """Whether a value is inside; one that is not known (NaN) is not outside."""
        return not (value < self.low or value > self.high)


@dataclass(frozen=True, slots=True)
class Expected:
    """What follows from a direction for a row of probes.

    `limits` are by property, without those of which the profile says nothing; `pooled` are delays of all runs, sorted;
    `shape` bounds the distance of a row's distribution from them (None: the delay does not vary); `ceiling` is the largest
    delay of any run in seconds, and what the instrument may add to it. `losing` is each probe's chance to be lost where the very
    bursts and cuts are known (NaN near their starts and ends), and `misplaced` bounds how many probes differ from that.
    `clock_error`: seconds by which all delays may be wrong together, and by which their limits are wider.
    """

    limits: Mapping[str, ExpectedRange]
    pooled: Floats
    shape: ExpectedRange | None
    ceiling: float
    losing: Floats | None = None
    misplaced: ExpectedRange | None = None
    clock_error: float = 0.0

    def elsewhere(self, lost: Flags) -> float:
        """Probes that were lost at other moments than the link's bursts and cuts, or arrived in them; NaN where these are not known."""
        return float("nan") if self.losing is None else _elsewhere(lost, self.losing)

    def apart(self, delay: Floats, late: float = 0.0) -> float:
        """The smallest distance between the distribution of the delays and the simulated one, over shifts that move all delays alike.

        They are moved by at most `clock_error`, and by up to `late` seconds more to the earlier side.
        """
        low, high = -self.clock_error, self.clock_error + late
        moves = list(np.linspace(low, high, 7 if high > low else 1))
        if self.clock_error and len(delay):
            moves.append(np.clip(np.median(delay) - np.median(self.pooled), low, high))
        return min(distance(delay - by, self.pooled) for by in moves)

    def outside(self, row: ProbeRow) -> frozenset[str]:
        """The names of the properties that are outside of their limits in a row."""
        found = statistics(row)
        names = {name for name, limits in self.limits.items() if not limits.holds(found[name])}
        if self.shape is not None and not self.shape.holds(self.apart(_arrived(row))):
            names.add("distribution")
        if self.misplaced is not None and not self.misplaced.holds(self.elsewhere(row.lost)):
            names.add("misplaced")
        return frozenset(names)


def expect(
    model: Model,
    direction: Direction,
    sent: Floats,
    *,
    serial: float,
    path: LinkPath | None = None,
    clock_error: float = 0.0,
) -> Expected:
    """Simulate a direction for probes sent at these seconds since the link's zero; `serial`: see `serial_of`.

    `path` is that of the link, where its seed and zero are known. `clock_error`: seconds by which all delays that are met may be wrong
    together.
    """
    runs = int(np.clip(_DRAWS // max(len(sent), 1), *_RUNS))
    rows = simulated(model, direction, direction, sent, runs=runs, seed=1, serial=serial, path=path)
    slow = path is None and in_time(direction)
    found = [statistics(each) for each in rows]
    limits: dict[str, ExpectedRange] = {}
    for each in PROPERTIES:
        values = np.array([run[each.name] for run in found])
        if len(known := values[~np.isnan(values)]):
            limits[each.name] = _limits(each, known, len(sent), slow=slow)
            if each.name in LEVELS:
                limits[each.name] = limits[each.name].wider(1e3 * clock_error)
    every = [_arrived(each) for each in rows]
    pooled = np.concatenate(every)
    shape = None
    if len(pooled) and pooled.std() >= _VARIES:
        pooled = np.sort(pooled)[:: max(len(pooled) // 20_000, 1)]
        shape = _shape(every[:60], pooled, slow=slow)
    losing, misplaced = None, None
    if path is not None and (direction.blackouts or isinstance(direction.loss, Bursts)):
        losing = _apart(np.mean([each.lost for each in rows], axis=0), sent)
        numbers = np.array([_elsewhere(each.lost, losing) for each in rows])
        misplaced = ExpectedRange(float(numbers.mean()), 0.0, float(numbers.mean() + SPREADS * numbers.std()) + GRAIN)
    ceiling = max(map(np.max, filter(len, every)), default=np.inf) + _OWN + clock_error
    return Expected(limits, pooled, shape, ceiling, losing, misplaced, clock_error)


def simulated(
    model: Model,
    truth: Direction,
    stated: Direction,
    sent: Floats,
    *,
    runs: int,
    seed: int,
    serial: float,
    path: LinkPath | None = None,
) -> Sequence[ProbeRow]:
    """Rows of probes over a link that does `truth`, seen by a look that expects what is stated."""
    fates = simulate(truth, model, sent, runs=runs, seed=seed, serial=serial, path=path)
    rows = [_row(fates, run, sent, floor_of(stated)) for run in range(runs)]
    _lose_headers(rows)
    return rows


def serial_of(profile: Profile, direction: Direction) -> float:
    """The seconds that a probe takes at a direction's own rate; none where a shaper's bucket lets it pass at once."""
    if direction.rate is None or profile.only_shaped or (profile.model == "netem" and direction.queue):
        return 0.0
    return 8 * (SIZE + HEADERS + direction.overhead) / float(direction.rate)


def floor_of(direction: Direction) -> float:
    """Half of the delay, if packets may skip it and no jitter reaches so far down: it separates those from the others. Else 0."""
    delay, jitter = float(direction.delay or 0.0), direction.jitter
    reach = 0.0 if jitter is None else jitter.size * (1.0 if jitter.distribution == "uniform" else 4.0)
    return delay / 2 if direction.reordering is not None and reach < delay / 2 else 0.0


def _limits(each: Property, known: Floats, count: int, *, slow: bool) -> ExpectedRange:
    middle = float(known.mean())
    # Rare events come one by one: two packets more or fewer are always chance, and so is the length of a few bursts.
    grain = {"%": 200.0 / count, "packets": min(600.0 / count, 1.0)}.get(each.unit, 0.0)
    chance = SPREADS * float(known.std()) + grain
    above = max(each.slack, each.share * abs(middle))
    low, high = middle - chance - (above if each.below is None else each.below), middle + chance + above
    if slow:
        beyond = BEYOND * float(known.std()) + grain
        low, high = min(low, float(known.min()) - beyond), max(high, float(known.max()) + beyond)
    return ExpectedRange(middle, max(low, 0.0), high) if each.unit else ExpectedRange(middle, low, min(high, 1.0))


def _shape(every: Iterable[Floats], pooled: Floats, *, slow: bool) -> ExpectedRange:
    chance = np.array([distance(each, pooled) for each in every])
    # What a shift by the instrument's own delay does to a distribution function.
    places = np.arange(len(pooled)) / len(pooled)
    moved = float((np.searchsorted(pooled, pooled + _VARIES, side="right") / len(pooled) - places).max())
    high = float(chance.mean()) + SPREADS * float(chance.std())
    if slow:
        high = max(high, float(chance.max()) + BEYOND * float(chance.std()))
    return ExpectedRange(float(chance.mean()), 0.0, high + moved)


def _apart(losing: Floats, sent: Floats) -> Floats:
    """The chance of each probe to be lost, not known for those around a start or end of what loses them."""
    changes = sent[1:][np.abs(np.diff(losing)) > _CHANGE]
    first, last = (np.searchsorted(changes, sent + side * _GUARD) for side in (-1, 1))
    return np.where(first == last, losing, np.nan)


def _elsewhere(lost: Flags, losing: Floats) -> float:
    return float(np.nansum(np.abs(lost - losing)))


def _arrived(row: ProbeRow) -> Floats:
    return row.delay[~np.isnan(row.delay)]


def _row(fates: Fates, run: int, sent: Floats, floor: float) -> ProbeRow:
    lost = fates.lost[run]
    delay = np.where(lost | fates.corrupted[run], np.nan, fates.delay[run])
    return ProbeRow(sent, lost, fates.duplicated[run] & ~lost, fates.corrupted[run] & ~lost, delay, floor)


def _lose_headers(rows: Sequence[ProbeRow]) -> None:
    """A corrupted probe whose bit is in its IP or UDP header hardly ever reaches the prober."""
    random = np.random.default_rng(2)
    for row in rows:
        if row.corrupted.any():
            bit = random.random(len(row.lost))
            gone = row.corrupted & (bit < _FATAL)
            silent = row.corrupted & (bit > 1 - _SILENT)
            row.lost[gone], row.delay[gone] = True, np.nan
            row.corrupted[gone | silent] = False
