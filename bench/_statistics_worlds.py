"""Worlds of a known truth for `statistics_bars.py`: arrays of trials, (studies, blocks, arms) for each metric.

Arm 0 is direct, 1 its twin, then come the VPNs, and last the twin of the first VPN. A missing trial is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Standardised noise (deviation 1, mean 0) of that shape."""


@dataclass(frozen=True)
class World:
    """What is simulated: `spread` is the least and largest relative deviation of a VPN's trials, `direct` that of direct."""

    name: str
    vpns: int
    blocks: int = 8
    studies: int = 200
    metrics: int = 2
    noise: str = "normal"
    spread: tuple[float, float] = (0.02, 0.08)
    direct: float = 0.0005
    alike: bool = False  # every VPN is the same
    ceiling: bool = False  # values end where the link does
    zeros: bool = False  # some VPNs carry nothing in a third of their trials, one never anything
    missing: float = 0.0  # share of trials without a result; of every third VPN twice as many
    drift: float = 0.0  # deviation of the machine's speed, which wanders from trial to trial (lag-1 0.95) for VPNs
    losses: bool = False  # a second metric of differences in points, mostly zero


@dataclass(frozen=True)
class Drawn:
    """Trials of a world by metric, the true order of its arms by metric (alike: the same figure), and which pairs to score.

    `ratio` by metric: whether it is compared by ratios. `unclear` are arms of which a mean and a median say something else.
    """

    values: tuple[Array, ...]
    truth: tuple[Array, ...]
    ratio: tuple[bool, ...]
    unclear: NDArray[np.bool_]


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return random.normal(0, 1, shape)


def laplace(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(random.laplace(0, 1 / np.sqrt(2), shape))


def student3(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(random.standard_t(3, shape) / np.sqrt(3))


def slow(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One-sided: most trials are alike, some are much slower."""
    return np.asarray(1 - random.exponential(1, shape))


def halved(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One trial in ten far below the others: by a deviation of 5 %, at half."""
    rare = random.uniform(size=shape) < 0.1
    return random.normal(0, 0.4, shape) - np.where(rare, 13.9, 0.0) + 1.39


NOISES: dict[str, Noise] = {
    "normal": normal,
    "laplace": laplace,
    "student 3": student3,
    "slow": slow,
    "halved": halved,
}


def levels(vpns: int, *, alike: bool) -> Array:
    """True ratios to direct: groups of three that are alike, 4 %, 10 % and 25 % apart in turn."""
    steps = np.cumsum([0.0] + [(0.04, 0.10, 0.25)[place % 3] for place in range(vpns)])
    groups = np.arange(vpns) // 3
    logs = np.zeros(vpns) if alike else steps[groups]
    return np.asarray(np.exp(-0.1 - logs), dtype=float)


def draw(world: World, random: np.random.Generator) -> Drawn:
    """The trials of all of a world's studies."""
    shape = (world.studies, world.blocks, world.vpns + 3)
    true = levels(world.vpns, alike=world.alike)
    if world.ceiling:
        true = np.where(np.arange(world.vpns) < world.vpns // 2, 1.15, true)
    arms = np.concatenate([[1.0, 1.0], true, true[:1]])
    spread = np.linspace(*world.spread, world.vpns)
    deviation = np.concatenate([[world.direct, world.direct], spread, spread[:1]])
    values, truth, ratio = [], [], []
    for metric in range(world.metrics):
        order = np.arange(len(arms))
        if metric:  # other arms lead by the next metric
            middle = random.permutation(np.arange(2, world.vpns + 2))
            order = np.concatenate([[0, 1], middle, middle[:1]])
            order[-1] = order[2]
        logs = np.log(arms[order]) + deviation[order] * NOISES[world.noise](random, shape)
        if world.drift:
            logs[:, :, 2:] += _wander(world, random, shape)[:, :, 2:]
        found = np.exp(logs)
        if world.ceiling:
            found = np.minimum(found, 1 + 0.0005 * random.normal(size=shape))
        values.append(found)
        truth.append(arms[order])
        ratio.append(True)
    unclear = np.zeros(len(arms), dtype=bool)
    if world.zeros:
        _zeros(world, random, values[0], truth[0], unclear)
    if world.losses:
        lost = np.where(random.uniform(size=shape) < 0.3, random.exponential(2.0, shape), 0.0)
        lost[:, :, :2] = 0.0
        values.append(lost)
        truth.append(np.concatenate([[1.0, 1.0], np.zeros(world.vpns + 1)]))  # more is worse: direct is ahead of all
        ratio.append(False)
    if world.missing:
        share = world.missing * np.where(np.arange(len(arms)) % 3 == 0, 2.0, 1.0)
        gone = random.uniform(size=shape) < share
        values = [np.where(gone, np.nan, found) for found in values]
    return Drawn(tuple(values), tuple(truth), tuple(ratio), unclear)


def _zeros(world: World, random: np.random.Generator, values: Array, truth: Array, unclear: NDArray[np.bool_]) -> None:
    """The last three VPNs carry nothing in a third of their trials and are alike; the one before never carries anything."""
    last = np.arange(world.vpns - 1, world.vpns + 2)
    dead = world.vpns - 2
    of_one = np.exp(0.05 * random.normal(size=(world.studies, world.blocks, 3)))
    values[:, :, last] = np.where(random.uniform(size=of_one.shape) < 1 / 3, 0.0, 0.9 * of_one)
    values[:, :, dead] = 0.0
    truth[last], truth[dead] = 0.6, 0.0
    unclear[last] = True


def _wander(world: World, random: np.random.Generator, shape: tuple[int, int, int]) -> Array:
    """The log of the machine's speed at each trial, in the random order of its block."""
    from scipy.signal import lfilter

    lag = 0.95
    steps = random.normal(0, world.drift * np.sqrt(1 - lag**2), (shape[0], shape[1] * shape[2]))
    steps[:, 0] /= np.sqrt(1 - lag**2)
    speed = lfilter([1.0], [1.0, -lag], steps, axis=1).reshape(shape)
    return np.take_along_axis(speed, np.argsort(random.uniform(size=shape), axis=2), axis=2)
