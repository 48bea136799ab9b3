"""Shows claims that were judged on several machines, as text and as data.

Each claim has a verdict on each measured machine, and a joint verdict. The joint verdict is on machines like these: all
machines of which the measured ones are a sample.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tunnelmark.claims.across_machines import MachineVerdicts, OnMachines
from tunnelmark.claims.model import OUTCOMES, ClaimOutcome
from tunnelmark.report import claim_tables
from tunnelmark.report.formatting import listed

HEAD = ("", "claim", "says", "allowed", "machines", "machines like these")

LEGEND = (
    "Machines: where the claim held by the blocks of that machine alone, of those that can test it. The sign and the last column are of machines like "
    "these: Student's 95 % interval over machines, of which each is one value; ✓ held, ✗ did not hold, ? undecided, – not testable. It needs three."
)


@dataclass(frozen=True, slots=True)
class MachineClaimLine:
    """A claim as a row of a table.

    `machines`: on how many of the measured machines the claim holds, and on which it does not. `together`: what the
    values say of machines like these, such as an estimate with its interval over machines. `outcome`: the joint
    verdict, which follows from `together`.
    """

    id: str
    says: str
    allowed: str
    machines: str
    together: str
    outcome: ClaimOutcome


def lines(found: MachineVerdicts) -> tuple[MachineClaimLine, ...]:
    """Return a row for each claim, in the order of the source's claims."""
    rows = []
    for each in found.found:
        (line,) = claim_tables.lines(found.claims, [each.together])
        together = line.found.replace(" blocks", " machines")
        rows.append(MachineClaimLine(line.id, line.says, line.allowed, held_on(each), together, each.together.outcome))
    return tuple(rows)


def held_on(found: OnMachines) -> str:
    """Say on how many of the machines that can test it a claim holds: `holds on 4 of 5 machines; not on B`."""
    able = [name for name, each in found.by_machine.items() if each.outcome != "not testable"]
    if not able:
        return "no machine can test it"
    parts = [f"holds on {len(found.on('held'))} of {len(able)} machine{'s' if len(able) > 1 else ''}"]
    parts += [f"not on {listed(names)}" for names in [found.on("did not hold")] if names]
    parts += [f"undecided on {listed(names)}" for names in [found.on("undecided")] if names]
    parts += [f"not testable on {listed(names)}" for names in [found.on("not testable")] if names]
    return "; ".join(parts)


def summary(found: MachineVerdicts) -> str:
    """Say how many claims hold on every machine, and how many have each verdict on machines like these."""
    counts = Counter(each.together.outcome for each in found.found)
    parts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
    everywhere = sum(len(each.on("held")) == len(each.by_machine) for each in found.found)
    return (
        f"{len(found.found)} claims on {len(found.described)} machines: {everywhere} hold on each of them; on machines like these "
        + ", ".join(parts)
    )


def as_data(found: MachineVerdicts) -> dict[str, Any]:
    """Return the joint verdict on each claim, and the verdicts of the machines, as data for JSON.

    The data are those of `claim_tables.as_data` with the joint verdicts, and `machines`, the machines in words by
    letter, and `left_out`, the names of the sessions that were left out. Each item of `verdicts` also has `machines`,
    the verdict of each machine by letter, and `holds`, the text of `held_on`.
    """
    together = claim_tables.as_data(found.claims, [each.together for each in found.found])
    for row, each in zip(together["verdicts"], found.found, strict=True):
        row["machines"] = {
            name: claim_tables.as_data(found.claims, [judged])["verdicts"][0]
            for name, judged in each.by_machine.items()
        }
        row["holds"] = held_on(each)
    return together | {"machines": dict(found.described), "left_out": list(found.left_out)}
