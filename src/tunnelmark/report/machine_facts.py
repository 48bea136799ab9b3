"""Says what intervals cover, how long the machine's yardsticks (short measurements) took, and whether it changed."""

from __future__ import annotations

from tunnelmark.analyse import drift
from tunnelmark.analyse.model import Analysis
from tunnelmark.model.yardstick_lengths import TITLES, length
from tunnelmark.record.results import Results
from tunnelmark.report import formatting

YARDSTICKS = ("what this machine takes", "before", "after")
"""The columns of `yardsticks`."""


def covers(results: Results) -> str:
    """Return words on what the intervals of one run cover, which complete "an interval covers ..."."""
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
    """Return a sentence on what an interval covers, and on how to learn about other machines."""
    return (
        f"An interval here covers {covers(analysis.results)}; the result may differ on another machine: "
        "`tunnelmark repeat` and `tunnelmark merge` say by how much."
    )


def cautions(analysis: Analysis) -> list[str]:
    """Warn that the machine changed during the run, or that blocks were added to the study later; else []."""
    said = []
    if found := drift.moved(analysis.results):
        names = [f"{each.name} {length(each.before)}, then {length(each.after)}" for each in found]
        said.append(
            f"The machine, or what else ran on it, changed during the run: {formatting.listed(names)} (short tests before and after it). A change from block to block "
            "does not affect comparisons within blocks; a change within a block does."
        )
    if before := analysis.results.plan.extended:
        counts = formatting.listed([str(count) for count in before])
        said.append(
            f"Blocks were added when results of {counts} could be seen, to {analysis.results.plan.blocks} now. If those "
            "results were the reason, intervals hold less than 95 %."
        )
    return said


def yardsticks(results: Results) -> tuple[tuple[str, str, str], ...]:
    """Return a row of texts for each yardstick: its title, and what it took before and after the trials.

    If a yardstick was not measured, the text is the reason, or "" if the reason is not known. A yardstick without any
    text has no row.
    """
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
