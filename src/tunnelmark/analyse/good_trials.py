"""Computes each cell's result from its good trials alone, and whether it differs from that of all trials. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tunnelmark.analyse.arms import spread
from tunnelmark.analyse.intervals import level_of
from tunnelmark.analyse.margins import negligible
from tunnelmark.analyse.model import Comparison, GoodAlone, MetricCell
from tunnelmark.analyse.pairing import BlockValues, additive, compare
from tunnelmark.record.results import MetricInfo, PlanInfo


def with_good_alone(
    plan: PlanInfo, cells: Sequence[MetricCell], values: BlockValues, reference: str | None
) -> tuple[MetricCell, ...]:
    """Return the cells, and add to each cell with disturbed trials the result of its good trials alone.

    `values`: the values of good trials. `reference`: the name of direct; None if the study has none.
    """
    return tuple(_with(plan, cell, values, reference) for cell in cells)


def _with(plan: PlanInfo, cell: MetricCell, values: BlockValues, reference: str | None) -> MetricCell:
    found = values.get((cell.arm, cell.setting, cell.metric.name), ())
    theirs = () if reference is None else values.get((reference, cell.setting, cell.metric.name), ())
    pair = cell.against_direct
    if pair is None:
        if len(found) == len(cell.values):
            return cell
        return replace(cell, good=GoodAlone(len(found), spread([value.value for value in found]), None, differs=False))
    both = {value.block for value in found} & {value.block for value in theirs}
    if len(found) == len(cell.values) and both >= set(pair.blocks):
        return cell
    level = level_of(plan.enough)
    alone = compare(cell.arm, pair.against, cell.setting, cell.metric, values, pair.threshold, level)
    spread_alone = spread([value.value for value in found])
    return replace(
        cell, good=GoodAlone(len(alone.blocks), spread_alone, alone, differs=_differ(cell.metric, pair, alone))
    )


def _differ(metric: MetricInfo, all_usable: Comparison, alone: Comparison) -> bool:
    """Return whether each estimate is outside of the other's interval, and they are more than negligibly apart."""
    if all_usable.estimate is None or alone.estimate is None or all_usable.interval is None or alone.interval is None:
        return False
    apart = abs(additive(metric, all_usable.estimate) - additive(metric, alone.estimate))
    return (
        not alone.interval.low <= all_usable.estimate <= alone.interval.high
        and not all_usable.interval.low <= alone.estimate <= all_usable.interval.high
        and apart > additive(metric, negligible(metric))
    )
