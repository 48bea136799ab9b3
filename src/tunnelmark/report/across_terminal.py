"""Shows arms in each condition on a terminal, in short; a study with one condition has nothing to show here."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from tunnelmark.analyse.model import Analysis
from tunnelmark.report import across_tables, formatting, on_request, queries
from tunnelmark.report.across_tables import Matrix, MatrixCell

_COLUMN = 19  # the least characters of a condition's column: `keeps 43 % ▼`, or a median with its sign, and space
_WIDEST = 160


def parts(analysis: Analysis) -> list[RenderableType]:
    """Return a matrix for the first primary metric of each workload, under one heading, with a legend.

    The list is empty if the study has one condition, or if no trial has run.
    """
    whole = across_tables.matrices(analysis)
    if not whole:
        return []
    found = [one for place, one in enumerate(whole) if one.workload not in {other.workload for other in whole[:place]}]
    others = formatting.listed([one.title for one in whole if one not in found])
    more = f", as are {others}" if others else ""
    direct = analysis.reference or "direct"
    legend = (
        f"First line: the median, with the verdict against {direct}. Second: what the arm keeps of its value in the first condition, "
        f"with the verdict on that over the same of {direct}; (5): the blocks that could be compared, where some lack. 5/6: trials that "
        f"succeeded, where some failed; 0 in 2/8: blocks at zero. Intervals and what bound each are in the other reports{more}."
    )
    told: list[RenderableType] = [Text("Across conditions", style="bold")]
    if alarm := across_tables.false_alarms(analysis, whole):
        told.append(Text(f"! {alarm}", style="yellow"))
    for matrix in found:
        told += [Text(matrix.title, style="italic"), AcrossTable(analysis, matrix)]
    return [*told, Padding(Text(legend, style="dim"), (0, 0, 1, 0))]


@dataclass(frozen=True)
class AcrossTable:
    """One matrix (rows: arms, columns: conditions) as text for a terminal.

    A matrix that is too wide for the terminal is split into several tables, one below the other.
    """

    analysis: Analysis
    matrix: Matrix

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables; each has about the same number of conditions."""
        names = max(len(queries.label(self.analysis, arm)) for arm in self.matrix.rows)
        fit = max((min(options.max_width, _WIDEST) - names - 2) // _COLUMN, 1)
        count = len(self.matrix.heads)
        each = -(-count // -(-count // fit))
        for begin in range(0, count, each):
            rows: list[tuple[str | Text, ...]] = [
                (
                    Text(queries.label(self.analysis, arm), style="bold" if arm == self.analysis.reference else ""),
                    *(_short(cell) for cell in cells[begin : begin + each]),
                )
                for arm, cells in self.matrix.rows.items()
            ]
            yield on_request.table(("arm", *self.matrix.heads[begin : begin + each]), rows)


def _short(cell: MatrixCell) -> str:
    if not cell.value:
        return formatting.VERDICTS[cell.cell.verdict]
    first = f"{cell.value} {formatting.sign(cell.cell.metric, cell.cell.verdict, cell.cell.against_direct)}".rstrip()
    lost = "" if cell.cell.success.count == cell.cell.success.total else f" {formatting.share(cell.cell.success)}"
    zeros = f" 0 in {cell.cell.zeros}/{len(cell.cell.values)}" if cell.cell.zeros else ""
    return "\n".join(line for line in (first + lost + zeros, cell.share) if line)
