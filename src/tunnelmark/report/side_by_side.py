"""Shows results of one study that differ in one thing, such as the kernel, as a table with a column for each result."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, queries, titles


def render(analyses: Mapping[str, Analysis]) -> Table:
    """Return a table with a row for each primary metric and arm, and a column for each result.

    `analyses`: the results, by the heading of their column. A cell has the median, and the effect against direct in the
    same column. The results were measured one after the other, and not in common blocks, so they are not judged against
    each other.
    """
    title = (
        "\nside by side: the median, and against direct in the same column; columns were measured one after the other"
    )
    table = Table(box=None, pad_edge=False, header_style="italic", title=title, title_justify="left", title_style="dim")
    for heading in ("", "arm", *analyses):
        table.add_column(Text(heading), overflow="fold")
    first = next(iter(analyses.values()))
    for setting in first.settings():
        for metric in queries.primary_metrics(first, setting):
            for number, arm in enumerate(info.name for info in first.results.plan.arms):
                named = titles.heading(first, setting, metric) if number == 0 else ""
                cells = (_cell(analysis, setting, metric, arm) for analysis in analyses.values())
                table.add_row(Text(named), Text(arm), *cells)
    return table


def _cell(analysis: Analysis, setting: Scenario, metric: MetricInfo, arm: str) -> Text:
    cell = analysis.cell(arm, setting, metric.name)
    if cell.spread is None:
        return Text(formatting.VERDICTS[cell.verdict])
    medians = [other.spread.median for other in queries.cells(analysis, setting, metric) if other.spread]
    shown = formatting.scale(metric.unit, medians).value(cell.spread.median)
    if cell.against_direct is not None and cell.against_direct.estimate is not None:
        shown += f"  {formatting.effect(metric, cell.against_direct)}"
    return Text(shown)
