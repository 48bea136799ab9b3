"""Compares arms across conditions, in words: a matrix of arms and conditions for each primary metric.

Every report takes its texts from here. There is a matrix only if a study has two or more conditions. What an arm
*keeps* in a condition is its value there over its value in the first condition, in the same block (or the
difference of the two).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tunnelmark.analyse.across import Kept, across_conditions, across_workloads, conditions
from tunnelmark.analyse.bottleneck import apart_from_direct, bound_of
from tunnelmark.analyse.model import Analysis, Comparison, MetricCell, Scenario, Verdict
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, overview, queries, travels

ABSENT = "–"
"""Shown where an effect has no estimate."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The texts of one arm in one condition; a text is "" if there is nothing to say.

    `value`: the arm's median. `effect`: its effect against direct, with a sign and an interval. `kept`: what the arm
    keeps of its value in the first condition, with intervals. `share`: the same in short, without intervals. `keeps`:
    the verdict on what the arm keeps, compared with what direct keeps; None in the first condition. `bound`: what
    limited the arm's value. `notes`: remarks.
    """

    cell: MetricCell
    value: str
    effect: str
    kept: str
    share: str
    keeps: Verdict | None
    bound: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """One primary metric of a workload, as a table of arms and conditions.

    `settings`: the conditions. `heads`: their names. `rows`: by the arm's name, a cell for each condition.
    """

    workload: str
    metric: MetricInfo
    settings: tuple[Scenario, ...]
    heads: tuple[str, ...]
    rows: Mapping[str, tuple[MatrixCell, ...]]

    @property
    def title(self) -> str:
        """The metric's title, with the workload in brackets."""
        return f"{self.metric.title} ({self.workload})"


@dataclass(frozen=True, slots=True)
class WorkloadShares:
    """A primary metric that two workloads share: its value in `workload` over its value in `over`.

    `heads`: the names of the conditions. `rows`: by the arm's name, a text for each condition.
    """

    metric: MetricInfo
    workload: str
    over: str
    heads: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]


def matrices(analysis: Analysis) -> tuple[Matrix, ...]:
    """Return a matrix for each primary metric of a workload that has several conditions, in the order of the plan.

    A metric has no matrix before a trial with it has run.
    """
    kept = {(one.arm, one.setting, one.metric.name): one for one in across_conditions(analysis)}
    found = []
    for use in analysis.results.plan.workloads:
        settings = conditions(analysis, use.name)
        if len(settings) < 2:
            continue
        for metric in (metric for metric in use.metrics if metric.primary):
            rows = {
                arm.name: tuple(
                    _cell(analysis, arm.name, setting, metric, kept.get((arm.name, setting, metric.name)))
                    for setting in settings
                )
                for arm in analysis.results.plan.arms
            }
            if all(shown.cell.verdict in ("not run", "left out") for row in rows.values() for shown in row):
                continue
            heads = tuple(condition(analysis, setting) for setting in settings)
            found.append(Matrix(use.name, metric, settings, heads, rows))
    return tuple(found)


def false_alarms(analysis: Analysis, found: Sequence[Matrix]) -> str:
    """Return a warning if a twin of direct seems to keep more or less than direct; "" if none does.

    A twin is direct itself under a second name. If they seem to differ, no sign of these tables can be believed.
    """
    arms = analysis.results.plan.arms
    twins = [arm.name for arm in arms if arm.same_as is not None and arm.same_as == analysis.reference]
    said = [
        f"{arm} in {head} by {matrix.title}"
        for matrix in found
        for arm in twins
        for head, cell in zip(matrix.heads, matrix.rows[arm], strict=True)
        if cell.keeps in ("better", "worse")
    ]
    if not said:
        return ""
    return (
        f"Believe no sign on what arms keep: {formatting.listed(said)} keeps other than {analysis.reference}, and is the same thing "
        "under another name."
    )


def explained(analysis: Analysis) -> str:
    """Explain what each line of a matrix's cell means."""
    direct = analysis.reference or "direct"
    first = analysis.settings()[0]
    return (
        f"First line: the median over blocks. Second: {overview.effects(analysis)}. Then what the arm "
        f"keeps of its own value in the first condition ({condition(analysis, first) or first.profile}), or by how much it changes "
        f"where differences are taken; and, behind a sign, that over the same of {direct}: ▲ better, ▼ worse, = equal within the "
        "margin, ? undecided (?▲, ?▼: by its own interval alone better or worse). These signs are one family of questions, corrected after Holm apart from those of the second line. "
        "A failed trial has no value and is counted; a zero is a value."
    )


def condition(analysis: Analysis, setting: Scenario) -> str:
    """Return the condition of a scenario in words: the name of its profile, and the name of its topology.

    The profile is left out if the study has only one profile, and the topology if the study has only one topology. ""
    if both are left out.
    """
    return queries.where(analysis, setting).removeprefix(", ")


def workload_shares(analysis: Analysis) -> tuple[WorkloadShares, ...]:
    """Return a table for each primary metric of a workload that an earlier workload of the plan has as well.

    The table has the metric's value in the later workload over its value in the first earlier workload with the metric.
    """
    by: dict[tuple[str, str, str], list[Kept]] = {}
    for one in across_workloads(analysis):
        by.setdefault((one.setting.workload, one.base.workload, one.metric.name), []).append(one)
    found = []
    for (workload, over, _), each in by.items():
        settings = list(dict.fromkeys(one.setting for one in each))
        arms = list(dict.fromkeys(one.arm for one in each))
        cells = {(one.arm, one.setting): one for one in each}
        heads = tuple(condition(analysis, setting) or f"{workload} over {over}" for setting in settings)
        rows = {arm: tuple(_said_kept(analysis, cells[arm, setting]) for setting in settings) for arm in arms}
        found.append(WorkloadShares(each[0].metric, workload, over, heads, rows))
    return tuple(found)


def _cell(analysis: Analysis, arm: str, setting: Scenario, metric: MetricInfo, kept: Kept | None) -> MatrixCell:
    cell = analysis.cell(arm, setting, metric.name)
    said = "" if kept is None else _said_kept(analysis, kept)
    short = "" if kept is None else _share(kept)
    keeps = None if kept is None else kept.verdict
    bound = bound_of(analysis, arm, setting, metric)
    told = "" if bound is None or bound.what == "unknown" else bound.text
    if cell.spread is None:
        return MatrixCell(cell, "", "", said, short, keeps, told, (formatting.state(cell), *_lost(cell)))
    medians = [other.spread.median for other in queries.cells(analysis, setting, metric) if other.spread]
    effect = formatting.judged(cell) + travels.mark(apart_from_direct(analysis, cell))
    notes = [*formatting.remarks(cell, analysis.reference), *_lost(cell)]
    if cell.ceiling:
        notes.append(formatting.CEILINGS[cell.ceiling])
    value = formatting.scale(metric.unit, medians).value(cell.spread.median)
    return MatrixCell(cell, value, effect, said, short, keeps, told, tuple(notes))


def _lost(cell: MetricCell) -> list[str]:
    """Say how many trials failed (unless the cell already says that it is unreliable), and how many are void."""
    failed = cell.success.total - cell.success.count
    said = [f"{failed} of {cell.success.total} trials failed"] if failed and not cell.unreliable else []
    return [*said, *([f"{cell.void} void"] if cell.void else [])]


def _said_kept(analysis: Analysis, one: Kept) -> str:
    """Say what an arm keeps, that over what the reference keeps, and how many blocks lack a value."""
    own = formatting.effect(one.metric, one.kept)
    said = [f"{_verb(one)} {own}" if own else ""]
    if one.kept.zeros[0]:
        said.append(f"0 in {one.kept.zeros[0]} of {len(one.kept.blocks)} blocks")
    if one.over_direct is not None:
        if effect := formatting.effect(one.metric, one.over_direct):
            sign = formatting.sign(one.metric, one.verdict, one.over_direct)
            said.append(f"{sign} {effect} {_of(one.metric)} {analysis.reference}’s")
        if one.over_direct.zeros[1]:
            said.append(
                f"{analysis.reference} keeps nothing in {one.over_direct.zeros[1]} of {len(one.over_direct.blocks)} blocks"
            )
    return ", ".join([text for text in said if text] + blocks_lost(one))


def _verb(one: Kept) -> str:
    if one.metric.compare == "difference":
        return "changes by"
    if one.setting.workload != one.base.workload:  # the same link, and other traffic: nothing is lost or kept
        return "is"
    return "keeps" if one.metric.better == "higher" else "becomes"


def _share(one: Kept) -> str:
    """Return what an arm keeps, in a few characters: `keeps 43 % ▼`, `2.1× ▲`, `+99.8 ms =`."""
    if one.kept.estimate is None:
        return one.verdict if one.verdict in formatting.WITHOUT_VALUE else ABSENT
    amount = _amount(one.metric, one.kept)
    keeps = "keeps " if one.metric.compare == "ratio" and one.metric.better == "higher" else ""
    lost = "" if not (one.failed or one.void or one.empty) else f" ({len(one.kept.blocks)})"
    return f"{keeps}{amount} {formatting.sign(one.metric, one.verdict, one.over_direct)}".rstrip() + lost


def blocks_lost(one: Kept) -> list[str]:
    """Say in how many blocks nothing could be compared, a text for each cause; [] if there are no such blocks."""
    said = [f"{one.failed} {_blocks(one.failed)} failed"] if one.failed else []
    said += [f"{one.void} {_blocks(one.void)} void"] if one.void else []
    return said + ([f"nothing to keep in {one.empty} {_blocks(one.empty)}"] if one.empty else [])


def _blocks(count: int) -> str:
    return "block" if count == 1 else "blocks"


def _of(metric: MetricInfo) -> str:
    return "beyond" if metric.compare == "difference" else "of"


def _amount(metric: MetricInfo, found: Comparison) -> str:
    return ABSENT if found.estimate is None else formatting.amount(metric, found.estimate)
