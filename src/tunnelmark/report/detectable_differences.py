"""Says how small a difference from direct a study could find, and how far its estimates depend on a single block."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelmark.analyse.detectable import POWER
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries, titles

HEAD = ("metric", "arm", "against direct", "without one block", "could find, against direct", "remarks")

EXPLAINED = (
    "Without one block: the least and the largest estimate when any one block is left out, if the estimate is a mean. Could find: the true difference "
    f"that blocks with this scatter show in {POWER:.0%} of studies, at the level that is left for each single question. "
    "It is of the comparison with direct: two arms are compared without direct, and smaller differences may show."
).replace("80%", "80 %")


@dataclass(frozen=True, slots=True)
class FirmRow:
    """One estimate as texts: effect, its range if any one block is left out, detectable difference, and remarks."""

    metric: str
    arm: str
    effect: str
    left_out: str
    detectable: str
    remarks: str


def sentences(analysis: Analysis) -> list[str]:
    """Return an introduction, then a line for each primary metric with each arm's detectable difference from direct.

    80 % of studies of this size would show a true difference of that size. [] if no detectable difference is known.
    """
    said = []
    for setting in analysis.settings():
        for metric in queries.primary_metrics(analysis, setting):
            found = [
                f"{cell.arm} {size}"
                for cell in _compared(analysis, setting, metric)
                if queries.twin_of(analysis, cell.arm) is None and (size := _detectable(cell))
            ]
            if found:
                said.append(f"{titles.heading(analysis, setting, metric)}: {', '.join(found)}")
    if not said:
        return []
    share = formatting.percent(POWER)
    return [
        f"This study could find, with a chance of {share}, a difference from direct of (by each arm's own blocks):",
        *said,
    ]


def firm(analysis: Analysis) -> tuple[FirmRow, ...]:
    """Return a row for each arm and primary metric whose effect against direct could be estimated, in the plan's order.

    The row says how firm the estimate is: how far it moves if any one block is left out. It also has the detectable
    difference.
    """
    return tuple(
        _firm(analysis, setting, cell)
        for setting in analysis.settings()
        for metric in queries.primary_metrics(analysis, setting)
        for cell in _compared(analysis, setting, metric)
    )


def _compared(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> list[MetricCell]:
    cells = queries.cells(analysis, setting, metric)
    return [cell for cell in cells if cell.against_direct is not None and cell.against_direct.estimate is not None]


def _detectable(cell: MetricCell) -> str:
    found = cell.against_direct
    return "" if found is None or found.detectable is None else formatting.size(cell.metric, found.detectable)


def _firm(analysis: Analysis, setting: Scenario, cell: MetricCell) -> FirmRow:
    found = cell.against_direct
    assert found is not None
    # A median moves to its neighbour when a block is left out, which says nothing about how firm it is.
    shown = found.left_out is not None and found.doubt is None
    ends = " to ".join(formatting.amount(cell.metric, end) for end in found.left_out or ()) if shown else ""
    remarks = [formatting.doubts(found, analysis.reference), formatting.reliability(cell)]
    return FirmRow(
        titles.heading(analysis, setting, cell.metric),
        queries.label(analysis, cell.arm),
        formatting.judged(cell),
        ends,
        _detectable(cell),
        "; ".join(remark for remark in remarks if remark),
    )
