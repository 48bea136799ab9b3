"""Says, before anything is measured, which claims a study can test in its planned length."""

from __future__ import annotations

from tunnelmark.claims.differences import concerns, name_of, that_apply
from tunnelmark.claims.model import Cell, Claim, ClaimsFile, Condition
from tunnelmark.claims.run_statistics import SUITE
from tunnelmark.plan.model import Study
from tunnelmark.record.results import PlanInfo


def within_reach(claims: ClaimsFile, study: Study | PlanInfo) -> tuple[Claim, ...]:
    """Return the testable claims whose arms, conditions and workloads the study has, and no difference decides.

    Claims on features need none of these, so they are always among them.
    """
    decided = tuple(each for each in that_apply(claims, study) if each.decides)

    def free(claim: Claim) -> bool:
        return not any(concerns(each, claims, cell) for cell in _cells(claim) for each in decided)

    return tuple(claim for claim in measured(claims, study) if not claim.untestable and free(claim))


def measured(claims: ClaimsFile, study: Study | PlanInfo) -> tuple[Claim, ...]:
    """Return the claims whose arms, conditions and workloads the study has, whether they can be tested or not."""
    return tuple(
        claim
        for claim in claims.claims
        if (study.full or not claim.usual) and all(_cell(claims, study, cell) for cell in _cells(claim))
    )


def _cells(claim: Claim) -> list[Cell]:
    return [cell for statement in claim.statements for cell in statement.cells]


def _cell(claims: ClaimsFile, study: Study | PlanInfo, cell: Cell) -> bool:
    quantity, condition = claims.quantities[cell.quantity], claims.conditions[cell.condition]
    workloads = [use.name for use in study.workloads]
    workload = claims.workload(cell, workloads)
    return (
        claims.arms.get(cell.arm) in {arm.name for arm in study.arms}
        and condition.profile in {profile.name for profile in study.profiles}
        and condition.topology in {"", *(topology.name for topology in study.topologies)}
        and not (quantity.full_only and not (study.full and name_of(study) == claims.study))
        and (quantity.of_arm or workload in workloads)
        and not (quantity.statistic == SUITE and study.design.part.workloads)
        and _is_measured(study, claims.arms[cell.arm], condition, workload)
    )


def _is_measured(study: Study | PlanInfo, arm: str, condition: Condition, workload: str) -> bool:
    """Return whether the study's design has a trial of the arm under the condition; `workload`: "" means any."""
    topologies = [each.name for each in study.topologies if condition.topology in ("", each.name)]
    uses = [use.name for use in study.workloads if workload in ("", use.name)]
    return study.design.has_any((arm,), (condition.profile,), topologies, uses)
