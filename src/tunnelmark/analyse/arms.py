"""Summarises each arm over its trials: how many have a result, and how long the first packet took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from tunnelmark.analyse.intervals import share
from tunnelmark.analyse.model import Analysis, ArmSummary, Scenario, Spread
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.record.results import TrialRow


def summaries(arms: Iterable[str], trials: Sequence[TrialRow]) -> tuple[ArmSummary, ...]:
    """Return one summary per arm over these trials, in the order of the arms."""
    return tuple(_summary(arm, [row for row in trials if row.arm == arm]) for arm in arms)


def in_settings(analysis: Analysis, settings: Iterable[Scenario]) -> tuple[ArmSummary, ...]:
    """Return one summary per arm (success rate, first packet) over the trials in these settings alone."""
    wanted = set(settings)
    rows = [row for row in analysis.trials if setting_of(row) in wanted]
    return summaries((arm.name for arm in analysis.results.plan.arms), rows)


def spread(values: Sequence[float]) -> Spread | None:
    """Return the median, the smallest and the largest value; None without a value."""
    return Spread(median(values), min(values), max(values)) if values else None


def _summary(arm: str, tried: Sequence[TrialRow]) -> ArmSummary:
    good = [row for row in tried if row.outcome == "ok"]
    first = [max(row.first_packet.values()) for row in good if row.first_packet]
    void = sum(row.outcome == "void" for row in tried)
    return ArmSummary(arm, share(len(good), len(tried) - void), spread(first), void)
