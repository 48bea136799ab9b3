"""Says which differences from a source apply to a run, and which of them concern a figure of it."""

from __future__ import annotations

from collections.abc import Collection

from tunnelmark.claims.model import Apart, Cell, ClaimsFile, Effect, Judged, Statement
from tunnelmark.claims.originals import TOPICS, Machine, SourceDifference
from tunnelmark.plan.model import Study
from tunnelmark.record.results import PlanInfo


def that_apply(
    claims: ClaimsFile, plan: Study | PlanInfo, machine: Collection[Machine] = ()
) -> tuple[SourceDifference, ...]:
    """Return the source's differences that apply to a run or to a planned one, by topic, as reports number them.

    `machine`: what is true of the machine that the run's nodes shared.
    """
    found = [each for each in claims.differences if _applies(each, claims, plan) and set(each.machine) <= set(machine)]
    return tuple(sorted(found, key=lambda each: TOPICS.index(each.topic)))


def _applies(difference: SourceDifference, claims: ClaimsFile, plan: Study | PlanInfo) -> bool:
    own = {use.name for use in plan.workloads}
    # A study may have only the workload that repeats another one under a condition.
    workloads = own | {
        usual for each in claims.conditions.values() for usual, instead in each.workloads.items() if instead in own
    }
    named = (
        (difference.studies, {name_of(plan)}),
        (difference.workloads, workloads),
        (
            difference.quantities,
            {each.name for each in claims.quantities.values() if each.of_arm or each.workload in workloads},
        ),
        (difference.arms, {arm.name for arm in plan.arms}),
        (difference.conditions, conditions_of(claims, plan)),
    )
    return (
        all(not asked or has & set(asked) for asked, has in named)
        and (not difference.length or (difference.length == "full") == plan.full)
        and not own & set(difference.lacks)
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
    usual = claims.quantities[cell.quantity].workload
    named = (
        (difference.quantities, {cell.quantity}),
        (difference.workloads, {usual, claims.conditions[cell.condition].workloads.get(usual, usual)}),
        (difference.arms, {claims.arms.get(cell.arm, "")}),
        (difference.conditions, {cell.condition}),
    )
    return all(not asked or own & set(asked) for asked, own in named)


def behind(judged: Judged, claims: ClaimsFile, found: tuple[SourceDifference, ...]) -> tuple[int, ...]:
    """Return which of the differences `found` may be behind a verdict, by their numbers from 1 on.

    These concern a figure that decided it, and did not move it the other way. Differences that name neither arms,
    conditions nor quantities are left out: they concern all claims of a workload alike.
    """
    decided = [effect for effect in judged.effects if effect.outcome == judged.outcome]
    cells = {cell for each in (decided or judged.claim.statements) for cell in _cells(each)}
    return tuple(
        number
        for number, each in enumerate(found, start=1)
        if (each.arms or each.conditions or each.quantities)
        and any(concerns(each, claims, cell) for cell in cells)
        and (not each.makes or not decided or any(_towards(each, effect, claims) for effect in decided))
    )


def deciding(reason: str, found: tuple[SourceDifference, ...]) -> tuple[int, ...]:
    """Return which of the differences `found` are why a claim is not testable, by their numbers from 1 on."""
    return tuple(number for number, each in enumerate(found, start=1) if each.decides and reason.endswith(each.decides))


def _cells(of: Effect | Statement | Apart) -> tuple[Cell, ...]:
    return of.statement.cells if isinstance(of, Effect) else of.cells


def _towards(difference: SourceDifference, effect: Effect, claims: ClaimsFile) -> bool:
    """Return whether a difference of which it is known how it moves figures can have moved an effect to its verdict."""
    terms, low, high = effect.statement.terms, effect.statement.low, effect.statement.high
    moved = sum(power for cell, power in terms if concerns(difference, claims, cell))
    upwards, downwards = (moved > 0, moved < 0) if difference.makes == "higher" else (moved < 0, moved > 0)
    if effect.outcome == "did not hold":
        return upwards if high is not None and effect.estimate > high else downwards
    if effect.outcome == "held" and (low is None or high is None):
        return upwards if high is None else downwards
    return bool(moved)
