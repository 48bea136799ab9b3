"""Compares arms with each other, not with direct: a table for each ranked metric, and how far the first arm leads."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from tunnelmark.analyse.model import Analysis, Comparison, Ranking, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries, travels
from tunnelmark.report.in_front import InFront, parted

EXPLAINED = (
    "Each field compares the arm of its row with the arm of its column, block by block, with its 95 % interval: as a multiple, or by the "
    "difference. Direct has no part in it, so blocks in which direct was slow make these intervals no wider. ▲ better and ▼ worse: "
    "different, with all primary comparisons of the study taken together. = equal within the margin. ? neither is shown, "
    "even next to an interval that leaves out no difference: that is of one comparison alone. (median): a block lies far off, so the median is given, "
    "with the interval that signs give."
)

_NAMED = 4  # of the arms that are behind, as many are named in the sentence; the table has all


@dataclass(frozen=True, slots=True)
class PairTable:
    """The ranked arms of one metric against each other, the most favourable estimate first.

    `heads`: the arms of the columns, which are all but the first. `rows`: a row for each arm but the last, with its
    name and a text for each column. A text is "" if row and column are the same arm, if a row further up has the pair,
    or if the pair has no finite estimate.
    """

    setting: Scenario
    metric: MetricInfo
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(analysis: Analysis) -> tuple[PairTable, ...]:
    """Return a table for each ranking of at least two arms; () if nothing may be ranked."""
    found = []
    for ranking in analysis.rankings:
        arms = _in_order(analysis, ranking)
        metric = analysis.cell(arms[0], ranking.setting, ranking.metric).metric
        pairs = queries.pairs(analysis, ranking.setting, metric)
        rows = tuple(
            (
                arm,
                *(
                    _field(metric, pairs.get((arm, other))) if at <= place else ""
                    for place, other in enumerate(arms[1:])
                ),
            )
            for at, arm in enumerate(arms[:-1])
        )
        if rows:
            found.append(PairTable(ranking.setting, metric, tuple(arms[1:]), rows))
    return tuple(found)


def lead(analysis: Analysis, ranking: Ranking, front: InFront) -> str:
    """Say how the leading arm compares with each arm that is not shown to be equal to it.

    It is the one with the most favourable estimate of those that the answer calls ahead, or else of all. The clause
    names at most four other arms, and counts those that follow. "" if all ranked arms are in front, or if no comparison
    that would be named has a finite estimate.
    """
    arms = _in_order(analysis, ranking)
    if not front.behind:
        return ""
    first = next(arm for arm in arms if arm in front.ahead) if parted(front) else arms[0]
    others = [arm for arm in arms if arm != first]
    metric = analysis.cell(first, ranking.setting, ranking.metric).metric
    pairs = queries.pairs(analysis, ranking.setting, metric)
    of = "" if metric.compare == "ratio" else "against "
    apart = [(other, pair) for other in others if (pair := pairs.get((first, other))) is not None and not pair.equal]
    sizes = [(other, _size(metric, pair), _by_itself(metric, pair)) for other, pair in apart]
    said = [f"{size} {of}{other}{alone}" for other, size, alone in sizes if size]
    more = f" ({len(said) - _NAMED} more in the table)" if len(said) > _NAMED else ""
    return f"compared with each other, {first} is {formatting.listed(said[:_NAMED])}{more}" if said else ""


def _in_order(analysis: Analysis, ranking: Ranking) -> list[str]:
    """Return the ranked arms, the most favourable estimate against direct first."""
    cells = [analysis.cell(place.arm, ranking.setting, ranking.metric) for place in ranking.places]
    orders = {cell.arm: (cell.against_direct and cell.against_direct.order) or 0.0 for cell in cells}
    return sorted(orders, key=lambda arm: orders[arm], reverse=cells[0].metric.better == "higher")


def _field(metric: MetricInfo, pair: Comparison | None) -> str:
    """Return the text of a field: the sign of the verdict and the effect; "" without a finite estimate."""
    text = _size(metric, pair)
    if not text or pair is None:
        return ""
    if pair.differs and pair.order is not None:
        return f"{'▲' if (pair.order > 0) == (metric.better == 'higher') else '▼'} {text}"
    return f"{'=' if pair.equal else '?'} {text}"


def _size(metric: MetricInfo, pair: Comparison | None) -> str:
    """Return an effect as a multiple or a difference with its interval; "" if there is no finite estimate."""
    if pair is None or pair.estimate is None or not isfinite(pair.estimate):
        return ""
    finite = pair.interval if pair.interval and isfinite(pair.interval.high) else None
    if metric.compare != "ratio":
        text = formatting.effect(metric, pair)
    else:
        text = travels.times(pair.estimate, finite) if pair.estimate > 0 else ""
    return f"{text}{formatting.middle(pair)}" if text else text


def _by_itself(metric: MetricInfo, pair: Comparison) -> str:
    """Say that an interval leaves out no difference, and that the study shows none all the same; "" if not so."""
    alone = not pair.differs and formatting.by_itself(metric, pair) is not None
    return " (not shown once all comparisons are corrected for)" if alone else ""
