"""What blocks without a result could change: the best and the worst case. Pure.

Whatever the missing blocks would have shown, the median over all blocks lies between the medians with every one of them at
the one end and at the other. That bound assumes nothing about why they are missing; every narrower one does (J. L. Horowitz and
C. F. Manski, "Nonparametric Analysis of Randomized Experiments with Missing Covariate and Outcome Data", JASA 95, 2000,
pp. 77-84).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median

from tunnelmark.record.results import TrialRow


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which values an arm's median effect lies, whatever its `missing` blocks would have shown; None: unbounded."""

    missing: int
    low: float | None
    high: float | None


def bounds(effects: Sequence[float], tried: Sequence[TrialRow], planned: int) -> Bounds | None:
    """The bounds of an arm's median effect, None where no block is missing; an end is None where it is unbounded.

    `effects` are those of the blocks that can be compared, `tried` the arm's attempts in this setting. A block that
    replaced a void one counts in its place; one in which the arm failed counts in any case.
    """
    failed = {row.block for row in tried if row.outcome == "failed"}
    ran = min(len({row.block for row in tried}), planned)
    missing = max(len(failed), ran - len(effects))
    if not missing or not effects:
        return None
    low, high = (median([*effects, *[end] * missing]) for end in (-inf, inf))
    return Bounds(missing, low if isfinite(low) else None, high if isfinite(high) else None)
