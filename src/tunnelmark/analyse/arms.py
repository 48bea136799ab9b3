"""Says which arms are references and which are compared, and summarises each over its trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from tunnelmark.analyse.intervals import share
from tunnelmark.analyse.model import Analysis, ArmSummary, Scenario, Spread
from tunnelmark.analyse.pairing import setting_of
from tunnelmark.record.results import ArmInfo, PlanInfo, TrialRow

DIRECT = "direct"
"""The `vpn` of an arm that uses no VPN; the first such arm is the reference of every ratio."""

ANCHOR = "anchor"
"""The `vpn` of an anchor, our own tunnel (`vpns.anchor`): it is compared with direct alone, and not ranked."""


def reference_of(plan: PlanInfo) -> str | None:
    """Return the name of direct, with which the other arms are compared; None if the plan has no such arm."""
    return next((arm.name for arm in plan.arms if arm.vpn == DIRECT and arm.same_as is None), None)


def contenders(plan: PlanInfo, reference: str | None) -> list[ArmInfo]:
    """Return the arms that a study asks about: all but direct, anchors, and the second names of arms."""
    return [arm for arm in plan.arms if arm.same_as is None and arm.name != reference and arm.vpn != ANCHOR]


def ranked(plan: PlanInfo, reference: str | None) -> list[ArmInfo]:
    """Return the contenders that are compared with each other by primary metrics, and ranked.

    They are the VPNs. A bare link under other settings than direct's, such as another inner MTU, is compared with
    direct alone, but for a study that has no VPN.
    """
    found = contenders(plan, reference)
    return [arm for arm in found if arm.vpn != DIRECT] or found


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
