"""Says how far blocks without a result could change a median effect: the worst case and the best case. Pure.

In one case all missing blocks have an infinitely low effect, in the other case an infinitely high one. Whatever the
missing blocks would have shown, the median over all blocks lies between the medians of these two cases. The bound
assumes nothing about why blocks are missing; every narrower bound does (J. L. Horowitz and C. F. Manski,
"Nonparametric Analysis of Randomized Experiments with Missing Covariate and Outcome Data", JASA 95, 2000, pp. 77-84).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median

from tunnelmark.record.results import TrialRow


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of an arm's median effect, whatever its `missing` blocks would have shown; None: unbounded."""

    missing: int
    low: float | None
    high: float | None


def bounds(effects: Sequence[float], tried: Sequence[TrialRow], planned: int) -> Bounds | None:
    """Return the bounds of an arm's median effect; None if no block is missing, or none has an effect.

    `effects`: the effect of each block that can be compared. `tried`: the arm's attempts in this setting. `planned`:
    the number of blocks of the study. A block that replaced a void one counts in its place. A block in which the arm
    failed always counts as missing.
    """
    failed = {row.block for row in tried if row.outcome == "failed"}
    ran = min(len({row.block for row in tried}), planned)
    missing = max(len(failed), ran - len(effects))
    if not missing or not effects:
        return None
    low, high = (median([*effects, *[end] * missing]) for end in (-inf, inf))
    return Bounds(missing, low if isfinite(low) else None, high if isfinite(high) else None)
