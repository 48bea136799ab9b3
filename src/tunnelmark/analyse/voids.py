"""Tests whether some arms have void attempts more often than others: then they are not missing by chance. Pure.

The void attempts of each arm are compared with those of all other arms by Fisher's exact test (R. A. Fisher, "The Logic
of Inductive Inference", JRSS 98(1), 1935, pp. 39-54). The p values are corrected over arms by Holm (1979).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunnelmark.analyse.intervals import LEVEL, corrected
from tunnelmark.analyse.model import VoidRate
from tunnelmark.record.results import TrialRow


def void_rates(arms: Iterable[str], rows: Sequence[TrialRow]) -> tuple[VoidRate, ...]:
    """Return one rate per arm over every attempt, repeated ones too; () if none is void or only one arm was tried."""
    tried: dict[str, list[bool]] = {arm: [] for arm in arms}
    for row in rows:
        tried[row.arm].append(row.outcome == "void")
    tried = {arm: voids for arm, voids in tried.items() if voids}
    void, total = sum(sum(voids) for voids in tried.values()), sum(len(voids) for voids in tried.values())
    if not void or len(tried) < 2:
        return ()
    from scipy.stats import fisher_exact  # SciPy costs 0.4 s, and most commands need none of it

    p_values = []
    for voids in tried.values():
        mine, theirs = sum(voids), void - sum(voids)
        others = total - len(voids)
        p_values.append(float(fisher_exact([[mine, len(voids) - mine], [theirs, others - theirs]]).pvalue))
    return tuple(
        VoidRate(arm, sum(voids), len(voids), void - sum(voids), total - len(voids), q, unlike=q < LEVEL)
        for (arm, voids), q in zip(tried.items(), corrected(p_values), strict=True)
    )
