"""The report on a terminal: one row per arm, one column per primary metric, then what is needed to believe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tunnelmark.analyse.arms import in_settings
from tunnelmark.analyse.bottleneck import apart_from_direct
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.model import RELIABLE, Analysis, ArmSummary, MetricCell, Scenario
from tunnelmark.claims.verdicts import of_run
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import (
    across_terminal,
    claim_tables,
    costs,
    detectable_differences,
    formatting,
    graded,
    machine_facts,
    paths_found,
    placed,
    queries,
    travels,
    trial_lengths,
)
from tunnelmark.report.findings import cautions, time_spent
from tunnelmark.units import clock

_COLUMN = 17  # characters of a metric's column at least: `▼ 61 % [58–64]`, and air
_WIDEST = 160  # characters that one table may have: a pipe has no width, but people read its output too
_BESIDE = 19  # of the columns `ok` and `first packet`, and the spaces
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("?", "yellow")}
_STYLES = {
    "better": "green",
    "worse": "default",
    "equal": "dim",
    "undecided": "dim",
    "failed": "red",
    "void": "yellow",
    "reference": "bold",
}
_PATHS = {"direct": "green", "relayed": "yellow", "both": "yellow", "none": "red"}


def render(analysis: Analysis) -> RenderableType:
    """The whole report; it reads well from 80 columns on."""
    plan = analysis.results.plan
    parts: list[RenderableType] = [Text(plan.title, style="bold"), Text(machine_facts.scope(analysis), style="dim")]
    parts += [Text(f"! {text}", style="yellow") for text in cautions(analysis)]
    parts += _travels(analysis)
    parts += [Text(said, style="dim")] if (said := placed.head(analysis)) else []
    parts += _grids(analysis)
    for heading, settings in queries.groups(analysis):
        if heading:
            parts.append(Text(f"\n{heading}", style="bold"))
        parts.append(OutcomeRow(analysis, settings))
    if (found := of_run(analysis)) is not None:
        held = f"{claim_tables.summary(found.judged)} (tunnelmark study verdict {analysis.results.path})"
        parts.append(Padding(Text(held, style="bold"), (1, 0, 0, 0)))
    parts += [Text(said, style="dim")] if (said := queries.cascades(analysis)) else []
    parts.append(Padding(_legend(analysis) if queries.groups(analysis) else "", (0, 0, 1, 0)))
    parts += across_terminal.parts(analysis)
    parts += _costs(analysis)
    parts += _capacities(analysis)
    parts += _grades(analysis)
    parts.append(_gates(analysis))
    parts += _power_lines(analysis)
    parts.append(Padding(_time(analysis), (1, 0, 0, 0)))
    return Group(*parts)


@dataclass(frozen=True)
class OutcomeRow:
    """Every arm by every primary metric of some settings, in as many tables one below the other as the width asks for."""

    analysis: Analysis
    settings: tuple[Scenario, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The tables, each with about as many columns as the next."""
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
    """One table; with `successes` it also says how many trials of an arm succeeded, and how long the first packet took."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
    table.add_column("arm", no_wrap=True)
    if successes:
        table.add_column("ok", no_wrap=True)
        table.add_column("first\npacket", no_wrap=True)
    for _, metric in columns:
        table.add_column(Text(metric.title), overflow="fold")
    for summary in summaries:
        good = summary.success.count == summary.success.total
        about = (
            Text(formatting.success(summary.success, summary.void), style="" if good else "red"),
            formatting.first_packet(summary),
        )
        table.add_row(
            Text(queries.label(analysis, summary.arm), style="bold" if summary.arm == analysis.reference else ""),
            *(about if successes else ()),
            *(_cell(analysis, summary.arm, setting, metric) for setting, metric in columns),
        )
    return table


def _grids(analysis: Analysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for grid in paths_found.grids(analysis):
        parts.append(Text(f"\n{grid.title}", style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
        table.add_column("routers", overflow="fold")
        for arm in grid.arms:
            table.add_column(queries.label(analysis, arm), overflow="fold")
        for kinds in grid.rows:
            found = [grid.cells[kinds, arm] for arm in grid.arms]
            table.add_row(
                paths_found.named(kinds), *(Text(str(one), style=_PATHS.get(one.outcome, "dim")) for one in found)
            )
        parts += [table, Text(paths_found.EXPLAINED, style="dim")]
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
    if cell.against_direct is not None and cell.against_direct.estimate is not None:
        lines += f"\n{formatting.judged(cell)}{travels.mark(apart_from_direct(analysis, cell))}"
        if said := formatting.doubts(cell.against_direct, analysis.reference):
            lines += f"\n{said}"
    if cell.unreliable:
        lines += f"\nunreliable ({formatting.share(cell.success)})"
    return Text(lines, style=_STYLES.get(cell.verdict, "default"))


def _marks(cell: MetricCell) -> str:
    return {"link": " ⊤", "near the link": " ⊤", "load": " ⊤", "lab": " ⊤", None: ""}[cell.ceiling]


def _legend(analysis: Analysis) -> Text:
    cells = [cell for cell in analysis.cells if cell.metric.primary]
    reference = analysis.reference or "direct"
    said = [f"First line: the median over blocks. Second: against {reference} in the same block, with 95 % interval."]
    if any(cell.verdict in formatting.SIGNS for cell in cells):
        said.append(formatting.legend(cell.metric for cell in cells))
    if any(cell.verdict == "too few blocks" for cell in cells):
        said.append("? also marks cells with too few blocks to judge.")
    if any(cell.unreliable for cell in cells):
        said.append(f"Unreliable: fewer than {formatting.percent(RELIABLE)} of the trials succeeded.")
    if any(cell.ceiling for cell in cells):
        said.append("⊤ at or near a ceiling: the link, the offered load or the generator is the limit, not the arm.")
    if any(trial_lengths.mark(analysis, cell) for cell in cells):
        said.append(f"{trial_lengths.SIGN} not stationary: the halves of the window differ by more than 10 %.")
    return Text(" ".join(said), style="dim")


def _travels(analysis: Analysis) -> list[RenderableType]:
    """What is said first: what each cell means on another machine, and what bound it."""
    parts: list[RenderableType] = []
    for found in travels.tables(analysis):
        parts.append(Text(travels.titled(analysis, found), style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
        for place, title in enumerate(travels.HEAD):
            table.add_column(title, overflow="fold", no_wrap=place == 0)
        for row in found.rows:
            table.add_row(*(Text(text) for text in row))
        parts += [table, *(Text(said, style="yellow") for said in found.said)]
    return [*parts, Padding(Text(travels.explained(analysis), style="dim"), (0, 0, 1, 0))] if parts else []


def _costs(analysis: Analysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for cost in costs.costs(analysis):
        if not any(metric.name.startswith("cpu_per_gb") for metric, _ in cost.columns):
            continue  # too little passed for a cost per gigabyte; the other reports have the rest
        where = queries.where(analysis, cost.setting)
        parts.append(Text(f"What it cost: {cost.setting.workload}{where}", style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
        table.add_column("arm", no_wrap=True)
        for _, title in cost.columns:
            table.add_column(title, overflow="fold")
        for arm in analysis.arms:
            cells = [analysis.cell(arm.arm, cost.setting, metric.name) for metric, _ in cost.columns]
            table.add_row(arm.arm, *(costs.value(analysis, cell) for cell in cells))
        parts.append(table)
    return [*parts, Padding(Text(costs.explained(analysis), style="dim"), (0, 0, 1, 0))] if parts else []


def _capacities(analysis: Analysis) -> list[RenderableType]:
    said = formatting.capacities(analysis.capacities)
    return [Padding(Text(said, style="dim"), (0, 0, 1, 0))] if said else []


def _grades(analysis: Analysis) -> list[RenderableType]:
    """What the results are worth; where good trials alone say something else, that."""
    parts: list[RenderableType] = [Text(graded.summary(analysis))]
    for one in graded.alone(analysis):
        if one.differs:
            said = f"  {one.metric}, {one.arm}: {one.usable} by all usable trials, {one.good} by good ones alone"
            parts.append(Text(said, style="yellow"))
    return parts


def _gates(analysis: Analysis) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for gate in gates(analysis):
        mark = Text(*_MARKS[gate.passed])
        table.add_row(mark, Text(gate.name, style="bold"), Text(gate.explanation))
    return table


def _power_lines(analysis: Analysis) -> list[RenderableType]:
    return [Text(said, style="dim") for said in detectable_differences.sentences(analysis)]


def _time(analysis: Analysis) -> Text:
    wall = analysis.wall
    parts = [f"{name} {clock(seconds)}" for name, seconds in wall.phases.items() if seconds >= 0.5]
    if wall.outside >= 0.5:
        parts.append(f"outside of trials {clock(wall.outside)}")
    return Text(f"Time: {time_spent(analysis)}" + (f" By phase: {', '.join(parts)}." if parts else ""))
