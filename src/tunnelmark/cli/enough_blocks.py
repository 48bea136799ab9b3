"""Adds blocks to a run while it goes: after the last block, the analysis decides whether more are needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tunnelmark.analyse import build_change, judge, stopping
from tunnelmark.analyse.stopping import RatioWidth
from tunnelmark.plan.enough import Enough
from tunnelmark.plan.model import Plan
from tunnelmark.plan.order import order
from tunnelmark.record import resumed, store
from tunnelmark.record.journal import Journal
from tunnelmark.record.results import BlockDecision, PlanInfo, Results
from tunnelmark.report import build_answer
from tunnelmark.units import clock

_NAMED = 3
"""The most ratios that are named in one line; the report has all of them."""


def until(enough: Enough) -> str:
    """Describe in words when a run that adds blocks ends."""
    if enough.change is not None:
        ends = [f"a change of {100 * enough.change:g} % between old and new is found or excluded"]
    else:
        ends = []
    ends += [] if enough.precision is None else [f"each headline ratio is within {100 * enough.precision:g} %"]
    ends += [] if enough.budget is None else [f"{clock(enough.budget)} are over"]
    return f"{', or '.join([*ends, f'there are {enough.most} blocks'])}; {enough.floor} blocks at least"


class Growth:
    """Decides at the end of a run's blocks, from its results so far, whether there are enough.

    The decision depends only on the results, and on the clock if there is a time budget. So a run that was killed
    decides the same again.
    """

    def __init__(
        self, folder: Path, journal: Journal, console: Console, describing: Callable[[Plan], PlanInfo]
    ) -> None:
        self._folder, self._journal, self._console, self._describing = folder, journal, console, describing

    def __call__(self, plan: Plan) -> Plan | None:
        """Return the plan with more blocks, after recording it in the folder; None if there are enough."""
        study = plan.study
        if study.enough is None:
            return None
        results = store.load(self._folder)
        made, lines = _decided(results, study.enough, study.blocks)
        for line in lines:
            self._console.print(Text(line), soft_wrap=True)
        last = results.decisions[-1] if results.decisions else None
        if last is None or (last.blocks, last.decided, last.to) != (made.blocks, made.decided, made.to):
            store.keep_decision(self._journal, made)
        if made.decided != "more":
            return None
        grown = order(replace(study, blocks=made.to))
        resumed.extend(self._folder, self._describing(grown), asked=False)
        return grown


def _decided(results: Results, enough: Enough, blocks: int) -> tuple[BlockDecision, list[str]]:
    """Return the decision after `blocks` blocks, and the lines that describe it."""
    seconds, spent = stopping.block_seconds(results), stopping.spent(results, time.time())
    if enough.change is not None:
        verdict = build_change.builds(judge(results), enough)
        made = build_change.decision(verdict, enough, blocks, spent=spent, block_seconds=seconds)
        return made, build_answer.progress(made, verdict, seconds)
    found = stopping.widths(judge(results), enough)
    made = stopping.decision(found, enough, blocks, spent=spent, block_seconds=seconds)
    return made, said(made, found, enough, seconds)


def said(made: BlockDecision, found: Sequence[RatioWidth], enough: Enough, block_seconds: float) -> list[str]:
    """Return lines that describe a decision: its reason, the least precise ratios, and the blocks and time needed."""
    lines = [f"after {made.blocks} blocks, {'go on' if made.decided == 'more' else 'end'}: {made.why}"]
    wide = sorted((each for each in found if each.state == "open"), key=lambda each: -(each.half or float("inf")))
    if enough.precision is not None and wide:
        few = ", ".join(_named(each) for each in wide[:_NAMED])
        lines.append(f"  not yet precise: {few}{_and_more(wide)}")
    more = stopping.more_needed(found, made.blocks) if enough.precision is not None else None
    if more is not None and made.decided != "precise":
        seconds = more * block_seconds
        price = f"  about {more} more blocks would do, {clock(seconds)}, if they scatter as those so far"
        if more > enough.most - made.blocks:
            price += f"; {enough.most - made.blocks} are left"
        if enough.budget is not None and seconds > enough.budget - made.spent:
            price += f"; {clock(max(enough.budget - made.spent, 0.0))} are left"
        lines.append(price)
    aside = [each for each in found if each.state == "set aside"]
    if aside:
        few = ", ".join(f"{_name(each)} ({each.why})" for each in aside[:_NAMED])
        lines.append(f"  not waited for: {few}{_and_more(aside)}")
    return lines


def _named(each: RatioWidth) -> str:
    return f"{_name(each)} {'without an interval' if each.half is None else f'± {100 * each.half:.1f} %'}"


def _name(each: RatioWidth) -> str:
    return (
        f"{each.arm} to {each.against or 'direct'}, {each.setting.workload} {each.metric.name}, {each.setting.profile}"
    )


def _and_more(found: Sequence[RatioWidth]) -> str:
    return f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
