"""Says which differences from a source apply to a run, and which of them concern a figure of it."""

from __future__ import annotations

from tunnelmark.claims.model import Cell, Claim, ClaimsFile
from tunnelmark.claims.originals import TOPICS, SourceDifference
from tunnelmark.plan.model import Study
from tunnelmark.record.results import PlanInfo


def that_apply(claims: ClaimsFile, plan: Study | PlanInfo, *, one_machine: bool) -> tuple[SourceDifference, ...]:
    """Return the source's differences that apply to a run or to a planned one, by topic, as reports number them.

    `one_machine`: whether all nodes of the run shared a machine.
    """
    found = [each for each in claims.differences if _applies(each, claims, plan, one_machine=one_machine)]
    return tuple(sorted(found, key=lambda each: TOPICS.index(each.topic)))


def _applies(difference: SourceDifference, claims: ClaimsFile, plan: Study | PlanInfo, *, one_machine: bool) -> bool:
    named = (
        (difference.studies, {name_of(plan)}),
        (difference.workloads, {use.name for use in plan.workloads}),
        (difference.arms, {arm.name for arm in plan.arms}),
        (difference.conditions, conditions_of(claims, plan)),
    )
    return (
        all(not asked or has & set(asked) for asked, has in named)
        and (not difference.length or (difference.length == "full") == plan.full)
        and (one_machine or not difference.one_machine)
    )


def conditions_of(claims: ClaimsFile, plan: Study | PlanInfo) -> set[str]:
    """Return the names of the source's conditions that a run has."""
    profiles = {profile.name for profile in plan.profiles}
    topologies = {"", *(topology.name for topology in plan.topologies)}
    found = claims.conditions.items()
    return {name for name, each in found if each.profile in profiles and each.topology in topologies}


def name_of(plan: Study | PlanInfo) -> str:
    """Return the name of the study, planned or recorded."""
    return plan.study if isinstance(plan, PlanInfo) else plan.name


def concerns(difference: SourceDifference, claims: ClaimsFile, cell: Cell) -> bool:
    """Return whether a difference that applies to a run concerns this figure of it."""
    named = (
        (difference.quantities, cell.quantity),
        (difference.workloads, claims.quantities[cell.quantity].workload),
        (difference.arms, claims.arms.get(cell.arm, "")),
        (difference.conditions, cell.condition),
    )
    return all(not asked or own in asked for asked, own in named)


def behind(claim: Claim, claims: ClaimsFile, found: tuple[SourceDifference, ...]) -> tuple[int, ...]:
    """Return which of the differences `found` concern a figure of the claim, by their numbers from 1 on.

    Those that name neither arms, conditions nor quantities are left out: they concern all claims of a workload alike.
    """
    cells = {cell for statement in claim.statements for cell in statement.cells}
    return tuple(
        number
        for number, each in enumerate(found, start=1)
        if (each.arms or each.conditions or each.quantities) and any(concerns(each, claims, cell) for cell in cells)
    )
