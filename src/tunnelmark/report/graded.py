"""Says what the results are worth: attempts by grade (good, disturbed, void), and results of good trials alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from tunnelmark.analyse.attempts import grade_of
from tunnelmark.analyse.model import Analysis, Comparison, MetricCell
from tunnelmark.model.attempt import NOT_INSTALLED, merged_messages
from tunnelmark.record.results import TrialRow
from tunnelmark.report import formatting, queries, titles

HEAD = ("metric", "arm", "all usable", "good alone")

BY_ARM = ("arm", "attempts", "good", "disturbed", "void", "failed", "the machine paused", "longest pause")
"""The columns of `by_arm`."""


@dataclass(frozen=True, slots=True)
class GoodAloneRow:
    """An arm's result by one metric, as two texts.

    `usable`: the result from good and disturbed trials together. `good`: the result from good trials alone. `differs`:
    whether the two results disagree.
    """

    metric: str
    arm: str
    usable: str
    good: str
    differs: bool


def summary(analysis: Analysis) -> str:
    """Return a sentence with the number of attempts by grade, and how long the machine paused; "" without attempts."""
    begun = _begun(analysis)
    counts = Counter(grade_of(row) or "failed" for row in begun)
    said = ", ".join(f"{counts[grade]} {grade}" for grade in ("good", "disturbed", "void", "failed") if counts[grade])
    lacked = len(analysis.results.trials) - len(begun)
    if again := len(analysis.repeated) - lacked:
        said += f"; {again} of them {'was' if again == 1 else 'were'} made again"
    if lacked:
        said += f"; {lacked} more could not begin, as a program was not installed, and were made later"
    paused = [row for row in analysis.results.trials if "pause_share" in row.host]
    if paused:
        longest = max(row.host.get("pause_longest", 0.0) for row in paused)
        # The share lacks pauses shorter than the kernel's work on packets (host.pauses.host); the longest may be one.
        said += f". Long pauses of the machine took {100 * _paused(paused):.2f} % of the time; its longest pause was {1e3 * longest:.1f} ms"
    return f"Attempts: {said}." if analysis.results.trials else ""


def _begun(analysis: Analysis) -> list[TrialRow]:
    """Return all attempts, without those that lacked a program and were made again once it was installed."""
    lacked = {(row.trial, row.attempt) for row in analysis.repeated if row.reason == NOT_INSTALLED}
    return [row for row in analysis.results.trials if (row.trial, row.attempt) not in lacked]


def causes(analysis: Analysis) -> list[str]:
    """Return why trials are disturbed: a text for each reason, with the number of disturbed trials that have it.

    Reasons that differ only in a number, such as seconds, are one text with the smallest and the largest number.
    """
    said = merged_messages([cause for found in analysis.disturbed for cause in found.causes])
    return [f"{text} ({count} of {len(analysis.disturbed)} disturbed)" for text, count in said]


def alone(analysis: Analysis) -> tuple[GoodAloneRow, ...]:
    """Return a row for each primary metric of an arm with disturbed trials; first those for which `differs` is true."""
    cells = [
        cell for cell in analysis.cells if cell.metric.primary and cell.good is not None and cell.spread is not None
    ]
    found = [_alone(analysis, cell) for cell in cells]
    return tuple(sorted(found, key=lambda one: not one.differs))


def _alone(analysis: Analysis, cell: MetricCell) -> GoodAloneRow:
    assert cell.good is not None
    assert cell.spread is not None
    scale = formatting.scale(cell.metric.unit, [cell.spread.median])
    usable = _said(cell, scale.value(cell.spread.median), cell.against_direct, len(cell.values))
    good = "none"
    if cell.good.spread is not None:
        good = _said(cell, scale.value(cell.good.spread.median), cell.good.against_direct, cell.good.blocks)
    return GoodAloneRow(titles.heading(analysis, cell.setting, cell.metric), cell.arm, usable, good, cell.good.differs)


def _said(cell: MetricCell, value: str, pair: Comparison | None, blocks: int) -> str:
    if not blocks:
        return f"{value}, in no block with such a trial of direct"
    effect = formatting.effect(cell.metric, pair) if pair is not None else ""
    return f"{value}{', ' if effect else ''}{effect} ({blocks} {'block' if blocks == 1 else 'blocks'})"


def _paused(rows: Sequence[TrialRow]) -> float:
    """Return the share of the attempts' time of traffic (0 to 1) in which the machine paused for long."""
    seconds = [sum(row.phases.get(phase, 0.0) for phase in ("warmup", "measure")) for row in rows]
    shares = [row.host["pause_share"] for row in rows]
    whole = sum(seconds)
    return sum(map(mul, shares, seconds)) / whole if whole else sum(shares) / len(shares)


def by_arm(analysis: Analysis) -> tuple[tuple[str, ...], ...]:
    """Return a row of texts for each arm, with the columns `BY_ARM`: attempts by grade, and pauses of the machine."""
    found, begun = [], _begun(analysis)
    for arm in analysis.results.plan.arms:
        rows = [row for row in begun if row.arm == arm.name]
        counts = Counter(grade_of(row) or "failed" for row in rows)
        paused = [row for row in rows if "pause_share" in row.host]
        share = formatting.percent(_paused(paused), 2) if paused else ""
        longest = max((row.host.get("pause_longest", 0.0) for row in paused), default=0.0)
        found.append(
            (
                queries.label(analysis, arm.name),
                str(len(rows)),
                *(str(counts[grade]) for grade in ("good", "disturbed", "void", "failed")),
                share,
                formatting.with_unit(f"{1e3 * longest:.1f}", "ms") if paused else "",
            )
        )
    return tuple(found)
