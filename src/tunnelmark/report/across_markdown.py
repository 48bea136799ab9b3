"""Writes the part of the Markdown report that compares conditions, and workloads that share a metric."""

from __future__ import annotations

from tunnelmark.analyse.model import Analysis
from tunnelmark.report import across_tables, queries
from tunnelmark.report.across_tables import MatrixCell
from tunnelmark.report.markdown_syntax import rows, safe


def parts(analysis: Analysis) -> list[str]:
    """Return paragraphs in Markdown: a matrix for each primary metric, then the tables of `workload_shares`.

    The list is empty if the study has one condition, and no two of its workloads have the same primary metric.
    """
    found: list[str] = []
    matrices = across_tables.matrices(analysis)
    for matrix in matrices:
        lines = [
            [f"**{safe(queries.label(analysis, arm))}**", *(_cell(cell) for cell in cells)]
            for arm, cells in matrix.rows.items()
        ]
        found += [f"### {safe(matrix.title)}", rows(["arm", *map(safe, matrix.heads)], lines)]
    if found:
        alarm = across_tables.false_alarms(analysis, matrices)
        warned = [f"> **{safe(alarm)}**"] if alarm else []
        found = ["## Across conditions", *warned, *found, safe(across_tables.explained(analysis))]
    for shares in across_tables.workload_shares(analysis):
        found.append(f"### {safe(shares.metric.title)}: {safe(shares.workload)} over {safe(shares.over)}")
        lines = [[f"**{safe(queries.label(analysis, arm))}**", *map(safe, texts)] for arm, texts in shares.rows.items()]
        found.append(rows(["arm", *map(safe, shares.heads)], lines))
    return found


def _cell(cell: MatrixCell) -> str:
    bound = f"bound by {cell.bound}" if cell.bound else ""
    small = ", ".join([*cell.notes, *([bound] if bound else [])])
    lines = [cell.value, cell.effect, cell.kept, small and f"<sub>{safe(small)}</sub>"]
    return "<br>".join(line for line in lines if line)
