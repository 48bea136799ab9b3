"""Writes the answer of a study in words, for each condition and primary metric.

It says which arm is best, or which arms tie or are not shown to differ, by how much, and what bound them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from tunnelmark.analyse.anchor_multiples import Headline, headlines
from tunnelmark.analyse.bottleneck import apart_from_direct, bound_of
from tunnelmark.analyse.model import JUDGED, Analysis, Interval, MetricCell, Ranking, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import arm_pairs, formatting, overview, queries, titles, travels

NAMED = 3
"""If more arms than this share the first rank, so many are named, by their estimates, and the last; if all of them equal
direct, ranges of their estimates and intervals are given."""

_DELAY = "rtt"
"""The metric for the round-trip time of packets under load; it is compared with direct's as a ratio."""

_DELAYED = 2.0
"""If the delay under load is at least this many times direct's, the answer on the rate mentions it."""

DECIDED_ONCE = (
    "This link decides once for all that a sender hands over, up to 64 KiB. Direct, and VPNs that hand over many packets at once, "
    "are hit less often, which may decide the order of these answers."
)
"""The warning of a condition whose link does not decide for each packet."""

_ESTIMATES = 4
"""If arms may not be ranked, this many are named, and the others are counted."""


@dataclass(frozen=True, slots=True)
class MetricAnswer:
    """The answer by one primary metric in a condition: sentences, of which the first one begins with `first`.

    `first`: the names of the arms in front, which no other arm is shown to beat; "" if several arms are ranked and all
    of them are in front, or if nothing is ranked. An arm in front that is not shown to differ from any arm may be named
    in `text` instead. `text`: what follows directly after `first`, such as ` is best, ahead of all 4 others: ...`.
    """

    title: str
    first: str
    text: str


@dataclass(frozen=True, slots=True)
class ConditionAnswers:
    """A condition with its answers; the title is "" if the study has only one condition.

    `warning`: what else than the VPNs may decide the order of these answers; "" if nothing is known to.
    """

    title: str
    answers: tuple[MetricAnswer, ...]
    warning: str = ""


def answers(analysis: Analysis) -> tuple[ConditionAnswers, ...]:
    """Return the answers by condition (profile and topology), in the order of the plan.

    If nothing may be ranked (`unranked` says why), the answers only list estimates. () if all workloads are
    `traversal`, which asks only for paths. A metric that was measured only for direct and the anchor gets no answer.
    """
    if analysis.paths_only:
        return ()
    multiples = {(one.arm, one.setting, one.metric.name): one for one in headlines(analysis) if one.first == "anchor"}
    rankings = {(one.setting, one.metric): one for one in analysis.rankings}
    once = overview.decided_once(analysis)
    found = []
    for heading, settings in queries.groups(analysis):
        said = tuple(
            _estimates(analysis, setting, metric)
            if unranked(analysis)
            else _answer(analysis, setting, metric, rankings.get((setting, metric.name)), multiples)
            for setting in settings
            for metric in queries.primary_metrics(analysis, setting)
        )
        if any(said):
            warning = DECIDED_ONCE if settings[0].profile in once else ""
            found.append(ConditionAnswers(heading, tuple(one for one in said if one is not None), warning))
    return tuple(found)


def _estimates(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> MetricAnswer | None:
    """Return an answer that lists arms by their estimates, without ranking them; None if no arm has an estimate."""
    cells = [cell for cell in queries.own_cells(analysis, setting, metric) if _order(cell) is not None]
    cells = _by_estimate(cells)
    shown = ", ".join(f"{cell.arm} {_effect(cell)}" for cell in cells[:_ESTIMATES])
    more = f" and {len(cells) - _ESTIMATES} more" if len(cells) > _ESTIMATES else ""
    text = f"not ranked; estimates against {analysis.reference}, the most favourable first: {shown}{more}."
    return MetricAnswer(titles.title(analysis.results.plan, setting.workload, metric), "", text) if cells else None


def _order(cell: MetricCell) -> float | None:
    """Return the key for sorting arms: the effect as a log ratio or a difference; None without an effect."""
    return cell.against_direct.order if cell.against_direct and cell.spread else None


def _effect(cell: MetricCell) -> str:
    assert cell.against_direct is not None
    return formatting.effect(cell.metric, cell.against_direct) or "without an estimate"


def unranked(analysis: Analysis) -> str:
    """Return the reason why nothing may be ranked; "" if arms may be ranked, or if all workloads are `traversal`."""
    return "" if analysis.same.standing == "agrees" or analysis.paths_only else analysis.same.explanation


def _answer(
    analysis: Analysis,
    setting: Scenario,
    metric: MetricInfo,
    ranking: Ranking | None,
    multiples: dict[tuple[str, Scenario, str], Headline],
) -> MetricAnswer | None:
    """Return the answer by one metric; None if only direct and the anchor were measured."""
    left_out = _left_out(analysis, setting, metric)
    title = titles.title(analysis.results.plan, setting.workload, metric)
    if ranking is None:
        return MetricAnswer(title, "", f"{left_out}.") if left_out else None
    front = [place.arm for place in ranking.places if place.first == 1]
    cells = [analysis.cell(arm, setting, metric.name) for arm in front]
    ahead = _ahead_of_all(analysis, ranking, front)
    first, said = _standing(analysis, ranking, front, ahead)
    said += _effects(analysis, cells, multiples, ahead) + _bound(analysis, cells)
    doubtful = [f"{cell.arm} is {formatting.reliability(cell)}" for cell in cells if cell.unreliable]
    further = (
        *doubtful,
        *_delays(analysis, _by_estimate(cells)[:NAMED]),
        _next(analysis, ranking, front),
        _behind(analysis, ranking, front),
        arm_pairs.lead(analysis, ranking, front, ahead),
        left_out,
    )
    rest = "".join(f" {formatting.capital(one)}." for one in further if one)
    return MetricAnswer(title, first, f"{said}.{rest}")


def _standing(analysis: Analysis, ranking: Ranking, front: Sequence[str], ahead: Sequence[str]) -> tuple[str, str]:
    """Return the arms to be named first ("" for all of several), and how they compare, up to the colon before effects.

    `ahead`: the arms in front that are ahead of every arm that is not.
    """
    after = [place.arm for place in ranking.places if place.arm not in front]
    named = formatting.listed(front)
    if len(ranking.places) == 1:
        return named, ": "
    if len(front) == 1:
        count = len(ranking.places) - ranking.places[0].last
        whom = f"all {count} others" if count == len(after) else f"{count} of {len(after)} others"
        return named, f" is best, ahead of {after[0] if len(after) == 1 else whom}: "
    pairs = [one for one in analysis.pairs if (one.setting, one.metric) == (ranking.setting, ranking.metric)]
    among = [one for one in pairs if one.arm in front and one.against in front]
    cells = [analysis.cell(arm, ranking.setting, ranking.metric) for arm in front]
    tie = ""  # that no difference is shown does not say that there is none
    if all(cell.verdict == "equal" for cell in cells):
        tie = "tie"
    elif all(one.equal for one in among):
        tie = f"tie within {formatting.margin(cells[0].metric)}"
    if not after:
        if tie:
            return "", f"{'both' if len(front) == 2 else f'all {len(front)}'} {tie}: "
        return "", f"{'neither' if len(front) == 2 else f'none of the {len(front)}'} is shown to be ahead: "
    beaten = f"the {len(after)} others" if len(after) > NAMED else formatting.listed(after)
    apart = _apart(analysis, ranking)
    level = [arm for arm in front if not any(frozenset((arm, other)) in apart for other in after)]
    if ahead and level and not tie and len(ahead) + len(level) == len(front):
        unlike = f"{formatting.listed(level)}, which {_are(level)} not shown to differ from any other"
        return formatting.listed(ahead), f" {_are(ahead)} ahead of {beaten}, and not shown to differ from {unlike}: "
    every = "both" if len(front) == 2 else "each of them"
    by = every if len(ahead) == len(front) else formatting.listed(ahead)
    return named, f" {tie or 'are not shown to differ'}, and {beaten} {_are(after)} beaten{f' by {by}' if by else ''}: "


def _apart(analysis: Analysis, ranking: Ranking) -> set[frozenset[str]]:
    """Return the pairs of arms that a ranking's tests tell apart."""
    pairs = [one for one in analysis.pairs if (one.setting, one.metric) == (ranking.setting, ranking.metric)]
    return {frozenset((one.arm, one.against)) for one in pairs if one.differs}


def _ahead_of_all(analysis: Analysis, ranking: Ranking, front: Sequence[str]) -> list[str]:
    """Return the arms in front that are ahead of every arm that is not; [] if all are in front.

    An arm in front loses to none, so it is ahead of each arm from which it differs.
    """
    after, apart = [place.arm for place in ranking.places if place.arm not in front], _apart(analysis, ranking)
    return [arm for arm in front if after and all(frozenset((arm, other)) in apart for other in after)]


def _are(arms: Sequence[str]) -> str:
    return "is" if len(arms) == 1 else "are"


def _delays(analysis: Analysis, cells: Sequence[MetricCell]) -> list[str]:
    """Return a clause for each of these cells' arms whose round-trip time under load is at least `_DELAYED` times
    direct's.
    """
    direct, found = analysis.reference or "direct", []
    for cell in cells:
        for delay in analysis.cells_of(cell.setting, _DELAY):
            times = delay.against_direct.estimate if delay.against_direct else None
            if delay.arm != cell.arm or delay.verdict != "worse" or times is None or times < _DELAYED:
                continue
            assert delay.spread is not None and delay.against_direct is not None
            took = formatting.scale(delay.metric.unit, [delay.spread.median]).value(delay.spread.median)
            more = formatting.effect(delay.metric, delay.against_direct)
            found.append(f"under that load a round trip through {cell.arm} takes {took}, {more} {direct}'s")
    return found


def _next(analysis: Analysis, ranking: Ranking, front: Sequence[str]) -> str:
    """Name the arms that may come second, with their effects; "" if several are in front, or if no arm is behind."""
    after = [place for place in ranking.places if place.arm not in front]
    if len(front) != 1 or not after:
        return ""
    cells = _by_estimate([analysis.cell(place.arm, ranking.setting, ranking.metric) for place in after])
    order = {cell.arm: place for place, cell in enumerate(cells)}
    pairs = [one for one in analysis.pairs if (one.setting, one.metric) == (ranking.setting, ranking.metric)]
    apart = [(one.arm, one.against) for one in pairs if one.differs and {one.arm, one.against} <= order.keys()]
    beaten = {max(pair, key=lambda arm: order[arm]) for pair in apart}
    ahead = [cell for cell in cells if cell.arm not in beaten]
    if len(ahead) > NAMED:
        return f"next: {_either([cell.arm for cell in ahead])}, not shown to differ"
    said = _either([f"{cell.arm} {_effect(cell)}{travels.mark(apart_from_direct(analysis, cell))}" for cell in ahead])
    return f"next: {said}, not shown to differ" if len(ahead) > 1 else f"next: {said}"


def _behind(analysis: Analysis, ranking: Ranking, front: Sequence[str]) -> str:
    """Give the effects of a few arms that several in front have beaten; "" for one in front, of which `_next` tells."""
    after = [place.arm for place in ranking.places if place.arm not in front]
    if len(front) == 1 or not 0 < len(after) <= NAMED:
        return ""
    cells = _by_estimate([analysis.cell(arm, ranking.setting, ranking.metric) for arm in after])
    return f"beaten: {formatting.listed([f'{cell.arm} {_effect(cell)}' for cell in cells])}" if cells else ""


def _either(names: Sequence[str]) -> str:
    """Join alternatives as a sentence does: `a, b or c`."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _effects(
    analysis: Analysis,
    cells: Sequence[MetricCell],
    multiples: dict[tuple[str, Scenario, str], Headline],
    ahead: Sequence[str],
) -> str:
    """Say what the effects of the arms in front against direct are, with intervals, and whether they differ from it.

    `ahead`: those in front that are shown to be ahead of the others, which are named before the rest of many.
    """
    metric, direct = cells[0].metric, analysis.reference or "direct"
    base = analysis.cell(direct, cells[0].setting, metric.name).spread if analysis.reference else None
    its = f"'s {formatting.scale(metric.unit, [base.median]).value(base.median)}" if base else ""
    if metric.compare == "ratio":
        of = f"of {direct}{its}" if metric.better == "higher" else direct + (its or "'s")
    else:  # delays add
        of = f"on top of {direct}{its}" if metric.feels in ("delay", "tail") else f"against {direct}{its}"
    equal = [cell.arm for cell in cells if cell.verdict == "equal"]
    within = f"equal to {direct} within {formatting.margin(metric)}"
    if len(equal) == len(cells) > 1:
        return f"{within} ({_range(cells)} {of})"
    if len(cells) > NAMED:
        but = formatting.listed([cell.arm for cell in cells if cell.arm not in equal])
        most = f", all but {but} equal within {formatting.margin(metric)}" if 2 * len(equal) > len(cells) else ""
        leading = [cell for cell in cells if cell.arm in ahead]
        if not leading or len(cells) - len(leading) < 2:
            return f"{_first_and_last(cells)} {of}{most}"
        rest = _first_and_last([cell for cell in cells if cell not in leading])
        shown = formatting.listed([f"{cell.arm} {_effect(cell)}" for cell in _by_estimate(leading)])
        return f"{shown}, and {rest} {of}{most}"
    words = {"equal": within, "better": f"better than {direct}"}
    each = []
    for cell in cells:
        said = f"{_value(cell)}, {_effect(cell)}" if metric.compare == "ratio" else _effect(cell)
        said += travels.mark(apart_from_direct(analysis, cell)) + (f" {of}" if cell is cells[-1] else "")
        judged = _undecided(cell, direct) if cell.verdict == "undecided" else words.get(cell.verdict, "")
        said += f", {judged}" if judged else ""
        if (one := multiples.get((cell.arm, cell.setting, metric.name))) and one.multiple and one.multiple.estimate:
            said += f", {travels.times(one.multiple.estimate, one.multiple.interval)} {one.multiple.against}"
        each.append(said if len(cells) == 1 else f"{cell.arm} {said}")
    return "; ".join(each)


def _by_estimate(cells: Sequence[MetricCell]) -> list[MetricCell]:
    """Return the cells that have an estimate, the most favourable first."""
    known = [(order, cell) for cell in cells if (order := _order(cell)) is not None]
    return [cell for _, cell in sorted(known, key=lambda one: -one[0] if one[1].metric.better == "higher" else one[0])]


def _first_and_last(cells: Sequence[MetricCell]) -> str:
    """Name the arms with the most favourable estimates, and the one with the least, each with its interval."""
    found = [f"{cell.arm} {_effect(cell)}" for cell in _by_estimate(cells)]
    if not found:
        return "without an estimate"
    return f"estimates from {formatting.listed(found[: min(NAMED, len(found) - 1)])} to {found[-1]}"


def _value(cell: MetricCell) -> str:
    """Return the median over blocks with its unit."""
    assert cell.spread is not None
    return formatting.scale(cell.metric.unit, [cell.spread.median]).value(cell.spread.median)


def _undecided(cell: MetricCell, direct: str) -> str:
    """Say why an arm is not shown to differ from direct, even if its own interval alone would show it."""
    if formatting.by_itself(cell.metric, cell.against_direct) is None:
        return f"not shown to differ from {direct}"
    return f"different from {direct} if this comparison were the only one, but not shown once all of the study's are corrected for"


def _range(cells: Sequence[MetricCell]) -> str:
    """Say in which range these cells' estimates are, and in which all of their intervals; without any, say that."""
    found = [cell.against_direct for cell in cells if cell.against_direct is not None]
    estimates = [one.estimate for one in found if one.estimate is not None and isfinite(one.estimate)]
    intervals = [one.interval for one in found if one.interval is not None]
    if not intervals or not estimates:
        return "without an interval"

    def span(low: float, high: float) -> str:
        return formatting.ends(cells[0].metric, replace(found[0], interval=Interval(low, high, intervals[0].method)))

    whole = span(min(one.low for one in intervals), max(one.high for one in intervals))
    return f"estimates {span(min(estimates), max(estimates))}, with intervals within {whole}"


def _bound(analysis: Analysis, cells: Sequence[MetricCell]) -> str:
    """Say what limited the arms in front, and what limited direct if that differs; "" if nothing is known of it."""
    by: dict[str, list[str]] = {}
    for cell in cells:
        bound = bound_of(analysis, cell.arm, cell.setting, cell.metric)
        what = apart_from_direct(analysis, cell)
        if not what and bound is not None:
            what = f"bound by {bound.text}" if bound.what != "unknown" else "what bound it was not seen"
        what = what or (formatting.CEILINGS[cell.ceiling] if cell.ceiling else "")
        if what:
            by.setdefault(what, []).append(cell.arm)
    said = [what if len(arms) == len(cells) else f"{formatting.listed(arms)} {what}" for what, arms in by.items()]
    return "".join(f"; {one}" for one in said)


def _left_out(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> str:
    """Name the arms that are not ranked, with the reason of each; "" if there are none."""
    why: dict[str, list[str]] = {}
    for cell in queries.own_cells(analysis, setting, metric):
        if cell.verdict not in JUDGED:
            why.setdefault(formatting.VERDICTS[cell.verdict], []).append(cell.arm)
    said = [f"{formatting.listed(arms)} ({verdict})" for verdict, arms in why.items()]
    return f"not ranked: {', '.join(said)}" if said else ""
