"""The first answer of a report, in words: for each condition which arm does best, or that none is shown to, and what that rests on."""

from __future__ import annotations

from tunnelmark.analyse.bottleneck import bound_of
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.analyse.pairing import favours
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, graded, machine_facts, queries
from tunnelmark.report.answers import ConditionAnswers, MetricAnswer
from tunnelmark.units import clock

NAMED = 4
"""Of more arms than that, a sentence names the first ones and counts the others."""


def overview(analysis: Analysis) -> tuple[ConditionAnswers, ...]:
    """The answers by condition, in the order of the plan; none where nothing but paths was asked for."""
    if analysis.paths_only:
        return ()
    found = (
        ConditionAnswers(
            heading,
            tuple(
                answer
                for setting in settings
                for metric in queries.primary_metrics(analysis, setting)
                if (answer := _answer(analysis, setting, metric)) is not None
            ),
        )
        for heading, settings in queries.groups(analysis)
    )
    return tuple(one for one in found if one.answers)


def not_shown(analysis: Analysis) -> str:
    """What these numbers cannot say, in a sentence: other machines, other links, other traffic, longer times."""
    plan = analysis.results.plan
    links = len({(setting.profile, setting.topology) for setting in analysis.settings()})
    longest = max((use.window for use in plan.workloads), default=0.0)
    traffic = formatting.listed([use.name for use in plan.workloads])
    return (
        f"What the numbers do not show: another machine, links other than {'this one' if links == 1 else f'these {links}'}, traffic other "
        f"than {traffic}, and what comes after more than {clock(longest)}. What a core bounds moves with the machine."
    )


def rests_on(analysis: Analysis) -> tuple[str, ...]:
    """In sentences: how many blocks and attempts, what the A/A pair says, and of what the intervals are."""
    plan = analysis.results.plan
    blocks = "one block" if plan.blocks == 1 else f"{plan.blocks} blocks, each with every arm in a new order"
    said = [f"{formatting.capital(blocks)}."]
    if worth := graded.summary(analysis):
        said.append(worth.rstrip(".") + ".")
    explanation = analysis.same.explanation
    if explanation:
        said.append(f"{formatting.capital(explanation)}.")
    said.append(
        f"Brackets are 95 % intervals of the effect against {analysis.reference or 'direct'}; they cover {machine_facts.covers(analysis.results)}."
    )
    return tuple(said)


def _answer(analysis: Analysis, setting: Scenario, metric: MetricInfo) -> MetricAnswer | None:
    """None where no arm but direct was measured."""
    cells = queries.own_cells(analysis, setting, metric)
    if not cells:
        return None
    use = queries.workload(analysis, setting)
    title = f"{metric.title} ({use.name})"
    if analysis.reference is None:
        return MetricAnswer(title, "", "the study has no direct to compare with; the tables below have the values.")
    known = [cell for cell in cells if _order(cell) is not None]
    if not known:
        words = dict.fromkeys(formatting.VERDICTS[cell.verdict] for cell in cells)
        return MetricAnswer(title, "", f"no arm can be compared ({', '.join(words)}).")
    known.sort(key=lambda cell: _order(cell) or 0.0, reverse=metric.better == "higher")
    if analysis.same.standing != "agrees":
        shown = [f"{cell.arm} {_effect(cell)}" for cell in known[:NAMED]]
        return MetricAnswer(
            title, "", f"not ranked; estimates, the most favourable first: {', '.join(shown)}{_more(known)}."
        )
    beaten = _beaten(analysis, setting, metric, {cell.arm for cell in known})
    first = [cell for cell in known if cell.arm not in beaten]
    text = _said(analysis, known, first) + _bound(analysis, first)
    return MetricAnswer(title, _arms(first) if len(first) < len(known) or len(known) == 1 else "", text)


def _order(cell: MetricCell) -> float | None:
    """By what arms are set in order: their effect on the scale on which effects add up."""
    return cell.against_direct.order if cell.against_direct and cell.spread else None


def _beaten(analysis: Analysis, setting: Scenario, metric: MetricInfo, arms: set[str]) -> set[str]:
    """The arms than which another is shown to be better."""
    lost = set()
    for pair in analysis.pairs:
        if (pair.setting, pair.metric) == (setting, metric.name) and pair.differs and {pair.arm, pair.against} <= arms:
            lost.add(pair.against if favours(metric, pair) else pair.arm)
    return lost


def _said(analysis: Analysis, known: list[MetricCell], first: list[MetricCell]) -> str:
    metric, direct = known[0].metric, analysis.reference or "direct"
    share = metric.compare == "ratio"
    each = [f"{'' if len(first) == 1 else cell.arm + ' '}{_effect(cell)}{_unreliable(cell)}" for cell in first[:NAMED]]
    figures = ", ".join(each) + _more(first) + (f" of {direct}’s" if share else f" against {direct}")
    rest = [cell for cell in known if cell not in first]
    if len(first) == 1 and len(known) == 1:
        return f": {figures}."
    if len(first) == 1:
        return f" does best: {figures}. Next: {rest[0].arm} {_effect(rest[0])}."
    alike = _equal(analysis, first)
    if not rest:
        how = (
            f"all are equal within {formatting.margin(metric)}"
            if alike
            else "no arm is shown to do better than another"
        )
        return f"{how} ({figures})."
    how = f"equal within {formatting.margin(metric)}" if alike else "no difference between them is shown"
    return f" share the first place: {how} ({figures}). The last: {rest[-1].arm} {_effect(rest[-1])}."


def _equal(analysis: Analysis, cells: list[MetricCell]) -> bool:
    """Whether every two of these arms are shown to lie within the margin."""
    arms, about = {cell.arm for cell in cells}, (cells[0].setting, cells[0].metric.name)
    pairs = [p for p in analysis.pairs if (p.setting, p.metric) == about and {p.arm, p.against} <= arms]
    return len(pairs) == len(arms) * (len(arms) - 1) // 2 and all(pair.equal for pair in pairs)


def _bound(analysis: Analysis, cells: list[MetricCell]) -> str:
    """What bound the arms in front, or what the lab's limits were to them; empty where neither is known."""
    by: dict[str, list[str]] = {}
    for cell in cells:
        bound = bound_of(analysis, cell.arm, cell.setting, cell.metric)
        what = f"bound by {bound.text}" if bound and bound.what != "unknown" else ""
        what = what or (formatting.CEILINGS[cell.ceiling] if cell.ceiling else "")
        if what:
            by.setdefault(what, []).append(cell.arm)
    said = [
        formatting.capital(what) + ("" if len(arms) == len(cells) else f": {formatting.listed(arms)}")
        for what, arms in by.items()
    ]
    return f" {'. '.join(said)}." if said else ""


def _effect(cell: MetricCell) -> str:
    assert cell.against_direct is not None
    return formatting.effect(cell.metric, cell.against_direct) or "without an estimate"


def _unreliable(cell: MetricCell) -> str:
    return f", unreliable ({formatting.share(cell.success)} succeeded)" if cell.unreliable else ""


def _arms(cells: list[MetricCell]) -> str:
    names = [cell.arm for cell in cells]
    return f"{', '.join(names[:NAMED])}{_more(cells)}" if len(names) > NAMED else formatting.listed(names)


def _more(cells: list[MetricCell]) -> str:
    return f" and {len(cells) - NAMED} more" if len(cells) > NAMED else ""
