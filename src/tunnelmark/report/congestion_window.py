"""Says how loss acts on a TCP connection's goodput: through its congestion window, or through the round trips."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from tunnelmark.analyse.anchor_multiples import Headline
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.report import formatting

CLEARLY = 3.0
"""How many times the logarithm of one factor must be that of the other for it to be called the cause."""


def explanation(analysis: Analysis, each: Sequence[Headline]) -> str:
    """Return the congestion windows and round trips of one metric's headlines, with which of them makes the difference.

    A connection carries at most its window in each round trip, and congestion control cuts the window after a loss
    (RFC 5681; CUBIC: RFC 9438). "" if the metric is not the goodput of a workload that records both, or if not
    direct and an arm are bound by loss: what something else bounds, such as the link, does not use its whole window.
    """
    setting, direct = each[0].setting, analysis.reference
    twins = {arm.name for arm in analysis.results.plan.arms if arm.same_as is not None}
    losing = [one.arm for one in each if one.bound and one.bound.what == "loss" and one.arm not in twins]
    if direct is None or each[0].metric.name != "goodput" or direct not in losing:
        return ""
    arms = [arm for arm in losing if arm != direct]
    windows = _medians(analysis, setting, "cwnd", [direct, *arms])
    trips = _medians(analysis, setting, "rtt", [direct, *arms])
    arms = [arm for arm in arms if arm in windows and arm in trips]
    if not arms or direct not in windows or direct not in trips:
        return ""
    said = (
        "TCP sends at most one congestion window in each round trip, and cuts the window after a loss. "
        f"Mean window: {_listed(windows, [direct, *arms])}. Mean round trip under that load: {_listed(trips, [direct, *arms])}."
    )
    return f"{said} {cause}" if (cause := _cause(windows, trips, direct, arms)) else said


def _medians(analysis: Analysis, setting: Scenario, metric: str, arms: Sequence[str]) -> dict[str, MetricCell]:
    """Return the cells of a metric by arm, without arms that have no value above zero."""
    cells = {cell.arm: cell for cell in analysis.cells_of(setting, metric)}
    return {arm: cells[arm] for arm in arms if arm in cells and _median(cells[arm]) > 0}


def _median(cell: MetricCell) -> float:
    return cell.spread.median if cell.spread else 0.0


def _listed(cells: dict[str, MetricCell], arms: Sequence[str]) -> str:
    shown = formatting.scale(cells[arms[0]].metric.unit, [_median(cells[arm]) for arm in arms])
    return formatting.listed([f"{arm} {shown.value(_median(cells[arm]))}" for arm in arms])


def _cause(windows: dict[str, MetricCell], trips: dict[str, MetricCell], direct: str, arms: Sequence[str]) -> str:
    """Return a sentence that names the factor which, for every arm, differs far more from direct's; "" if neither."""
    ratios = [
        (
            abs(log(_median(windows[arm]) / _median(windows[direct]))),
            abs(log(_median(trips[arm]) / _median(trips[direct]))),
        )
        for arm in arms
    ]
    if all(window > CLEARLY * trip for window, trip in ratios):
        return f"So the distance to {direct} comes from the window, not from longer round trips."
    if all(trip > CLEARLY * window for window, trip in ratios):
        return f"So the distance to {direct} comes from longer round trips, not from the window."
    return ""
