"""Ceilings: where a throughput says more about the link or the offered load than about the arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.analyse.model import Ceiling, Cell, LinkShare
from tunnelmark.record.results import MetricInfo, PlanInfo
from tunnelmark.units import Rate

DIRECT_FILLS = 0.95
"""From this share of the shaped rate on, the bare link is the ceiling. The rest is headers: a full TCP segment carries
1,448 bytes of payload in a frame of 1,514."""

DIRECT_OVERFLOWS = 1.02
"""Beyond this share the link is not shaped as it should be; the rest is what a queue lets out at the window's start."""

AT_LINK = 0.97
"""From this ratio to direct on, an arm is at the link's ceiling too."""

NEAR_LINK = 0.90
"""From this ratio on it may be: a tunnel's own headers take 3 to 8 % of each packet, and no arm can win them back."""

AT_LOAD = 0.99
"""From this share of the offered load on, nothing that was offered is missing."""


def ceiling_of(cell: Cell, share: LinkShare | None, offered: float | None) -> Ceiling | None:
    """What held this throughput down, if not the arm; `share` is how direct fills the link in the same setting."""
    if cell.spread is None or not is_throughput(cell.metric):
        return None
    if offered is not None and cell.spread.median >= AT_LOAD * offered:
        return "load"
    if share is None or share.share < DIRECT_FILLS or share.direct <= 0:
        return None
    ratio = cell.spread.median / share.direct
    if cell.against_direct is not None and cell.against_direct.estimate is not None:
        ratio = cell.against_direct.estimate
    if ratio >= AT_LINK:
        return "link"
    return "near the link" if ratio >= NEAR_LINK else None


def link_shares(plan: PlanInfo, cells: Sequence[Cell], reference: str | None) -> tuple[LinkShare, ...]:
    """What direct reaches of each shaped rate, by every primary throughput; nothing where no rate is shaped."""
    rates = {profile.name: profile.rate for profile in plan.profiles}
    offers = {workload.name: offered_load(workload.options) for workload in plan.workloads}
    shares = []
    for cell in cells:
        rate = rates[cell.setting.profile]
        if cell.arm != reference or rate is None or cell.spread is None:
            continue
        if cell.metric.primary and is_throughput(cell.metric):
            direct = cell.spread.median
            offered = offers[cell.setting.workload]
            shares.append(LinkShare(cell.setting, cell.metric.name, rate, direct, direct / rate, offered))
    return tuple(shares)


def is_throughput(metric: MetricInfo) -> bool:
    return metric.unit == "bit/s" and metric.better == "higher"


def offered_load(options: Mapping[str, object]) -> float | None:
    """The bit/s that a workload offers, read from its option `rate`; None when it takes all it gets."""
    rate = options.get("rate")
    if isinstance(rate, (int, float)):
        return float(rate) or None
    try:
        return float(Rate.parse(rate))
    except ValueError:
        return None
