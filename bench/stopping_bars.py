"""Whether a run that adds blocks keeps its promises: simulated runs of a known truth, through the project's own rule.

    .venv/bin/python bench/stopping_bars.py [--quick] [--seed 1]

It prints the bars below with what came out, and ends with 1 when one is not met:

- reported intervals of 95 % hold the truth in 93 to 97 % of runs that stop when they are precise, of runs with further blocks, and
  of runs whose void trials other blocks replace; where noise is not normal, in at least 93 %;
- a difference of 5 % is found in at least 90 % of the runs that are precise to three fifths of it (where a VPN is in the study twice, a
  difference must be beyond what those twins show by chance, too: that is told and not judged);
- A/A: alike arms are held to be different in at most 5 % of runs, with a fixed number of blocks and with the rule. That is the exact
  level of the test with a fixed number, so there, and in any one world, it is missed when the share lies further beyond than chance explains; with the
  rule, over all worlds together, the share itself must be at most 5 %.

The rule works on arrays here, and on some runs of each world it is held against `analyse.stopping` on whole results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import exp, log, sqrt

import numpy as np
from _statistics_fast import SETTING, results_of
from _statistics_worlds import NOISES, Array, Drawn, World
from numpy.typing import NDArray
from statistics_bars import COVERED, FALSE, RATIO, Bar, print_bars

from tunnelmark.analyse import intervals, judge, stopping
from tunnelmark.analyse.model import BlockValue, Comparison
from tunnelmark.analyse.pairing import compare
from tunnelmark.plan.enough import BATCH, Enough
from tunnelmark.record.results import Results

STUDIES = 1000
SPREADS = (0.03, 0.06, 0.08, 0.1)
TRUE, MISSED = 0.8, 0.05  # the true ratio where intervals are asked for, and the difference that is to be found
FOUND = 0.9
PER_DIFFERENCE = 0.6
"""How precise a ratio must be, as a share of a difference, for that to be found nine times in ten: the interval must leave out 1, and
half of it is 2.1 standard errors; 1.28 more, and what is precise enough is mostly a little more so."""

METRIC = replace(RATIO, name="m0")
Counts = NDArray[np.intp]


TOGETHER = 3.1
"""Standard errors that a share may lie beyond a bound that it has by design: of thirty such bars none does in 95 % of simulations."""


@dataclass(frozen=True)
class ByDesign(Bar):
    """A bar whose share is its very bound by design, or of so few runs that only a share well beyond the bound shows something."""

    @property
    def met(self) -> bool:
        """Whether the share is within its bounds, as far as so many runs can tell."""
        errors = [TOGETHER * sqrt(bound * (1 - bound) / self.total) for bound in (self.least, self.most)]
        return not self.judged or self.least - errors[0] <= self.count / self.total <= self.most + errors[1]


@dataclass(frozen=True)
class Grown:
    """A world of runs that add blocks: `ratios` VPNs of one deviation `sd`, whose pairs the laboratory spoils with chance `void`."""

    name: str
    sd: float
    enough: Enough
    ratios: int = 1
    noise: str = "normal"
    void: float = 0.0
    later: int = 0  # blocks that somebody adds to the ended run


RULE = Enough(8, 40, 0.05)

WORLDS = (
    Grown("precise at the floor", 0.03, RULE),
    Grown("a floor that is just not enough", 0.06, RULE),
    Grown("twice the floor", 0.08, RULE),
    Grown("three times the floor", 0.10, RULE),
    Grown("mostly at the cap", 0.15, RULE),
    Grown("floor of 5", 0.06, replace(RULE, floor=5)),
    Grown("floor of 5, three times that", 0.08, replace(RULE, floor=5)),
    Grown("three ratios, all waited for", 0.08, RULE, ratios=3),
    Grown("one pair in ten void, more blocks", 0.08, RULE, void=0.1),
    Grown("four blocks more afterwards", 0.08, RULE, later=4),
    Grown("Laplace", 0.08, RULE, noise="laplace"),
    Grown("Student 3", 0.08, RULE, noise="student 3"),
)


def effects_of(world: Grown, studies: int, random: np.random.Generator, truth: float) -> Array:
    """Log ratios, (studies, ratios, blocks up to the cap and later ones); NaN where a pair is void."""
    shape = (studies, world.ratios, world.enough.most + world.later)
    found = log(truth) + world.sd * NOISES[world.noise](random, shape)
    return np.where(random.uniform(size=shape) < world.void, np.nan, found)


def compared(effects: Array, level: float, ratio: int = 0) -> Comparison:
    """One arm of one run against direct, by the project's own comparison (and by its draws, which follow from the names)."""
    mine = f"vpn{ratio:02d}"
    held = [(block, value) for block, value in enumerate(effects) if not np.isnan(value)]
    values = {
        (mine, SETTING, METRIC.name): tuple(BlockValue(block, exp(value)) for block, value in held),
        ("direct", SETTING, METRIC.name): tuple(BlockValue(block, 1.0) for block, _ in held),
    }
    return compare(mine, "direct", SETTING, METRIC, values, 1.01, level)


def stops(world: Grown, effects: Array) -> tuple[Counts, NDArray[np.bool_]]:
    """The blocks at which each run ends by the rule, and whether every ratio of it was precise then."""
    enough = world.enough
    assert enough.precision is not None
    level, wanted = intervals.level_of(enough), log(1 + enough.precision)
    ends = np.zeros(len(effects), dtype=np.intp)
    precise = np.zeros(len(effects), dtype=bool)
    factor = intervals.t_quantile(enough.most - 1, level) / sqrt(enough.most)
    for blocks in [*range(enough.floor, enough.most, BATCH), enough.most]:
        running = np.flatnonzero(ends == 0)
        seen = effects[running, :, :blocks]
        count = (~np.isnan(seen)).sum(axis=2)
        spread = np.nanstd(seen, axis=2, ddof=1)
        half = _factors(count, level) * spread / np.sqrt(count)
        narrow = (half <= wanted) & (count >= enough.floor)
        aside = ~narrow & (half > wanted) & (factor * spread * _least(count) > wanted)
        for place in np.flatnonzero((narrow | aside).all(axis=1)):
            widths = [_width(seen[place, ratio], level, int(ratio)) for ratio in np.flatnonzero(narrow[place])]
            if all(width <= wanted for width in widths):
                ends[running[place]] = blocks
                precise[running[place]] = bool(narrow[place].all())
    return np.where(ends == 0, enough.most, ends), precise


def _width(effects: Array, level: float, ratio: int) -> float:
    own = [float(value) for value in effects if not np.isnan(value)]
    found = stopping.width(own, compared(effects, level, ratio).interval, level)
    return float("inf") if found is None else found


def _factors(count: Counts, level: float) -> Array:
    table = np.array(
        [np.inf, np.inf, *(intervals.t_quantile(n - 1, level) for n in range(2, count.max(initial=2) + 1))]
    )
    return np.asarray(table[count])


def _least(count: Counts) -> Array:
    from scipy.special import gammaincinv

    freedom = np.maximum(count - 1, 1)
    return np.asarray(np.sqrt(freedom / (2 * gammaincinv(freedom / 2, 1 - stopping.BEYOND))))


def agree(world: Grown, effects: Array, ends: Counts, study: int) -> None:
    """SystemExit where the project's own rule, on the results of this run, ends at another number of blocks."""
    enough, blocks, made = world.enough, world.enough.floor, None
    while made is None or made.decided == "more":
        blocks = blocks if made is None else made.to
        found = stopping.widths(judge(whole(world, effects[study], blocks)), enough)
        made = stopping.decision(found, enough, blocks, spent=0.0, block_seconds=1.0)
    if blocks != ends[study]:
        raise SystemExit(
            f"the fast rule is not that of stopping: {world.name}, run {study}: {ends[study]}, not {blocks}"
        )


def whole(world: Grown, effects: Array, blocks: int, twin: Array | None = None) -> Results:
    """One run as results that could have been read from a folder: direct and its twin do not scatter, each VPN by its effects.

    `twin`: the effects of the first VPN's twin; None: it is just like it.
    """
    values = np.ones((1, blocks, world.ratios + 3))
    values[0, :, 2:-1] = np.exp(effects[:, :blocks]).T
    values[0, :, -1] = values[0, :, 2] if twin is None else np.exp(twin[:blocks])
    drawn = Drawn((values,), (np.ones(world.ratios + 3),), (True,), np.zeros(world.ratios + 3, dtype=bool))
    found = results_of(World(world.name, world.ratios, blocks=blocks, metrics=1), drawn, 0)
    rows = tuple(replace(row, outcome="void") if row.outcome == "failed" else row for row in found.trials)
    return replace(found, plan=replace(found.plan, enough=world.enough), trials=rows)


def coverage(world: Grown, studies: int, random: np.random.Generator) -> Iterator[Bar | str]:
    """How often the reported interval of the first ratio holds the truth when the run has ended."""
    effects = effects_of(world, studies, random, TRUE)
    ends, precise = stops(world, effects)
    for study in range(2):
        agree(world, effects, ends, study)
    level = intervals.level_of(world.enough)
    found = [compared(own[0, : end + world.later], level).interval for own, end in zip(effects, ends, strict=True)]
    held = sum(each is not None and each.low <= TRUE <= each.high for each in found)
    most = COVERED[1] if world.noise == "normal" else 1.0
    yield Bar("intervals of 95 % that hold the truth", world.name, held, studies, COVERED[0], most)
    yield f"  {world.name}: {ends.mean():.1f} blocks on average, {100 * precise.mean():.0f} % of the runs precise"


def fixed(studies: int, random: np.random.Generator) -> Iterator[Bar]:
    """The same with a fixed number: blocks that somebody adds whatever the first ones said, and blocks in place of void ones."""
    promise = "intervals of 95 % that hold the truth"
    for sd in (0.03, 0.1):
        effects = log(TRUE) + sd * random.normal(size=(studies, 24))
        found = [compared(own[:12], intervals.LEVEL).interval for own in effects]
        held = sum(each is not None and each.low <= TRUE <= each.high for each in found)
        yield Bar(promise, f"8 blocks and 4 more, {100 * sd:.0f} %", held, studies, *COVERED)
        void = random.uniform(size=effects.shape) < 0.1
        found = [compared(own[~gone][:8], intervals.LEVEL).interval for own, gone in zip(effects, void, strict=True)]
        held = sum(each is not None and each.low <= TRUE <= each.high for each in found)
        yield Bar(promise, f"8 blocks, void ones replaced, {100 * sd:.0f} %", held, studies, *COVERED)


def found_differences(studies: int, random: np.random.Generator) -> Iterator[Bar | str]:
    """How often a true difference of 5 % is found by the runs that are precise to three fifths of it."""
    for sd in (0.02, 0.04, 0.06):
        world = Grown(f"trials that scatter by {100 * sd:.0f} %", sd, replace(RULE, precision=PER_DIFFERENCE * MISSED))
        effects = effects_of(world, studies, random, 1 - MISSED)
        ends, precise = stops(world, effects)
        claim = np.flatnonzero(precise)
        found = sum(_differs(world, effects[study], int(ends[study])) for study in claim)
        yield Bar("a difference of 5 % is found by runs precise to 3 %", world.name, found, len(claim), FOUND, 1.0)
        twins = log(1 - MISSED) + sd * random.normal(size=(studies, RULE.most))
        found = sum(_differs(world, effects[study], int(ends[study]), twins[study]) for study in claim)
        name = f"{world.name}, a VPN held twice"
        yield Bar(
            "a difference of 5 % is found by runs precise to 3 %", name, found, len(claim), FOUND, 1.0, judged=False
        )
        yield f"  {world.name}: {ends.mean():.1f} blocks on average, {100 * precise.mean():.0f} % of the runs precise to 3 %"


def _differs(world: Grown, effects: Array, blocks: int, twin: Array | None = None) -> bool:
    """Whether the analysis of the run calls its first VPN different from direct; without a twin of the VPN, only direct has one."""
    results = whole(world, effects, blocks, twin)
    if twin is not None:
        return _told(results)
    arms = tuple(arm for arm in results.plan.arms if arm.name != "vpn-again")
    rows = tuple(row for row in results.trials if row.arm != "vpn-again")
    return _told(replace(results, plan=replace(results.plan, arms=arms), trials=rows))


def _told(results: Results) -> bool:
    pairs = judge(results).pairs
    return next(pair.differs for pair in pairs if pair.arm == "vpn00" and pair.against == "direct")


def alike(studies: int, random: np.random.Generator) -> Iterator[Bar]:
    """A/A: how often an arm is held to be different from itself."""
    promise = "A/A: alike arms held to be different"
    for name, enough in (("8 blocks", Enough(8, 8, None, 1.0)), ("until precise", RULE)):
        all_ = 0
        for sd in SPREADS:
            world = Grown(f"{name}, {100 * sd:.0f} %", sd, enough)
            effects = effects_of(world, studies, random, 1.0)
            ends = stops(world, effects)[0] if enough.precision else np.full(studies, 8)
            wrong = sum(_differs(world, own, int(end)) for own, end in zip(effects, ends, strict=True))
            all_ += wrong
            yield ByDesign(promise, world.name, wrong, studies, 0.0, FALSE)
        kind = ByDesign if enough.precision is None else Bar
        yield kind(promise, f"{name}, all of these", all_, len(SPREADS) * studies, 0.0, FALSE)


def simulated(seed: int, *, quick: bool) -> Iterator[Bar | str]:
    """Every bar, and what is to be said beside them, in order."""
    for found in _all(seed, STUDIES // 5 if quick else STUDIES):
        # So few cannot tell 93 from 92 %.
        yield ByDesign(**asdict(found)) if quick and isinstance(found, Bar) else found


def _all(seed: int, studies: int) -> Iterator[Bar | str]:
    for number, world in enumerate(WORLDS):
        # Twice as many where a share is held against two bounds: with 2,000 it is known to half a point.
        yield from coverage(world, 2 * studies, np.random.default_rng((seed, number)))
    yield from fixed(2 * studies, np.random.default_rng((seed, 1000)))
    yield from found_differences(studies, np.random.default_rng((seed, 1001)))
    yield from alike(studies, np.random.default_rng((seed, 1002)))


def main() -> int:
    """Print all bars by promise; 1 if one is not met."""
    return print_bars(simulated, __doc__, "how long the runs are")


if __name__ == "__main__":
    sys.exit(main())
