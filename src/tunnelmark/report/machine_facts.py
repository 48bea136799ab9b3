"""Says in a report what intervals cover on this machine, what its yardsticks took, and whether they moved."""

from __future__ import annotations

from tunnelmark.analyse import drift
from tunnelmark.analyse.model import Analysis
from tunnelmark.model.yardstick_lengths import TITLES, length
from tunnelmark.record.results import Results
from tunnelmark.report import formatting

YARDSTICKS = ("what this machine takes", "before", "after")
"""The columns of `yardsticks`."""


def covers(results: Results) -> str:
    """What the intervals of one run cover, in words that complete "an interval covers ..."."""
    guest = results.environment.get("guest")
    if guest and guest.get("emulated"):
        return "this run, in this emulated machine"
    if guest:
        return "this run, in this virtual machine"
    if results.environment.get("inventory"):
        return "this run, on these hosts"
    boots = len({session.boot for session in results.sessions if session.boot})
    return f"this run, on this machine, in {'this boot' if boots < 2 else f'these {boots} boots'}"


def scope(analysis: Analysis) -> str:
    """A sentence on what an interval covers, and on how to learn about other machines."""
    return (
        f"An interval here covers {covers(analysis.results)}; the result may differ on another machine: "
        "`tunnelmark repeat` and `tunnelmark merge` say by how much."
    )


def cautions(analysis: Analysis) -> list[str]:
    """What a reader must know about the machine, and about blocks that were added, before any number."""
    said = []
    if found := drift.moved(analysis.results):
        names = [f"{each.name} {length(each.before)}, then {length(each.after)}" for each in found]
        said.append(
            f"The machine, or what else ran on it, changed during the run: {formatting.listed(names)}. What its blocks share cancels, the rest does not."
        )
    if before := analysis.results.plan.extended:
        counts = formatting.listed([str(count) for count in before])
        said.append(
            f"Blocks were added when results of {counts} could be seen, to {analysis.results.plan.blocks} now. If those "
            "results were the reason, intervals hold less than 95 %."
        )
    return said


def yardsticks(results: Results) -> tuple[tuple[str, str, str], ...]:
    """What each yardstick took before and after the trials, or why it was not measured; empty if none was."""
    first = next((row for row in results.yardsticks if row.when == "before"), None)
    last = next((row for row in reversed(results.yardsticks) if row.when == "after"), None)
    rows = []
    for name, title in TITLES.items():
        cells = [
            ""
            if look is None
            else length(look.lengths[name].value)
            if name in look.lengths
            else look.absent.get(name, "")
            for look in (first, last)
        ]
        if any(cells):
            rows.append((title, *cells))
    return tuple((title, before, after) for title, before, after in rows)
