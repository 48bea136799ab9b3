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
from tunnelmark.report import (
    arm_pairs,
    formatting,
    in_front,
    large_segments,
    least_cpu,
    overview,
    queries,
    titles,
    travels,
)
from tunnelmark.report.in_front import NAMED, InFront

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
    `glance`: which arm has the best estimate, and how sure it is that it is ahead, in a few words. `serves`: what people
    do whose traffic is like the workload's, such as `downloads and backups`; "" if that is not known.
    """

    title: str
    first: str
    text: str
    glance: str
    serves: str = ""


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


GLANCE = (
    "The arm with the most favourable estimate against direct, and of how many others it is shown to be ahead. "
    "Tie: all are shown to be equal. What else is in front, by how much, and what bound them is said below."
)
"""Explains the table of `at_a_glance`."""


def at_a_glance(found: Sequence[ConditionAnswers]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the columns and rows of a table of the best estimates: a row for each condition, a column a metric.

    ((), ()) for a single condition, whose answers are as short.
    """
    if len(found) < 2:
        return (), ()
    asked = tuple(dict.fromkeys(answer.title for condition in found for answer in condition.answers))
    rows = []
    for condition in found:
        said = {answer.title: answer.glance for answer in condition.answers}
        rows.append((condition.title, *(said.get(title, "–") for title in asked)))
    return ("best estimate", *asked), tuple(rows)


def _estimates(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> MetricAnswer | None:
    """Return an answer that lists arms by their estimates, without ranking them; None if no arm has an estimate."""
    cells = [cell for cell in queries.own_cells(analysis, setting, metric) if _order(cell) is not None]
    cells = _by_estimate(cells)
    shown = ", ".join(f"{cell.arm} {_effect(cell)}" for cell in cells[:_ESTIMATES])
    more = f" and {len(cells) - _ESTIMATES} more" if len(cells) > _ESTIMATES else ""
    text = f"not ranked; estimates against {analysis.reference}, the most favourable first: {shown}{more}."
    title = titles.title(analysis.results.plan, setting.workload, metric)
    serves = queries.workload(analysis, setting).serves
    return MetricAnswer(title, "", text, "not ranked", serves) if cells else None


def _order(cell: MetricCell) -> float | None:
    """Return the key for sorting arms: the effect as a log ratio or a difference; None without an effect."""
    return cell.against_direct.order if cell.against_direct and cell.spread else None


def _effect(cell: MetricCell) -> str:
    assert cell.against_direct is not None
    said = formatting.effect(cell.metric, cell.against_direct)
    return f"{said}{formatting.middle(cell.against_direct)}" if said else "without an estimate"


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
    left_out, serves = _left_out(analysis, setting, metric), queries.workload(analysis, setting).serves
    title = titles.title(analysis.results.plan, setting.workload, metric)
    if ranking is None:
        return MetricAnswer(title, "", f"{left_out}.", "not ranked", serves) if left_out else None
    front = in_front.of_ranking(analysis, ranking)
    cells = [analysis.cell(arm, setting, metric.name) for arm in front.arms]
    best = _by_estimate([analysis.cell(place.arm, setting, metric.name) for place in ranking.places])[0]
    first, said = in_front.in_words(front, ranking, best.arm)
    said += _effects(analysis, cells, multiples, front) + _bound(analysis, cells)
    bare = [analysis.cell(analysis.reference, setting, metric.name)] if analysis.reference else []
    doubtful = [f"{cell.arm} is {formatting.reliability(cell)}" for cell in [*bare, *cells] if cell.unreliable]
    leading = _by_estimate(cells)[:NAMED]
    further = (
        *doubtful,
        large_segments.sentence(analysis, leading),
        _delays(analysis, ranking, leading),
        least_cpu.sentence(analysis, ranking),
        _next(analysis, ranking, front),
        _behind(analysis, ranking, front),
        arm_pairs.lead(analysis, ranking, front),
        left_out,
    )
    rest = "".join(f" {formatting.capital(one)}." for one in further if one)
    glance = in_front.at_a_glance(front, ranking, best.arm, _effect(best))
    return MetricAnswer(title, first, f"{said}.{rest}", glance, serves)


def _delays(analysis: Analysis, ranking: Ranking, cells: Sequence[MetricCell]) -> str:
    """Say how long a round trip takes under the load of those of these cells' arms for which it is at least `_DELAYED`
    times direct's, and of which ranked arm it is the shortest; "" if there are none.
    """
    direct = analysis.reference or "direct"
    found: list[str] = []
    for cell in cells:
        for delay in analysis.cells_of(cell.setting, _DELAY):
            times = delay.against_direct.estimate if delay.against_direct else None
            if delay.arm != cell.arm or delay.verdict != "worse" or times is None or times < _DELAYED:
                continue
            assert delay.spread is not None and delay.against_direct is not None
            more = formatting.effect(delay.metric, delay.against_direct)
            of = "" if found else f" {direct}'s"
            found.append(f"{_value(delay)} through {cell.arm}, {more}{of}")
    if not found:
        return ""
    ranked = {place.arm for place in ranking.places}
    medians = [
        (delay.spread.median, delay)
        for delay in analysis.cells_of(ranking.setting, _DELAY)
        if delay.arm in ranked and delay.spread is not None
    ]
    _, least = min(medians, key=lambda one: one[0])
    if least.arm not in {cell.arm for cell in cells}:
        found.append(f"the least is {_value(least)}, through {least.arm}")
    return f"under that load a round trip takes {'; '.join(found)}"


def _next(analysis: Analysis, ranking: Ranking, front: InFront) -> str:
    """Name the arms that may come second, with their effects; "" if several are in front, or if no arm is behind."""
    if len(front.arms) != 1 or not front.behind:
        return ""
    cells = _by_estimate([analysis.cell(arm, ranking.setting, ranking.metric) for arm in front.behind])
    order = {cell.arm: place for place, cell in enumerate(cells)}
    pairs = queries.pairs(analysis, ranking.setting, cells[0].metric)
    apart = [arms for arms, one in pairs.items() if one.differs and order.keys() >= set(arms)]
    beaten = {max(arms, key=lambda arm: order[arm]) for arms in apart}
    ahead = [cell for cell in cells if cell.arm not in beaten]
    if len(ahead) > NAMED:
        return f"next: {_either([cell.arm for cell in ahead])}, not shown to differ"
    said = _either([f"{cell.arm} {_effect(cell)}{travels.mark(apart_from_direct(analysis, cell))}" for cell in ahead])
    return f"next: {said}, not shown to differ" if len(ahead) > 1 else f"next: {said}"


def _behind(analysis: Analysis, ranking: Ranking, front: InFront) -> str:
    """Give the effects of a few arms that several in front have beaten; "" for one in front, of which `_next` tells."""
    if len(front.arms) == 1 or not 0 < len(front.behind) <= NAMED:
        return ""
    cells = _by_estimate([analysis.cell(arm, ranking.setting, ranking.metric) for arm in front.behind])
    return f"beaten: {formatting.listed([f'{cell.arm} {_effect(cell)}' for cell in cells])}" if cells else ""


def _either(names: Sequence[str]) -> str:
    """Join alternatives as a sentence does: `a, b or c`."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _effects(
    analysis: Analysis,
    cells: Sequence[MetricCell],
    multiples: dict[tuple[str, Scenario, str], Headline],
    front: InFront,
) -> str:
    """Say what the effects of the arms in front against direct are, with intervals, and whether they differ from it.

    Of many, those that the sentence calls ahead come first; others that are ahead are named, wherever they lie.
    """
    metric, direct = cells[0].metric, analysis.reference or "direct"
    base = analysis.cell(direct, cells[0].setting, metric.name).spread if analysis.reference else None
    its = f"'s {formatting.scale(metric.unit, [base.median]).value(base.median)}" if base else ""
    if metric.compare == "ratio":
        of = f"of {direct}{its}" if metric.better == "higher" else direct + (its or "'s")
    else:  # delays add
        of = f"on top of {direct}{its}" if metric.feels in ("delay", "tail") else f"against {direct}{its}"
    equal = [cell.arm for cell in cells if cell.verdict == "equal"]
    margin = f"{formatting.margin(metric)}{in_front.of_means(cells)}"
    within = f"equal to {direct} within {margin}"
    if len(equal) == len(cells) > 1:
        return f"{within} ({_range(cells)} {of})"
    if len(cells) > NAMED:
        but = formatting.listed([cell.arm for cell in cells if cell.arm not in equal])
        most = f", all but {but} equal within {margin}" if 2 * len(equal) > len(cells) else ""
        leading = [cell for cell in _by_estimate(cells) if cell.arm in front.ahead]
        shown = formatting.listed([f"{cell.arm} {_effect(cell)}" for cell in leading])
        if in_front.parted(front) and len(cells) - len(leading) > 1:
            rest = _first_and_last([cell for cell in cells if cell not in leading])
            return f"{shown}, and {rest} {of}{most}"
        return f"{_first_and_last(cells, front.ahead)} {of}{most}"
    words = {"equal": within, "better": f"better than {direct}"}
    each: list[str] = []
    judged: dict[str, list[str]] = {}
    for cell in cells:
        said = f"{_value(cell)}, {_effect(cell)}" if metric.compare == "ratio" else _effect(cell)
        said += travels.mark(apart_from_direct(analysis, cell)) + (f" {of}" if cell is cells[-1] else "")
        verdict = _undecided(cell, direct) if cell.verdict == "undecided" else words.get(cell.verdict, "")
        if verdict:
            judged.setdefault(verdict, []).append(cell.arm)
        if (one := multiples.get((cell.arm, cell.setting, metric.name))) and one.multiple and one.multiple.estimate:
            said += f", {travels.times(one.multiple.estimate, one.multiple.interval)} {one.multiple.against}"
        each.append(said if len(cells) == 1 else f"{cell.arm} {said}")
    if len(cells) == 1:
        return ", ".join([*each, *judged])
    every = in_front.both_or_all(len(cells))
    shared = [
        f"{every if len(arms) == len(cells) else formatting.listed(arms)}: {verdict}"
        for verdict, arms in judged.items()
    ]
    return "; ".join([*each, *shared])


def _by_estimate(cells: Sequence[MetricCell]) -> list[MetricCell]:
    """Return the cells that have an estimate, the most favourable first, by the estimates that are printed."""
    known = [(_printed(cell), order, cell) for cell in cells if (order := _order(cell)) is not None]
    sign = -1 if cells and cells[0].metric.better == "higher" else 1
    return [cell for *_, cell in sorted(known, key=lambda one: (sign * one[0], sign * one[1]))]


def _printed(cell: MetricCell) -> float:
    """Return the estimate that is printed: a median where the blocks scatter, or else the mean, by which arms are ranked."""
    assert cell.against_direct is not None
    estimate = cell.against_direct.estimate
    return cell.against_direct.order or 0.0 if estimate is None or not isfinite(estimate) else estimate


def _first_and_last(cells: Sequence[MetricCell], too: Sequence[str] = ()) -> str:
    """Name the arms with the most favourable estimates, and the one with the least, each with its interval.

    `too`: arms that are named wherever they lie.
    """
    found = _by_estimate(cells)
    if not found:
        return "without an estimate"
    count = min(NAMED, len(found) - 1)
    said = [f"{cell.arm} {_effect(cell)}" for cell in found]
    between = [text for text, cell in zip(said[count:-1], found[count:-1], strict=True) if cell.arm in too]
    by_way = f" by way of {formatting.listed(between)}" if between else ""
    return f"estimates from {formatting.listed(said[:count])}{by_way} to {said[-1]}"


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
            unseen = f"bound by no one thing ({bound.why})" if bound.why else "bound by a limit that was not seen"
            what = unseen if bound.what == "unknown" else f"bound by {bound.text}"
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
