"""Says which arms take the least CPU for a gigabyte, at both ends together: what one asks where the processor is scarce."""

from __future__ import annotations

from tunnelmark.analyse.anchor_multiples import cpu_per_gigabyte
from tunnelmark.analyse.ceilings import is_throughput
from tunnelmark.analyse.model import Analysis, Ranking, Scenario
from tunnelmark.report import formatting
from tunnelmark.report.in_front import NAMED


def sentence(analysis: Analysis, ranking: Ranking) -> str:
    """Name the ranked arms that take the least CPU for each gigabyte, the one that takes the most, and direct; "" unless
    the metric is a throughput.

    The figures are sums of the medians over blocks of both ends, in seconds, and are not tested. "" also where fewer
    than two ranked arms have them.
    """
    setting = ranking.setting
    if not is_throughput(analysis.cell(ranking.places[0].arm, setting, ranking.metric).metric):
        return ""
    taken = {
        place.arm: took for place in ranking.places if (took := _both_ends(analysis, place.arm, setting)) is not None
    }
    if len(taken) < 2:
        return ""
    in_order = sorted(taken, key=lambda arm: taken[arm])
    said = formatting.listed([f"{arm} {formatting.number(taken[arm])} s" for arm in in_order[:NAMED]])
    if len(in_order) > NAMED:
        said += f"; the most {in_order[-1]} {formatting.number(taken[in_order[-1]])} s"
    bare = _both_ends(analysis, analysis.reference, setting) if analysis.reference else None
    of = "" if bare is None else f"; {analysis.reference} {formatting.number(bare)} s"
    return f"least CPU per gigabyte, both ends together: {said}{of}"


def _both_ends(analysis: Analysis, arm: str, setting: Scenario) -> float | None:
    """Return the seconds of CPU for a gigabyte at both ends together; None if one is not known."""
    sender, receiver = cpu_per_gigabyte(analysis, arm, setting)
    return None if sender is None or receiver is None else sender + receiver
