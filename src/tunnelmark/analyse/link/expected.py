"""The range in which each statistic of a row of probes should lie if the link does what its profile says. Pure.

The ranges come from simulated runs of the profile, with as many probes, sent at the same times as the real ones. A line
(one statistic of one direction) is in tolerance if chance alone explains its value in these runs (a Monte Carlo test,
Barnard 1963). The ranges are widened by what the instrument adds (`statistics.PROPERTIES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunnelmark.analyse.link.path import LinkPath
from tunnelmark.analyse.link.processes import in_time
from tunnelmark.analyse.link.simulation import Fates, simulate
from tunnelmark.analyse.link.statistics import PROPERTIES, Flags, Floats, ProbeRow, Property, distance, statistics
from tunnelmark.model.probe_plan import HEADERS, SIZE
from tunnelmark.plan.impairments import Bursts, Direction, LinkModel
from tunnelmark.plan.model import Profile

SPREADS = 4.5
"""By how many standard deviations of the simulated runs a line may be off. With some forty lines in the proofs of a
study, less than one in a thousand studies should be void by chance."""

BEYOND = 2.0
"""By how many standard deviations a line may pass the most extreme simulated run, if the profile has processes in time.

A look of some seconds sees few bursts and few turns of a slow jitter, so its statistics have long tails. With `SPREADS`
alone, one of fifty looks at a correct link of the profile `train` would be refused, and all looks meet the same draws.
"""

_RUNS = (40, 300)  # simulated runs, at least and at most
_DRAWS = 600_000  # packets in all runs together
_VARIES = 50e-6  # seconds: a delay with a smaller standard deviation counts as constant, but for the path's own delay

_GUARD = 0.01
"""Seconds around the start or end of a burst or cut in which no probe is judged: when a lost one was sent is not known,
only when it was planned."""

GRAIN = 2.0  # so many packets more or fewer are always taken for chance
_CHANGE = 0.2  # if the chance to be lost changes by more than this between two probes, a burst or cut starts or ends

_OWN = next(each.slack for each in PROPERTIES if each.name == "delay_p99") / 1e3
"""Seconds that the path through the nodes may add to a single delay: as many as to the 99th percentile."""

LEVELS = ("delay_mean", "delay_p50", "delay_p05", "delay_p99")
"""The properties that grow by the same time if all delays grow by it."""

_FATAL = 207 / (8 * (SIZE + 28))
"""The share of a frame's bits (without its Ethernet header) that lose the probe when inverted: those of the IP header,
and in the UDP header the destination port, the checksum, and 15 bits of the length (one only cuts the probe short)."""

_SILENT = 16 / (8 * (SIZE + 28))
"""The share of the bits whose inversion no probe notices: those of the UDP source port."""


@dataclass(frozen=True, slots=True)
class ExpectedRange:
    """The range in which one statistic of a direction may lie; `middle`: the statistic's mean over simulated runs.

    All three values are in the unit of the statistic.
    """

    middle: float
    low: float
    high: float

    def wider(self, by: float) -> ExpectedRange:
        """Return the range with both limits `by` further out; `by` is in the unit of the statistic."""
        return ExpectedRange(self.middle, self.low - by, self.high + by)

    def holds(self, value: float) -> bool:
        """Return whether a value is inside the range; a value that is not known (NaN) counts as inside."""
        return not (value < self.low or value > self.high)


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that a row of probes should have over a direction that does what its profile says.

    `limits`: the range of each property, by name; properties of which the profile says nothing are left out.
    `pooled`: delays of all runs, in seconds. `shape`: the range of the distance between the distribution of a row's
    delays and that of `pooled`; None if the delay does not vary.
    `ceiling`: seconds; the largest delay of any run, plus what the instrument may add.
    `losing`: each probe's chance to be lost (NaN near starts and ends of bursts and cuts); None if the times of bursts
    and cuts are not known. `misplaced`: the range of the number that `elsewhere` returns, the probes whose loss or
    arrival contradicts `losing`; None if `losing` is None.
    `clock_error`: by how many seconds all delays may be wrong together; the limits of delays (`LEVELS`) and `ceiling`
    are already wider by that time.
    """

    limits: Mapping[str, ExpectedRange]
    pooled: Floats
    shape: ExpectedRange | None
    ceiling: float
    losing: Floats | None = None
    misplaced: ExpectedRange | None = None
    clock_error: float = 0.0

    def elsewhere(self, lost: Flags) -> float:
        """Return how many probes were lost outside of bursts and cuts, or not lost in them; NaN if `losing` is None."""
        return float("nan") if self.losing is None else _elsewhere(lost, self.losing)

    def apart(self, delay: Floats, late: float = 0.0) -> float:
        """Return the distance between the distributions of these delays and of the simulated ones, at the best shift.

        All delays (seconds) are shifted together, so that the distance is smallest: by at most `clock_error` later,
        and at most `clock_error` + `late` seconds earlier.
        """
        low, high = -self.clock_error, self.clock_error + late
        moves = list(np.linspace(low, high, 7 if high > low else 1))
        if self.clock_error and len(delay):
            moves.append(np.clip(np.median(delay) - np.median(self.pooled), low, high))
        return min(distance(delay - by, self.pooled) for by in moves)

    def outside(self, row: ProbeRow) -> frozenset[str]:
        """Return the names of the lines that are outside of their limits in this row."""
        found = statistics(row)
        names = {name for name, limits in self.limits.items() if not limits.holds(found[name])}
        if self.shape is not None and not self.shape.holds(self.apart(_arrived(row))):
            names.add("distribution")
        if self.misplaced is not None and not self.misplaced.holds(self.elsewhere(row.lost)):
            names.add("misplaced")
        return frozenset(names)


def expect(
    model: LinkModel,
    direction: Direction,
    sent: Floats,
    *,
    serial: float,
    path: LinkPath | None = None,
    clock_error: float = 0.0,
) -> Expected:
    """Return the values that probes `sent` at these times (seconds since the link's zero) should have, by simulation.

    The link's zero is the moment at which the emulator's time for the link begins. `model`: whether the link applies
    its figures exactly as stated or with netem's arithmetic. `direction`: what the profile states for the probes'
    direction. `serial`: see `serial_of`. `path`: the link's random numbers; None if its seed or its zero is not known.
    `clock_error`: by how many seconds all measured delays may be wrong together.
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
    model: LinkModel,
    truth: Direction,
    stated: Direction,
    sent: Floats,
    *,
    runs: int,
    seed: int,
    serial: float,
    path: LinkPath | None = None,
) -> Sequence[ProbeRow]:
    """Simulate `runs` rows of probes over a link that does `truth`, as seen by a look that expects `stated`.

    `sent`, `serial`, `path`: as in `expect`.
    """
    fates = simulate(truth, model, sent, runs=runs, seed=seed, serial=serial, path=path)
    rows = [_row(fates, run, sent, floor_of(stated)) for run in range(runs)]
    _lose_headers(rows)
    return rows


def serial_of(profile: Profile, direction: Direction) -> float:
    """Return the time in seconds that a probe takes to be sent at the direction's rate (its serialisation delay).

    It is 0 if the direction has no rate, or if a token bucket sets the rate: a bucket lets one probe pass at once.
    """
    if direction.rate is None or profile.only_shaped or (profile.model == "netem" and direction.queue):
        return 0.0
    return 8 * (SIZE + HEADERS + direction.overhead) / float(direction.rate)


def floor_of(direction: Direction) -> float:
    """Return the delay (seconds) below which a packet counts as one that skipped the delay: half of the stated delay,
    and the propagation.

    It is 0 if no packet skips the delay, or if jitter alone makes delays so short.
    """
    delay, jitter = float(direction.delay or 0.0), direction.jitter
    reach = 0.0 if jitter is None else jitter.reach
    if direction.reordering is None or reach >= delay / 2:
        return 0.0
    return delay / 2 + float(direction.propagation or 0.0)


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
    # By how much a shift by the instrument's own delay changes the distribution function.
    places = np.arange(len(pooled)) / len(pooled)
    moved = float((np.searchsorted(pooled, pooled + _VARIES, side="right") / len(pooled) - places).max())
    high = float(chance.mean()) + SPREADS * float(chance.std())
    if slow:
        high = max(high, float(chance.max()) + BEYOND * float(chance.std()))
    return ExpectedRange(float(chance.mean()), 0.0, high + moved)


def _apart(losing: Floats, sent: Floats) -> Floats:
    """Return the chance of each probe to be lost; NaN for those around a start or end of what loses them."""
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
    """Mark probes as lost that were corrupted in their IP or UDP header: they hardly ever reach the prober."""
    random = np.random.default_rng(2)
    for row in rows:
        if row.corrupted.any():
            bit = random.random(len(row.lost))
            gone = row.corrupted & (bit < _FATAL)
            silent = row.corrupted & (bit > 1 - _SILENT)
            row.lost[gone], row.delay[gone] = True, np.nan
            row.corrupted[gone | silent] = False
