"""Ranks arms by a range of ranks for each: a range is only as narrow as the study could tell the arm from the others.

The ranges follow from the pairs of arms that differ. With Holm's correction, the chance that any of these differences
is false is at most 5 %, so all ranges of a study are right together in 95 % of studies (M. Mogstad, J. P. Romano,
A. M. Shaikh and D. Wilhelm, "Inference for Ranks with Applications to Mobility across Neighbourhoods and Academic
Achievement across Countries", Review of Economic Studies 91(1), 2024, pp. 476-518: rank sets from simultaneous tests of
all pairs). `bench/statistics_bars.py` shows it by simulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.analyse.model import JUDGED, Comparison, MetricCell, Ranking, RankRange, Scenario
from tunnelmark.analyse.pairing import favours
from tunnelmark.record.results import MetricInfo


def rank(
    contenders: Sequence[str],
    cells: Sequence[MetricCell],
    pairs: Sequence[Comparison],
    metrics: Mapping[str, MetricInfo],
) -> tuple[Ranking, ...]:
    """Rank the contenders in each setting by each primary metric; an arm that could not be judged has no rank.

    `contenders`: the names of the arms to be ranked. `metrics`: all metrics by "workload/metric".
    """
    judged: dict[tuple[Scenario, str], dict[str, float]] = {}
    unreliable = {(cell.arm, cell.setting, cell.metric.name) for cell in cells if cell.unreliable}
    for cell in cells:
        comparison = cell.against_direct
        if cell.metric.primary and cell.arm in contenders and cell.verdict in JUDGED:
            assert comparison is not None and comparison.order is not None
            size = comparison.order
            key = (cell.setting, cell.metric.name)
            judged.setdefault(key, {})[cell.arm] = -size if cell.metric.better == "higher" else size
    rankings = []
    for (setting, name), arms in judged.items():
        metric = metrics[f"{setting.workload}/{name}"]
        wins = [
            (pair.arm, pair.against) if favours(metric, pair) else (pair.against, pair.arm)
            for pair in pairs
            if (pair.setting, pair.metric) == (setting, name) and pair.differs
            if pair.arm in arms and pair.against in arms
        ]
        places = [
            RankRange(
                arm,
                first=1 + sum(loser == arm for _, loser in wins),
                last=len(arms) - sum(winner == arm for winner, _ in wins),
                unreliable=(arm, setting, name) in unreliable,
            )
            for arm in arms
        ]
        places.sort(key=lambda place: (place.first, place.last, arms[place.arm]))
        rankings.append(Ranking(setting, name, tuple(places)))
    return tuple(rankings)
