"""Says over all answers of a study which VPNs no other is shown to beat, and where each of the others is beaten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunnelmark.analyse.model import Analysis, Ranking
from tunnelmark.report import answers, formatting, queries, titles
from tunnelmark.report.answers import MetricAnswer

_NAMED = 2
"""If an arm is beaten in more answers than this, they are counted and not named."""


def together(analysis: Analysis) -> MetricAnswer | None:
    """Return the answer of all answers; None if fewer than two of them rank several VPNs, or if none shows one ahead.

    It weighs nothing: an arm is beaten in an answer if another one is shown to be ahead of it, by however little. An arm
    that is beaten in no answer is named first, unless it is unreliable or has no rank in some of them.
    """
    several = [ranking for ranking in analysis.rankings if len(ranking.places) > 1]
    beaten = _beaten(analysis, several)
    if answers.unranked(analysis) or len(several) < 2 or not any(beaten.values()):
        return None
    unreliable = {place.arm for ranking in several for place in ranking.places if place.unreliable}
    ranks = {arm: sum(any(place.arm == arm for place in ranking.places) for ranking in several) for arm in beaten}
    unbeaten = [arm for arm, where in beaten.items() if not where]
    first = [arm for arm in unbeaten if arm not in unreliable and ranks[arm] == len(several)]
    but = [_but(analysis, arm, ranks[arm], len(several)) for arm in unbeaten if arm not in first]
    where = _where(analysis, {arm: found for arm, found in beaten.items() if found}, len(several))
    title = f"all {len(several)} answers together" if len(several) > 2 else "both answers together"
    if first:
        nor = f", nor {'is' if len(but) == 1 else 'are'} {formatting.listed(but)}" if but else ""
        begin = f" {'is' if len(first) == 1 else 'are'} not shown to be beaten in any of them{nor}"
    elif but:
        begin = (
            f"only {formatting.listed(but)}, {'is' if len(but) == 1 else 'are'} not shown to be beaten in any of them"
        )
    else:
        begin = "each VPN is beaten in at least one of them, so it depends on what counts"
    return MetricAnswer(title, formatting.listed(first), f"{begin}; beaten {where}.", "")


def _beaten(analysis: Analysis, rankings: Sequence[Ranking]) -> dict[str, list[Ranking]]:
    """Return for each ranked arm, in the plan's order, the rankings in which another arm is shown to be ahead of it."""
    first = {(place.arm, ranking): place.first for ranking in rankings for place in ranking.places}
    ranked = [arm.name for arm in analysis.results.plan.arms if any((arm.name, one) in first for one in rankings)]
    return {arm: [one for one in rankings if first.get((arm, one), 1) > 1] for arm in ranked}


def _but(analysis: Analysis, arm: str, ranks: int, of: int) -> str:
    """Name an unbeaten arm with the reason why that says less of it."""
    success = next(summary.success for summary in analysis.arms if summary.arm == arm)
    why = f"of which {formatting.share(success)} trials succeeded"
    return f"{arm}, {why}" if ranks == of else f"{arm}, {why} and which {ranks} of {of} answers rank"


def _where(analysis: Analysis, beaten: Mapping[str, Sequence[Ranking]], of: int) -> str:
    """Say where arms are beaten, those together that are beaten in the same answers: `in TCP goodput: a and b`."""
    arms: dict[str, list[str]] = {}
    for arm, rankings in sorted(beaten.items(), key=lambda one: len(one[1])):
        named = [_title(analysis, ranking) for ranking in rankings]
        said = formatting.listed(named) if len(named) <= _NAMED else f"{len(named)} of {of}"
        arms.setdefault(f"in {said}", []).append(arm)
    return "; ".join(f"{where}: {formatting.listed(names)}" for where, names in arms.items())


def _title(analysis: Analysis, ranking: Ranking) -> str:
    """Return the title of an answer's metric, with profile and topology where the study has several."""
    return titles.heading(analysis, ranking.setting, queries.metric_of(analysis, ranking))
