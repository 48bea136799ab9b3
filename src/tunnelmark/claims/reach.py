"""Says, before anything is measured, which claims a study can test in its planned length."""

from __future__ import annotations

from tunnelmark.claims.model import Apart, Cell, Claim, ClaimsFile, Condition, Statement
from tunnelmark.claims.run_statistics import SUITE
from tunnelmark.plan.model import Study
from tunnelmark.record.results import PlanInfo


def within_reach(claims: ClaimsFile, study: Study | PlanInfo) -> tuple[Claim, ...]:
    """Return the testable claims whose arms, conditions and workloads the study has.

    Claims on features need none of these, so they are always among them.
    """
    return tuple(claim for claim in claims.claims if not claim.untestable and _has(claims, study, claim))


def _has(claims: ClaimsFile, study: Study | PlanInfo, claim: Claim) -> bool:
    return all(_cell(claims, study, cell) for statement in claim.statements for cell in cells_of(statement))


def cells_of(statement: Statement | Apart) -> tuple[Cell, ...]:
    """Return the cells whose values a statement compares."""
    if isinstance(statement, Apart):
        return statement.one, statement.other
    return tuple(cell for cell, _ in statement.terms)


def _cell(claims: ClaimsFile, study: Study | PlanInfo, cell: Cell) -> bool:
    quantity, condition = claims.quantities[cell.quantity], claims.conditions[cell.condition]
    return (
        claims.arms.get(cell.arm) in {arm.name for arm in study.arms}
        and condition.profile in {profile.name for profile in study.profiles}
        and condition.topology in {"", *(topology.name for topology in study.topologies)}
        and not (quantity.full_only and not (study.full and _name(study) == claims.study))
        and (quantity.of_arm or quantity.workload in {use.name for use in study.workloads})
        and not (quantity.statistic == SUITE and study.design.part.workloads)
        and not _decided(claims, study, cell)
        and _is_measured(study, claims.arms[cell.arm], condition, quantity.workload)
    )


def _decided(claims: ClaimsFile, study: Study | PlanInfo, cell: Cell) -> bool:
    """Return whether the study differs from the source in what decides the cell, on one machine or on hosts."""
    workload, arm = claims.quantities[cell.quantity].workload, claims.arms[cell.arm]
    return any(
        each.decides
        and not each.one_machine
        and _name(study) in (each.studies or (_name(study),))
        and (not each.length or (each.length == "full") == study.full)
        and each.concerns(cell.quantity, workload, arm, cell.condition)
        for each in claims.differences
    )


def _is_measured(study: Study | PlanInfo, arm: str, condition: Condition, workload: str) -> bool:
    """Return whether the study's design has a trial of the arm under the condition; `workload`: "" means any."""
    topologies = [each.name for each in study.topologies if condition.topology in ("", each.name)]
    uses = [use.name for use in study.workloads if workload in ("", use.name)]
    return study.design.has_any((arm,), (condition.profile,), topologies, uses)


def _name(study: Study | PlanInfo) -> str:
    return study.study if isinstance(study, PlanInfo) else study.name
