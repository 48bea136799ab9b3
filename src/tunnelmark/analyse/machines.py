"""Estimates how far a multiple of the anchor differs between machines, which no single run can know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean


@dataclass(frozen=True, slots=True)
class MachineComparison:
    """The standard deviation of the difference of log multiples of one arm on two machines, without the runs' own noise.

    `freedom`: degrees of freedom of that estimate, for Student's t. `source` says in words what was compared.
    """

    deviation: float
    freedom: float
    source: str


BETWEEN = MachineComparison(0.171, 4.3, "one machine of two cores with 35 and 70 % of its CPU time left")
"""The default of predictions. It was fitted by `bench/anchor.py` on 2026-11-24 to ten VPNs with TCP over a gigabit and
cards that split and merge: five blocks in each setting, on one virtual machine of two cores (AMD EPYC, Linux 6.18),
slowed in pieces of 0.2 ms. It was checked on pairs that the fit did not use: the machine at full speed predicts itself
with half of each core left, and under a quota of 50 %, for 10 of 10 VPNs each. Most of the deviation is from VPNs that
hand over super-packets, and gain on the anchor where the machine is slower; without such cards it was 0.078. It does
not cover a machine so overloaded that single trials break down."""


def fit(multiples: Sequence[Sequence[float]], noise: Sequence[Sequence[float]], source: str = "") -> MachineComparison:
    """Estimate the deviation between two machines, from the log multiples of several arms on several machines.

    `multiples`: a row for each arm, with a column for each machine. `noise`: in the same places, the variance of each
    log multiple that is from its run's own scatter. `source`: what was compared, in words. ValueError with fewer than
    two arms or machines.

    The method is a two-way analysis of variance without repetition (Snedecor and Cochran, Statistical Methods, chapter
    14). The variance has two parts. The part that all arms share on a machine is the anchor's; it has M - 1 degrees of
    freedom with M machines. The part of single arms has (M - 1) (A - 1) degrees of freedom with A arms. The sum of both
    parts has Satterthwaite's degrees of freedom (1946).
    """
    arms, machines = len(multiples), len(multiples[0]) if multiples else 0
    if arms < 2 or machines < 2:
        raise ValueError("the deviation between machines needs at least two arms on two machines")
    rows = [fmean(row) for row in multiples]
    columns = [fmean(row[place] for row in multiples) for place in range(machines)]
    whole = fmean(rows)
    left = sum(
        (value - rows[arm] - columns[place] + whole) ** 2
        for arm, row in enumerate(multiples)
        for place, value in enumerate(row)
    ) / ((arms - 1) * (machines - 1))
    shared = arms * sum((column - whole) ** 2 for column in columns) / (machines - 1)
    # Mean squares estimate own + noise, and own + noise + arms x common; both in units of one machine's variance.
    weights = ((shared, 1 / arms, machines - 1), (left, 1 - 1 / arms, (arms - 1) * (machines - 1)))
    total = sum(square * weight for square, weight, _ in weights)
    freedom = total**2 / sum((square * weight) ** 2 / count for square, weight, count in weights) if total > 0 else 1.0
    own = max(total - fmean(value for row in noise for value in row), 0.0)
    return MachineComparison(sqrt(2 * own), freedom, source)
