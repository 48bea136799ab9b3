"""Finds rates that the link, the offered load or the lab limited, so that they do not show what the arm can do."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.analyse.model import Capacity, Ceiling, LinkShare, MetricCell
from tunnelmark.record.results import MetricInfo, PlanInfo

DIRECT_OVERFLOWS = 1.02
"""If direct reaches more than this share of a link's rate, the link is not shaped as it should be.

At the start, a queue lets through 2 % more at most."""

AT_LINK = 0.97
"""From this ratio to direct on, an arm is at the link's ceiling too."""

NEAR_LINK = 0.90
"""From this ratio to direct on, an arm may be at that ceiling: a tunnel's own headers take 3 to 8 % of each packet."""

NEAR_LAB = 0.90
"""From this share of what the generator reaches on the bare, unshaped link on, generator and lab are near their limit."""

AT_LOAD = 0.99
"""From this share of the offered load on, the load is the limit. Sentences on it name the share, because 1 % may be lost."""


def ceiling_of(
    cell: MetricCell,
    share: LinkShare | None,
    offered: float | None,
    capacity: Capacity | None = None,
    *,
    ended_by_lab: bool = False,
) -> Ceiling | None:
    """Return what limited the rate of this cell, if it was not the arm; else None.

    None also if the cell has no value, or if its metric is not a rate. `share`: how far direct fills the link in the
    same setting; None if that is not known. `offered`: the bit/s that the workload offers; None if it sends as fast as
    it can. `capacity`: what the workload reaches on the bare, unshaped link of the same topology; None if that was not
    measured. `ended_by_lab`: whether, in most trials, the workload reported that its load generator was at its own
    limit; the generator is a part of the lab.
    """
    if cell.spread is None or not is_rate(cell.metric):
        return None
    if is_throughput(cell.metric):
        if offered is not None and cell.spread.median >= AT_LOAD * offered:
            return "load"
        if (found := _link_ceiling(cell, share)) is not None:
            return found
    if ended_by_lab or (capacity is not None and cell.spread.median >= NEAR_LAB * capacity.direct):
        return "lab"
    return None


def _link_ceiling(cell: MetricCell, share: LinkShare | None) -> Ceiling | None:
    if cell.spread is None or share is None or share.share < share.fills or share.direct <= 0:
        return None
    ratio = cell.spread.median / share.direct
    if cell.against_direct is not None and cell.against_direct.estimate is not None:
        ratio = cell.against_direct.estimate
    if ratio >= AT_LINK:
        return "link"
    return "near the link" if ratio >= NEAR_LINK else None


_HEADERS = 14 + 20 + 32
"""Bytes of a frame that are not payload of TCP: Ethernet, IPv4, TCP with time stamps."""

_FULL = 1448
"""Bytes of payload in a frame of a link's usual MTU of 1,500."""

_TUNNEL = 14 + 8 + 8 + 20
"""Bytes that a VXLAN or a Geneve over IPv4 adds to a frame: the inner Ethernet header, its own, UDP's and IPv4's."""


def link_shares(plan: PlanInfo, cells: Sequence[MetricCell], reference: str | None) -> tuple[LinkShare, ...]:
    """Return how well direct fills each link that has a rate, by every primary throughput; () if no link has a rate."""
    profiles = {profile.name: profile for profile in plan.profiles}
    uses = {workload.name: workload for workload in plan.workloads}
    shares = []
    for cell in cells:
        back = uses[cell.setting.workload].options.get("flows") == "back"
        rate = profiles[cell.setting.profile].carried_of(back=back)
        if cell.arm != reference or rate is None or cell.spread is None:
            continue
        if cell.metric.primary and is_throughput(cell.metric) and cell.metric.fills > 0:
            direct = cell.spread.median
            offered = uses[cell.setting.workload].offers(cell.setting.profile)
            fills = cell.metric.fills * _of_frames(plan, cells, cell)
            shares.append(LinkShare(cell.setting, cell.metric.name, rate, direct, direct / rate, fills, offered))
    return tuple(shares)


def _of_frames(plan: PlanInfo, cells: Sequence[MetricCell], cell: MetricCell) -> float:
    """Return the share of payload in this arm's frames over that in full ones, at most 1.

    A small MTU or VXLAN lowers it.
    """
    inner = any(arm.inner for arm in plan.arms if arm.name == cell.arm)
    for other in cells:
        if (other.arm, other.setting, other.metric.name) == (cell.arm, cell.setting, "mss") and other.spread:
            mss = other.spread.median
            frame = mss + _HEADERS + (_TUNNEL if inner else 0)
            return min(1.0, (mss / frame) / (_FULL / (_FULL + _HEADERS)))
    return 1.0


def capacities(plan: PlanInfo, cells: Sequence[MetricCell], reference: str | None) -> tuple[Capacity, ...]:
    """Return the most that a workload reaches on the bare, unshaped link, by each primary rate.

    Only workloads that send as fast as they can are taken. () if every profile shapes or impairs the link.
    """
    free = {profile.name for profile in plan.profiles if profile.rate is None and not profile.impaired}
    greedy = {workload.name for workload in plan.workloads if workload.offered is None and not workload.offered_by}
    return tuple(
        Capacity(cell.setting, cell.metric, cell.spread.median)
        for cell in cells
        if cell.arm == reference and cell.setting.profile in free and cell.spread is not None
        if cell.metric.primary and is_rate(cell.metric) and cell.setting.workload in greedy
    )


def is_rate(metric: MetricInfo) -> bool:
    """Return whether a metric is a rate per second that a generator drives as high as it can."""
    return metric.unit.endswith("/s") and metric.better == "higher" and metric.compare == "ratio"


def is_throughput(metric: MetricInfo) -> bool:
    return metric.unit == "bit/s" and metric.better == "higher"
