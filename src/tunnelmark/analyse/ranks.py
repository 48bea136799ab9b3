"""Ranks as ranges: an arm's place is only as sharp as the study could tell it from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.analyse.model import Cell, Comparison, Place, Ranking, Setting
from tunnelmark.analyse.pairing import additive, favours
from tunnelmark.record.results import MetricInfo


def rank(
    contenders: Sequence[str], cells: Sequence[Cell], pairs: Sequence[Comparison], metrics: Mapping[str, MetricInfo]
) -> tuple[Ranking, ...]:
    """A ranking in each setting by each primary metric, of the contenders with enough blocks to be judged."""
    judged: dict[tuple[Setting, str], dict[str, float]] = {}
    for cell in cells:
        comparison = cell.against_direct
        if cell.metric.primary and cell.arm in contenders and cell.verdict in ("better", "worse", "tie", "cannot tell"):
            assert comparison is not None and comparison.estimate is not None
            size = additive(cell.metric, comparison.estimate)
            key = (cell.setting, cell.metric.name)
            judged.setdefault(key, {})[cell.arm] = -size if cell.metric.better == "higher" else size
    rankings = []
    for (setting, name), arms in judged.items():
        metric = metrics[f"{setting.workload}/{name}"]
        wins = [
            (pair.arm, pair.against) if favours(metric, pair.estimate) else (pair.against, pair.arm)
            for pair in pairs
            if (pair.setting, pair.metric) == (setting, name) and pair.differs and pair.estimate is not None
            if pair.arm in arms and pair.against in arms
        ]
        places = [
            Place(
                arm,
                first=1 + sum(loser == arm for _, loser in wins),
                last=len(arms) - sum(winner == arm for winner, _ in wins),
            )
            for arm in arms
        ]
        places.sort(key=lambda place: (place.first, place.last, arms[place.arm]))
        rankings.append(Ranking(setting, name, tuple(places)))
    return tuple(rankings)
