"""Whether the machine as a level of the analysis keeps its promises: simulated clusters of a known truth, through `analyse.session_effects`.

    .venv/bin/python bench/machine_level.py [--quick] [--seed 1]

Each machine has one session of so many blocks; machines and blocks vary normally, machines by a half, one or two deviations of a block
(and by nothing, where that is told). It prints the bars below with what came out, and ends with 1 when one is not met:

- the variances between machines and between blocks come out within 5 % of the true ones in the mean over studies, from machines that differ by
  half a block's deviation or more;
- intervals of 95 % over machines like these hold the truth in 93 to 97 % of studies, down to one block for each machine, and where some
  have many blocks and others one;
- what one more machine will print is inside of what was foretold in 93 to 97 %;
- the interval of these machines alone holds their own mean in 93 to 97 %, where blocks vary alike on all.

What they do where machines do not differ at all (intervals over machines may then be wider), and where blocks of every other machine vary three
times as much, is told and not judged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from statistics_bars import COVERED, Bar, print_bars

from tunnelmark.analyse.session_effects import Combined, SessionEffect, combine

STUDIES = 8000
BIAS = 0.05

EVEN = ((4,) * 5, (6,) * 5, (8,) * 5, (4,) * 8, (6,) * 8, (4,) * 10, (8,) * 10)
"""Blocks of each machine in the studies of which the variances are asked for."""

FEW = ((1,) * 8, (2,) * 4, (2, 2, 1, 1, 1, 1), (3, 2, 2, 1), (3,) * 3)
UNEVEN = ((8, 4, 2, 1, 1), (12, 1, 1), (12, 6, 3, 3, 1), (20, 10, 10, 5, 5))


@dataclass(frozen=True)
class Bias(Bar):
    """The mean of an estimate over `total` studies by its true value, with the simulation's own error."""

    ratio: float = 1.0
    error: float = 0.0

    @property
    def met(self) -> bool:
        """Whether the bias is within the bound."""
        return not self.judged or abs(self.ratio - 1) <= BIAS

    def __str__(self) -> str:
        verdict = ("met" if self.met else "NOT MET") if self.judged else "told, not judged"
        return f"  {self.world:<46} {100 * (self.ratio - 1):+6.1f} % (± {100 * self.error:.1f}) within {100 * BIAS:.0f} %   {verdict}"


@dataclass(frozen=True)
class World:
    """Machines of so many `blocks`, which differ by `machines` deviations of a block; every other one's blocks vary `noisy` times as much."""

    blocks: tuple[int, ...]
    machines: float
    noisy: float = 1.0

    @property
    def name(self) -> str:
        """In words."""
        some = f"{len(self.blocks)} machines of {self.blocks[0]}"
        if len(set(self.blocks)) > 1:
            some = f"machines of {', '.join(map(str, self.blocks))}"
        return f"{some} blocks, sd {self.machines:g}" + (f", noise x{self.noisy:g}" if self.noisy != 1 else "")


@dataclass(frozen=True)
class Told:
    """What the analysis says of each study of a world, with the mean of its machines' true effects and what one more machine prints."""

    found: list[Combined]
    truth: NDArray[np.float64]
    further: NDArray[np.float64]

    def held(self, low: str, high: str, truth: NDArray[np.float64]) -> int:
        """In how many studies the interval holds the truth; one that there is not holds nothing."""
        ends = np.array([[getattr(each, name) for name in (low, high)] for each in self.found], dtype=float)
        return int(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum())


def simulate(world: World, random: np.random.Generator, studies: int) -> Told:
    """Studies of this world, whose true mean is 0."""
    count = len(world.blocks)
    deviations = np.where(np.arange(count) % 2, world.noisy, 1.0)
    truths = random.normal(0, world.machines, (studies, count))
    means, errors = np.empty((studies, count)), np.full((studies, count), np.nan)
    for place, blocks in enumerate(world.blocks):
        values = random.normal(truths[:, [place]], deviations[place], (studies, blocks))
        means[:, place] = values.mean(axis=1)
        if blocks > 1:
            errors[:, place] = values.std(axis=1, ddof=1) / sqrt(blocks)
    found = []
    for mean, error in zip(means.tolist(), errors.tolist(), strict=True):
        sessions = [
            SessionEffect("01", str(place), mean[place], error[place] if blocks > 1 else None, blocks)
            for place, blocks in enumerate(world.blocks)
        ]
        combined = combine(sessions)
        assert combined is not None
        found.append(combined)
    like = random.integers(0, count, studies)
    own = deviations[like] / np.sqrt(np.array(world.blocks)[like])
    further = random.normal(random.normal(0, world.machines, studies), own)
    return Told(found, truths.mean(axis=1), further)


def bars(seed: int, *, quick: bool) -> Iterator[Bar | str]:
    """All promises in all worlds; in the short form the variances are left out, and shares are judged as far as so few studies can tell."""
    for blocks in (*EVEN, *FEW, *UNEVEN):
        worlds = [World(blocks, machines) for machines in (0.0, 0.5, 1.0, 2.0)]
        for world in (*worlds, World(blocks, 1.0, noisy=3.0)):
            studies = STUDIES // 10 if quick or world.noisy != 1 else STUDIES
            random = np.random.default_rng([seed, *blocks, int(10 * world.machines), int(world.noisy)])
            told = simulate(world, random, studies)
            if not quick and blocks in EVEN and world.machines and world.noisy == 1:
                yield _bias("variance between machines", world, told, "variance_machines", world.machines**2)
                yield _bias("variance between blocks", world, told, "sd_blocks", 1.0)
            yield from _intervals(world, told, quick=quick)


def _intervals(world: World, told: Told, *, quick: bool) -> Iterator[Bar]:
    total, alike = len(told.found), world.noisy == 1.0
    held = told.held("low", "high", np.zeros(total))
    like = "intervals over machines like these"
    yield Bar(like, world.name, held, total, *COVERED, judged=alike and world.machines > 0, exact=quick)
    held = told.held("next_low", "next_high", told.further)
    yield Bar("one more machine", world.name, held, total, *COVERED, judged=alike, exact=quick)
    if told.found[0].here_low is not None:
        held = told.held("here_low", "here_high", told.truth)
        yield Bar("these machines alone", world.name, held, total, *COVERED, judged=alike, exact=quick)


def _bias(promise: str, world: World, told: Told, name: str, truth: float) -> Bar:
    values = np.array([getattr(each, name) for each in told.found], dtype=float)
    values = (values**2 if name.startswith("sd") else values) / truth
    error = float(values.std(ddof=1)) / sqrt(len(values))
    return Bias(promise, world.name, 0, len(values), 0.0, 1.0, ratio=float(values.mean()), error=error)


if __name__ == "__main__":
    sys.exit(print_bars(bars, __doc__, "nothing"))
