"""Says how loss acts on a TCP connection's goodput: through its congestion window, or through the round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

from tunnelmark.analyse.anchor_multiples import Headline
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.report import formatting, queries

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
    windows, trips = queries.medians(analysis, setting, "cwnd"), queries.medians(analysis, setting, "rtt")
    known = [arm for arm in losing if arm in windows and arm in trips and arm not in _repaired(analysis, setting)]
    arms = [arm for arm in known if arm != direct]
    if not arms or direct not in known:
        return ""
    said = (
        "TCP sends at most one congestion window in each round trip, and cuts the window after a loss. "
        f"Mean window: {_listed(analysis, setting, 'cwnd', windows, [direct, *arms])}. "
        f"Mean round trip under that load: {_listed(analysis, setting, 'rtt', trips, [direct, *arms])}."
    )
    return " ".join(filter(None, [said, _cause(windows, trips, direct, arms)]))


def _repaired(analysis: Analysis, setting: Scenario) -> set[str]:
    """Return the arms whose TCP had to send nothing again: a VPN that runs over TCP makes good what its link loses."""
    return {cell.arm for cell in analysis.cells_of(setting, "retransmits") if cell.spread and cell.spread.median == 0}


def _listed(
    analysis: Analysis, setting: Scenario, metric: str, medians: Mapping[str, float], arms: Sequence[str]
) -> str:
    unit = analysis.cell(arms[0], setting, metric).metric.unit
    shown = formatting.scale(unit, [medians[arm] for arm in arms])
    return formatting.listed([f"{arm} {shown.value(medians[arm])}" for arm in arms])


def _cause(windows: Mapping[str, float], trips: Mapping[str, float], direct: str, arms: Sequence[str]) -> str:
    """Return a sentence that names the factor which, for every arm, differs far more from direct's; "" if neither."""
    apart = [[abs(log(of[arm] / of[direct])) for of in (windows, trips)] for arm in arms]
    if all(window > CLEARLY * trip for window, trip in apart):
        return f"So the distance to {direct} comes from the window, not from longer round trips."
    if all(trip > CLEARLY * window for window, trip in apart):
        return f"So the distance to {direct} comes from longer round trips, not from the window."
    return ""
