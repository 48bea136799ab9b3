"""Says whether one arm of a VPN is faster than another because a gigabyte takes less CPU, or because more CPU is used.

A rate is the CPU that a node uses, over the CPU that a gigabyte takes there. So the ratio of two rates is the product of
two ratios, at the sender and at the receiver: that of the CPU used, and the inverse of that of the CPU for a gigabyte.
Both are of medians over blocks, so that the product differs a little from the ratio that blocks give.
"""

from __future__ import annotations

from tunnelmark.analyse.arms import contenders
from tunnelmark.analyse.ceilings import is_throughput
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries

_ENDS = {"source": "sender", "target": "receiver"}


def sentences(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> tuple[str, ...]:
    """Return a sentence for each arm that is shown to differ by a rate from the first arm of the same VPN.

    () if the metric is not a rate, or if CPU was not measured.
    """
    first: dict[str, str] = {}
    found = []
    pairs = queries.pairs(analysis, setting, metric) if is_throughput(metric) else {}
    for arm in contenders(analysis.results.plan, analysis.reference):
        base = first.setdefault(arm.vpn, arm.name)
        pair = pairs.get((arm.name, base))
        if pair is None or not pair.differs or not pair.estimate:
            continue
        ends = [said for end in _ENDS if (said := _at(analysis, setting, end, arm.name, base))]
        if ends:
            found.append(f"{arm.name} is {formatting.number(pair.estimate)}× {base}: {'; '.join(ends)}.")
    return tuple(found)


def _at(analysis: Analysis, setting: Scenario, end: str, arm: str, base: str) -> str:
    """Say both factors at one end; "" if one of the four values is missing or zero."""
    used, takes = (queries.medians(analysis, setting, f"{name}_{end}") for name in ("cpu", "cpu_per_gb"))
    if not all(name in of for name in (arm, base) for of in (used, takes)):
        return ""
    cheaper, busier = takes[base] / takes[arm], used[arm] / used[base]
    cost = f"a gigabyte takes {formatting.number(takes[arm])} s of CPU, not {formatting.number(takes[base])}"
    use = f"{used[arm] / 1e3:.2f} cores are used, not {used[base] / 1e3:.2f}"
    return f"at the {_ENDS[end]} {cheaper:.2f}× because {cost}, times {busier:.2f}× because {use}"
