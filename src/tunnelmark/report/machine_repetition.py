"""Compares runs on several machines with the source that they repeat: setups, differences, verdicts on claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunnelmark.analyse.model import Analysis
from tunnelmark.claims.across_machines import MachineVerdicts, of_machines
from tunnelmark.report import claim_tables, machine_claims, repetition
from tunnelmark.report.meta_tables import MetaTable

LEGEND = machine_claims.LEGEND


@dataclass(frozen=True, slots=True)
class MachineRepetition:
    """Runs on several machines, compared with the source that they repeat.

    `source`: the source, and the part of it that is repeated. `summary`: how many claims have each verdict. `setups`:
    how the source and each machine were set up. `otherwise`: the differences that `setups` does not show. `claims`: a
    row for each claim.
    """

    source: str
    summary: str
    setups: MetaTable
    otherwise: tuple[str, ...]
    claims: MetaTable


def of_runs(analyses: Mapping[str, Analysis]) -> MachineRepetition | None:
    """Compare the sessions with the source that they repeat: each machine's setup, differences, verdicts on claims.

    `analyses`: the analysis of each session, by the session's name. Returns None if their study does not repeat a
    source.
    """
    found = of_machines({name: each.results for name, each in analyses.items()}, analyses=analyses)
    return None if found is None else of(found)


def of(found: MachineVerdicts) -> MachineRepetition:
    """Compare machines with the source that they repeat, given the verdicts on its claims on these machines."""
    each = {machine: repetition.repetition(*run) for machine, run in found.runs.items()}
    first = next(iter(each.values()))
    names = dict.fromkeys((name, there) for one in each.values() for name, there, _ in one.rows)
    here = {machine: {name: said for name, _, said in one.rows} for machine, one in each.items()}
    setups = [(name, there, *(said.get(name, "") for said in here.values())) for name, there in names]
    what, there, _ = repetition.HEAD
    otherwise = dict.fromkeys(
        f"{topic}: {text}" for one in each.values() for topic, texts in one.otherwise for _, text in texts
    )
    lines = [
        (line.id, f"{claim_tables.SIGNS[line.outcome]} {line.says}", line.allowed, line.machines, line.together)
        for line in machine_claims.lines(found)
    ]
    return MachineRepetition(
        " ".join(filter(None, (f"{first.source}.", first.part))),
        machine_claims.summary(found),
        MetaTable("How it was measured", (what, there, *(f"machine {name}" for name in each)), tuple(setups)),
        tuple(otherwise),
        MetaTable("Each claim", machine_claims.HEAD[1:], tuple(lines)),
    )
