"""Writes several runs as one report (terminal, Markdown, one HTML file), all from the tables of `meta_tables`."""

from __future__ import annotations

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from tunnelmark.analyse.meta_analysis import Merged
from tunnelmark.analyse.model import Standing
from tunnelmark.report import meta_tables, on_request
from tunnelmark.report.figures import machine_rows
from tunnelmark.report.html import template
from tunnelmark.report.machine_repetition import LEGEND, MachineRepetition
from tunnelmark.report.markdown_syntax import prose, rows, safe
from tunnelmark.report.meta_tables import MetaTable

_SAME: dict[Standing, str] = {"agrees": "green", "differs": "red", "not judged": "yellow"}

_MANY = 15
"""If a table of pairs has more rows, a terminal does not show it; the other reports do."""


def terminal(merged: Merged, repeats: MachineRepetition | None = None) -> RenderableType:
    """Return the report of joined runs for a terminal; `repeats` is their comparison with a source, if any."""
    parts: list[RenderableType] = [Text(meta_tables.title(merged), style="bold")]
    parts.append(Text(f"An interval here covers {merged.covers}.", style="bold"))
    parts.append(Text(meta_tables.same(merged), style=_SAME[merged.same.standing]))
    parts += [Text(f"! {caution}", style="yellow") for caution in merged.cautions]
    parts += [Text(f"not joined: {what}", style="yellow") for what in merged.not_joined]
    if repeats is not None:
        parts += [Text(f"\nrepeats {repeats.source}"), Text(f"{repeats.summary} (in the report)", style="bold")]
    parts += [_shown(table) for table in meta_tables.outcome(merged)]
    pairs = meta_tables.pairs(merged)
    if any(len(table.rows) > _MANY for table in pairs):
        parts.append(Text("\nEvery two arms against each other: in the report.", style="dim"))
    else:
        parts += [_shown(table) for table in pairs]
    parts.append(Padding(Text(meta_tables.legend(merged), style="dim"), (1, 0, 0, 0)))
    parts.append(_shown(meta_tables.sessions(merged)))
    parts.append(Padding(Text("\n".join(meta_tables.machines(merged))), (0, 0, 1, 0)))
    return Group(*parts)


def markdown(merged: Merged, repeats: MachineRepetition | None = None) -> str:
    """Return the report of joined runs as GitHub Markdown, with all tables."""
    parts = [f"# {safe(meta_tables.title(merged))}", f"An interval here covers **{safe(merged.covers)}**."]
    parts.append(safe(meta_tables.same(merged)))
    parts += [f"> **{prose(caution)}**" for caution in merged.cautions]
    if repeats is not None:
        parts += ["## What these runs repeat", f"{safe(repeats.source)} **{safe(repeats.summary)}.**"]
        parts.append(_marked(repeats.setups, 3))
        if repeats.otherwise:
            parts.append("What else these runs do otherwise than the source:")
            parts.append("\n".join(f"- {prose(each)}" for each in repeats.otherwise))
        inside = _marked(repeats.claims, 3)
        parts.append(f"<details><summary>Each claim</summary>\n\n{inside}\n\n{safe(LEGEND)}\n\n</details>")
    parts.append("## What was found")
    parts += [_marked(table, 3) for table in meta_tables.outcome(merged)]
    parts.append(safe(meta_tables.legend(merged)))
    if merged.pairs:
        parts += ["## Arms against each other", *(_marked(table, 3) for table in meta_tables.pairs(merged))]
    parts += ["## What was joined", _marked(meta_tables.sessions(merged), 3)]
    parts.append("\n".join(f"- machine {safe(machine)}" for machine in meta_tables.machines(merged)))
    if merged.not_joined:
        parts += ["## What was not joined", "\n".join(f"- {safe(what)}" for what in merged.not_joined)]
    if more := meta_tables.others(merged):
        inside = "\n\n".join(_marked(table, 3) for table in more)
        parts.append(f"<details><summary>Metrics that explain</summary>\n\n{inside}\n\n</details>")
    return "\n\n".join(parts) + "\n"


def html(merged: Merged, repeats: MachineRepetition | None = None) -> str:
    """Return the report of joined runs as one HTML page that loads nothing else."""
    return template("merged.html.j2").render(
        title=meta_tables.title(merged),
        study=merged.study,
        covers=merged.covers,
        same=meta_tables.same(merged),
        cautions=merged.cautions,
        repeats=repeats,
        claims_legend=LEGEND,
        outcome=meta_tables.outcome(merged),
        pictures=_pictures(merged),
        unit=merged.rows[0].combined.unit if merged.rows else "session",
        pairs=meta_tables.pairs(merged),
        others=meta_tables.others(merged),
        legend=meta_tables.legend(merged),
        sessions=meta_tables.sessions(merged),
        machines=meta_tables.machines(merged),
        not_joined=merged.not_joined,
    )


def _pictures(merged: Merged) -> dict[str, Markup]:
    """Return the picture of each primary metric, by its heading; a metric with only one machine or session has none."""
    primary = [row for row in merged.rows if row.metric.primary]
    drawn = {name: machine_rows.picture(rows) for name, rows in meta_tables.by_metric(merged, primary).items()}
    return {name: picture for name, picture in drawn.items() if picture}


def _shown(table: MetaTable) -> RenderableType:
    return Group(Text(f"\n{table.heading}", style="bold"), on_request.table(table.columns, table.rows))


def _marked(table: MetaTable, level: int) -> str:
    lines = [[f"**{safe(row[0])}**", *map(safe, row[1:])] for row in table.rows]
    return f"{'#' * level} {safe(table.heading)}\n\n{rows(table.columns, lines)}"
