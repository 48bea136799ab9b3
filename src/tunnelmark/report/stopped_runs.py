"""Describes a run that added blocks by itself: until when, why it ended, and for which ratios it did not wait."""

from __future__ import annotations

from tunnelmark.analyse.build_change import builds
from tunnelmark.analyse.model import Analysis
from tunnelmark.analyse.stopping import widths
from tunnelmark.plan.enough import Enough
from tunnelmark.report import build_answer, formatting
from tunnelmark.units import clock

_ENDS = {
    "precise": "it ended because they were",
    "nothing": "it ended because none can be",
    "cap": "it ended at its largest number of blocks",
    "budget": "it ended when its time was up",
    "found": "it ended because that was so",
    "more": "it has not ended",
}


def until(enough: Enough) -> str:
    """Say until when a run adds blocks by itself: `until headline ratios are within 2.5 %`, `for 30 min 00 s`."""
    if enough.change is not None:
        return f"until a change of {100 * enough.change:g} % between old and new is found or excluded"
    if enough.precision is not None:
        return f"until headline ratios are within {100 * enough.precision:g} %"
    assert enough.budget is not None
    return f"for {clock(enough.budget)}"


def sentences(analysis: Analysis) -> list[str]:
    """Return sentences on the run's number of blocks; empty if that number was fixed."""
    plan = analysis.results.plan
    if (enough := plan.enough) is None:
        return []
    decisions = analysis.results.decisions
    why = f"; {_ENDS[decisions[-1].decided]} ({decisions[-1].why})" if decisions else ""
    looked = formatting.listed([str(blocks) for blocks in dict.fromkeys(each.blocks for each in decisions)])
    when = f", with decisions at {looked}" if looked else ""
    if enough.change is not None:
        why = why.replace(_ENDS["nothing"], "it ended undecided")
        answer = build_answer.headline(analysis, builds(analysis, enough))
        return [
            f"Old and new: {answer}.",
            f"Blocks were added {until(enough)}, to {plan.blocks}{when}{why}.",
            "The intervals of that question hold at every look; all others have the wider factor that such a run needs.",
        ]
    if enough.precision is None:
        return [f"Blocks were added {until(enough)}, to {plan.blocks}{when}{why}."]
    said = [
        f"Blocks were added {until(enough)}, to {plan.blocks}{when}{why}.",
        "Its intervals and tests have the wider factor that such a run needs to be right as often as they say.",
    ]
    aside = [each for each in widths(analysis, enough) if each.state == "set aside"]
    if aside:
        names = [f"{each.arm} by {each.setting.workload} {each.metric.title} ({each.why})" for each in aside]
        said.append(f"Not waited for, because they could not be so precise: {formatting.listed(names)}.")
    return said
