"""Writes the report for a terminal: answers, a row for each arm, what makes them believable, and parts on request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tunnelmark.analyse.arms import in_settings
from tunnelmark.analyse.bottleneck import apart_from_direct, bound_of
from tunnelmark.analyse.gates import gates, titled
from tunnelmark.analyse.model import RELIABLE, Analysis, ArmSummary, GateStanding, MetricCell, Scenario
from tunnelmark.claims.verdicts import of_run
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import (
    across_terminal,
    all_answers,
    answers,
    claim_tables,
    formatting,
    graded,
    host_tables,
    machine_facts,
    on_request,
    overview,
    paths_found,
    placed,
    queries,
    repetition,
    titles,
    travels,
    trial_lengths,
)
from tunnelmark.report.cautions import cautions
from tunnelmark.report.findings import time_spent

_COLUMN = 17  # the least characters of a metric's column: `▼ 61 % [58–64]`, and space
_WIDEST = 160  # the most characters of a table: a pipe has no width, but people read its output too
_BESIDE = 19  # characters of the columns `ok` and `first packet`, with the spaces
_MARKS: dict[GateStanding, tuple[str, str]] = {
    "passed": ("✓", "green"),
    "not passed": ("✗", "red"),
    "not judged": ("?", "yellow"),
    "not applicable": ("–", "dim"),
}
_STYLES = {
    "better": "green",
    "worse": "default",
    "equal": "dim",
    "undecided": "dim",
    "failed": "red",
    "void": "yellow",
    "reference": "bold",
}
_MEDIAN = "†"
_PATHS = {"direct": "green", "relayed": "yellow", "both": "yellow", "none": "red"}


def render(analysis: Analysis, shown: Collection[str] = ()) -> RenderableType:
    """Return the report, with the parts of `on_request` that `shown` names; it fits terminals of 80 columns and more.

    The answer comes first, then the results, then what is needed to believe them: gates, cautions, grades. Raises
    UnknownName if `shown` names a part that does not exist.
    """
    plan = analysis.results.plan
    parts: list[RenderableType] = [Text(plan.title, style="bold")]
    first, below = _cautions(analysis)
    parts += _answers(analysis, first, below)
    parts += _grids(analysis)
    groups = queries.groups(analysis)
    for heading, settings in groups:
        parts += [on_request.heading(heading)] if heading else [Text("")]
        parts.append(OutcomeRow(analysis, settings))
    parts += [_legend(analysis)] if groups else []
    parts += [Text(said, style="dim")] if (said := queries.placed_tunnels(analysis)) else []
    parts += across_terminal.parts(analysis)
    parts += _repetition(analysis)
    parts.append(on_request.heading("Can it be believed?"))
    parts.append(_gates(analysis))
    parts += [Text(f"! {text}", style="yellow") for text in below]
    parts += _grades(analysis)
    parts += [Text(said, style="dim")] if (said := formatting.capacities(analysis.capacities)) else []
    parts += [Text(said, style="dim")] if (said := placed.head(analysis)) else []
    parts += [Text(f"Nodes: {said}.", style="dim")] if (said := host_tables.where(analysis.results.environment)) else []
    parts.append(Text(machine_facts.scope(analysis), style="dim"))
    parts.append(Text(f"Time: {time_spent(analysis)}", style="dim"))
    for name in on_request.chosen(shown):
        parts += on_request.PARTS[name](analysis)
    return Group(*parts)


def _repetition(analysis: Analysis) -> list[RenderableType]:
    """Say how the run repeats its source, how many claims have which verdict, and what differs; [] without a source."""
    if (found := of_run(analysis)) is None:
        return []
    repeats = repetition.repetition(analysis, found)
    rows = [(each.says, each.fared, each.place) for each in claim_tables.conclusions(found.claims, found.judged)]
    concluded = on_request.table(claim_tables.CONCLUSIONS_HEAD, rows, whole=0)
    more = f" Differences that no row shows: {repeats.sentences}." if repeats.sentences else ""
    return [
        on_request.heading(claim_tables.summary(found.judged)),
        Text(" ".join(filter(None, (f"Of {repeats.source}.", repeats.part)))),
        *((concluded,) if concluded.row_count else ()),
        on_request.table(repetition.HEAD, repeats.rows, whole=0),
        Text(f"All of it: tunnelmark study verdict {analysis.results.path}.{more}", style="dim"),
    ]


def _answers(analysis: Analysis, first: Collection[str], below: Collection[str]) -> list[RenderableType]:
    """Say for each condition and metric which arm is best; and how many failed gates and cautions follow below.

    `first`: the cautions that are shown before that. `below`: those that follow the tables.
    """
    parts: list[RenderableType] = []
    parts += [Text(text, style="yellow") for text in first]
    found = answers.answers(analysis)
    if (together := all_answers.together(analysis)) is not None:
        parts.append(_answer(together))
    head, rows = answers.at_a_glance(found)
    if rows:
        parts += [on_request.table(head, rows, whole=0), Text(answers.GLANCE, style="dim")]
    for condition in found:
        parts += [Text(condition.title, style="italic")] if condition.title else []
        parts += [Text(condition.warning, style="yellow")] if condition.warning else []
        parts += [Padding(_answer(one), (0, 0, 0, 2)) for one in condition.answers]
    failed, more = sum(gate.passed is False for gate in gates(analysis)), len(below)
    said = [f"{failed} {'gate' if failed == 1 else 'gates'} not passed"] if failed else []
    said += [f"{more} {'caution' if more == 1 else 'cautions'}"] if more else []
    if said:
        parts.append(Text(f"! Below the tables: {formatting.listed(said)}.", style="yellow"))
    return parts


def _answer(one: answers.MetricAnswer) -> Text:
    serves = f", as for {one.serves}" if one.serves else ""
    return Text.assemble(f"{one.title}{serves}: ", (one.first, "bold green"), one.text)


def _cautions(analysis: Analysis) -> tuple[list[str], list[str]]:
    """Return two lists: the cautions that say why nothing is ranked, and all the others."""
    why, all_of_them = answers.unranked(analysis), cautions(analysis)
    first = [text for text in all_of_them if why and why in text]
    return first, [text for text in all_of_them if text not in first]


@dataclass(frozen=True)
class OutcomeRow:
    """One or more tables of results for a terminal: a row for each arm, a column for each setting and primary metric.

    `settings`: the scenarios that are shown, such as all with one profile and topology. If the terminal is narrow, the
    columns are split into several tables, one below the other.
    """

    analysis: Analysis
    settings: tuple[Scenario, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables, with "" between two of them; each has about the same number of columns."""
        columns = [
            (setting, metric) for setting in self.settings for metric in queries.primary_metrics(self.analysis, setting)
        ]
        arms = max((len(queries.label(self.analysis, summary.arm)) for summary in self.analysis.arms), default=0)
        fit = max((min(options.max_width, _WIDEST) - arms - _BESIDE) // _COLUMN, 1)
        tables = -(-len(columns) // fit) or 1
        each = -(-len(columns) // tables)
        summaries = in_settings(self.analysis, self.settings)
        for begin in range(0, max(len(columns), 1), max(each, 1)):
            if begin:
                yield ""
            yield _table(self.analysis, summaries, columns[begin : begin + each], successes=not begin)


def _table(
    analysis: Analysis,
    summaries: Sequence[ArmSummary],
    columns: Sequence[tuple[Scenario, MetricInfo]],
    *,
    successes: bool,
) -> Table:
    """Return one table; with `successes` it also has how many trials succeeded, and the time to the first packet."""
    heads = ("arm", "ok", "first\npacket") if successes else ("arm",)
    measured = [titles.title(analysis.results.plan, setting.workload, metric) for setting, metric in columns]
    rows: list[tuple[str | Text, ...]] = []
    for summary in summaries:
        good = summary.success.count == summary.success.total
        about = (
            Text(formatting.success(summary.success, summary.void), style="" if good else "red"),
            formatting.first_packet(summary),
        )
        name = Text(queries.label(analysis, summary.arm), style="bold" if summary.arm == analysis.reference else "")
        values = (_cell(analysis, summary.arm, setting, metric) for setting, metric in columns)
        rows.append((name, *(about if successes else ()), *values))
    return on_request.table((*heads, *measured), rows, whole=len(heads))


def _grids(analysis: Analysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for grid in paths_found.grids(analysis):
        parts.append(Text(f"\n{grid.title}", style="bold"))
        rows: list[tuple[str | Text, ...]] = [
            (
                paths_found.named(kinds),
                *(
                    Text(str(one), style=_PATHS.get(one.outcome, "dim"))
                    for one in (grid.cells[kinds, arm] for arm in grid.arms)
                ),
            )
            for kinds in grid.rows
        ]
        heads = ("routers", *(queries.label(analysis, arm) for arm in grid.arms))
        parts += [on_request.table(heads, rows, whole=0), Text(paths_found.EXPLAINED, style="dim")]
    return parts


def _cell(analysis: Analysis, arm: str, setting: Scenario, metric: MetricInfo) -> Text:
    cell = analysis.cell(arm, setting, metric.name)
    if cell.spread is None:
        return Text(formatting.VERDICTS[cell.verdict], style=_STYLES.get(cell.verdict, "dim"))
    medians = [other.spread.median for other in queries.cells(analysis, setting, metric) if other.spread]
    lines = (
        formatting.scale(metric.unit, medians).value(cell.spread.median)
        + _marks(cell)
        + (f" {trial_lengths.SIGN}" if trial_lengths.mark(analysis, cell) else "")
    )
    pair = cell.against_direct
    if pair is not None and pair.estimate is not None:
        apart = apart_from_direct(analysis, cell)
        marks = (_MEDIAN if pair.doubt else "") + travels.mark(apart).strip()
        lines += f"\n{formatting.judged(cell)} {marks}".rstrip()
        if said := formatting.doubts(replace(pair, doubt=None), analysis.reference):
            lines += f"\n{said}"
        if apart and (bound := bound_of(analysis, arm, setting, metric)) is not None:
            lines += f"\nby {bound.text}"
    elif arm == analysis.reference and (bound := bound_of(analysis, arm, setting, metric)) is not None:
        lines += f"\nby {bound.text}"
    if cell.unreliable:
        lines += f"\nunreliable ({formatting.share(cell.success)})"
    return Text(lines, style=_STYLES.get(cell.verdict, "default"))


def _marks(cell: MetricCell) -> str:
    return {"link": " ⊤", "near the link": " ⊤", "load": " ⊤", "lab": " ⊤", None: ""}[cell.ceiling]


def _legend(analysis: Analysis) -> Text:
    cells = [cell for cell in analysis.cells if cell.metric.primary]
    reference = analysis.reference or "direct"
    said = [f"First line: the median over blocks. Second: {overview.effects(analysis)}."]
    if any(cell.verdict in formatting.SIGNS for cell in cells):
        said.append(formatting.legend(cell.metric for cell in cells))
    if any(cell.verdict == "too few blocks" for cell in cells):
        said.append("? also marks cells with too few blocks to judge.")
    if any(cell.against_direct is not None and cell.against_direct.doubt for cell in cells):
        said.append(
            f"{_MEDIAN} the median, because some blocks lie far off, show no difference at all, or have a zero."
        )
    if any(bound_of(analysis, cell.arm, cell.setting, cell.metric) for cell in cells):
        said.append(
            f"By: what bound it, as far as it is another thing than with {reference} ({travels.APART}: so the ratio measures the machine)."
        )
    if any(cell.unreliable for cell in cells):
        said.append(f"Unreliable: fewer than {formatting.percent(RELIABLE)} of the trials succeeded.")
    if any(cell.ceiling for cell in cells):
        said.append("⊤ at or near a ceiling: the link, the offered load or the generator is the limit, not the arm.")
    if any(trial_lengths.mark(analysis, cell) for cell in cells):
        said.append(f"{trial_lengths.SIGN} not stationary: the halves of the window differ by more than 10 %.")
    return Text(" ".join(said), style="dim")


def _grades(analysis: Analysis) -> list[RenderableType]:
    """Say what the results are worth, and for which metrics good trials alone give another answer."""
    parts: list[RenderableType] = [Text(graded.summary(analysis))]
    for one in graded.alone(analysis):
        if one.differs:
            said = f"  {one.metric}, {one.arm}: {one.usable} by all usable trials, {one.good} by good ones alone"
            parts.append(Text(said, style="yellow"))
    return parts


def _gates(analysis: Analysis) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for gate in gates(analysis):
        mark = Text(*_MARKS[gate.standing])
        table.add_row(mark, Text(titled(gate), style="bold"), Text(gate.explanation))
    return table
