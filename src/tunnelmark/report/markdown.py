"""Writes the report as GitHub Markdown: for a README, an issue, a pull request."""

from __future__ import annotations

from urllib.parse import quote

from tunnelmark.analyse.arms import in_settings
from tunnelmark.analyse.bottleneck import apart_from_direct
from tunnelmark.analyse.failures import grouped
from tunnelmark.analyse.gates import gates, titled
from tunnelmark.analyse.model import Analysis, GateStanding, MetricCell, Scenario
from tunnelmark.claims.verdicts import Verdicts, of_run
from tunnelmark.model.stack_kinds import KINDS
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import (
    across_markdown,
    arm_pairs,
    claim_tables,
    costs,
    detectable_differences,
    formatting,
    graded,
    host_tables,
    machine_facts,
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
from tunnelmark.report.environment_tables import environment
from tunnelmark.report.feature_tables import features
from tunnelmark.report.findings import findings, phases, time_spent
from tunnelmark.report.flame_graphs import SIDES, flames
from tunnelmark.report.markdown_syntax import prose as _prose
from tunnelmark.report.markdown_syntax import rows as _rows
from tunnelmark.report.markdown_syntax import safe as _safe

_MARKS: dict[GateStanding, str] = {"passed": "✅", "not passed": "❌", "not judged": "❔", "not applicable": "➖"}


def render(analysis: Analysis) -> str:
    """Return the whole report as Markdown; long parts are in `<details>`."""
    plan = analysis.results.plan
    parts = [f"# {_safe(plan.title)}"]
    if plan.description:
        parts.append(_prose(plan.description))
    if where := host_tables.where(analysis.results.environment):
        parts.append(f"Nodes: {_safe(where)}.")
    parts.append(_prose(machine_facts.scope(analysis)))
    parts += [f"> **{_prose(text)}**" for text in cautions(analysis)]
    parts += _claims(analysis)
    parts.append("## Can these numbers be believed?")
    parts.append("\n".join(f"- {_MARKS[g.standing]} **{titled(g)}**: {_prose(g.explanation)}" for g in gates(analysis)))
    parts.append("## What was found")
    parts.append(
        "\n".join(
            f"- **{_safe(titles.heading(analysis, f.setting, f.metric))}**: {_prose(f.text)}"
            for f in findings(analysis)
        )
    )
    parts += _arm_pairs(analysis)
    parts += _travels(analysis)
    parts.append(_safe(placed.head(analysis)))
    for grid in paths_found.grids(analysis):
        parts.append(f"### {_safe(grid.title)}")
        head = ["routers", *(_safe(queries.label(analysis, arm)) for arm in grid.arms)]
        cells = [[_safe(str(grid.cells[kinds, arm])) for arm in grid.arms] for kinds in grid.rows]
        parts.append(
            _rows(head, [[paths_found.named(kinds), *row] for kinds, row in zip(grid.rows, cells, strict=True)])
        )
        parts.append(_safe(paths_found.EXPLAINED))
    for heading, settings in queries.groups(analysis):
        if heading:
            parts.append(f"### {_safe(heading)}")
        parts.append(_table(analysis, settings))
    parts.append(_safe(queries.placed_tunnels(analysis)))
    parts.append(
        f"Values are medians over {plan.blocks} randomised blocks; below each value is the effect {overview.effects(analysis)}. "
        + _safe(formatting.legend(cell.metric for cell in analysis.cells if cell.metric.primary))
    )
    parts += across_markdown.parts(analysis)
    parts += _firm(analysis)
    parts += _stacks(analysis)
    parts.append(_safe(formatting.capacities(analysis.capacities)))
    parts += _costs(analysis)
    parts += _grades(analysis)
    parts += _failures(analysis)
    parts.append("## How it was done")
    parts.append(_safe(time_spent(analysis)) + f" Seed {plan.seed}.")
    parts.append(_time(analysis))
    parts.append(_features(analysis))
    parts += _yardsticks(analysis)
    parts.append(_environment(analysis))
    return "\n\n".join(part for part in parts if part) + "\n"


def _claims(analysis: Analysis) -> list[str]:
    """Say how the run repeats its published source, and which claims held; [] if the study does not repeat one."""
    if (found := of_run(analysis)) is None:
        return []
    repeats = repetition.repetition(analysis, found)
    parts = [
        "## What this run repeats",
        " ".join(
            filter(None, (_safe(repeats.source) + ".", repeats.part, f"**{claim_tables.summary(found.judged)}.**"))
        ),
        _concluded(found),
        _rows(repetition.HEAD, [[_prose(text) for text in row] for row in repeats.rows]),
    ]
    if repeats.otherwise:
        parts.append("What else this run does otherwise than the source:")
        parts.append(
            "\n".join(
                f"{number}. {topic}: {_prose(each)}" for topic, said in repeats.otherwise for number, each in said
            )
        )
    parts.append("## What held of what was published")
    for outcome, lines in claim_tables.by_outcome(found.claims, found.judged):
        tested = outcome != "not testable"
        head = claim_tables.FIGURES_HEAD if tested else ["reason"]
        rows = []
        for line in lines:
            figures = (line.compared, line.printed, line.allowed) if tested else ()
            rows.append([_prose(text) for text in (f"{line.sign} {line.says}", line.place, *figures, line.found)])
        table = _rows(["claim", "place", *head], rows)
        parts.append(f"<details><summary>{outcome}: {claim_tables.counted(lines)}</summary>\n\n{table}\n\n</details>")
    return [*parts, claim_tables.LEGEND]


def _concluded(found: Verdicts) -> str:
    """Show how the source's conclusions fared, and how many figures the claims share; "" without conclusions."""
    rows = claim_tables.conclusions(found.claims, found.judged)
    table = _rows(claim_tables.CONCLUSIONS_HEAD, [[_prose(each.says), each.fared, each.place] for each in rows])
    return f"{table}\n\n{claim_tables.shared_figures(found.judged)}" if rows else ""


def _table(analysis: Analysis, settings: tuple[Scenario, ...]) -> str:
    columns = [(setting, metric) for setting in settings for metric in queries.primary_metrics(analysis, setting)]
    head = [
        "arm",
        "ok",
        "first packet",
        *(titles.title(analysis.results.plan, use.workload, metric) for use, metric in columns),
    ]
    rows = []
    for summary in in_settings(analysis, settings):
        rows.append(
            [
                f"**{_safe(queries.label(analysis, summary.arm))}**",
                formatting.success(summary.success, summary.void),
                formatting.first_packet(summary),
                *(_cell(analysis, summary.arm, setting, metric) for setting, metric in columns),
            ]
        )
    return _rows(head, rows)


def _cell(analysis: Analysis, arm: str, setting: Scenario, metric: MetricInfo) -> str:
    cell = analysis.cell(arm, setting, metric.name)
    if cell.spread is None:
        return f"*{formatting.state(cell)}*"
    medians = [other.spread.median for other in queries.cells(analysis, setting, metric) if other.spread]
    lines = [formatting.scale(metric.unit, medians).value(cell.spread.median)]
    if cell.against_direct is not None and cell.against_direct.estimate is not None:
        lines.append(formatting.judged(cell) + travels.mark(apart_from_direct(analysis, cell)))
    return "<br>".join([*lines, *_notes(analysis, cell)])


def _notes(analysis: Analysis, cell: MetricCell) -> list[str]:
    found = queries.place(analysis, cell.setting, cell.metric, cell.arm)
    notes = [f"rank {formatting.rank(found.first, found.last)}"] if found else []
    notes += formatting.remarks(cell, analysis.reference)
    if cell.ceiling:
        notes.append(formatting.CEILINGS[cell.ceiling])
    if moved := trial_lengths.mark(analysis, cell):
        notes.append(moved)
    return [f"<sub>{', '.join(notes)}</sub>"] if notes else []


def _firm(analysis: Analysis) -> list[str]:
    rows = [
        [_safe(text) for text in (f.metric, f.arm, f.effect, f.left_out, f.detectable, f.remarks)]
        for f in detectable_differences.firm(analysis)
    ]
    if not rows:
        return []
    head = "<details><summary>What this study could find, and how firm each estimate is</summary>"
    return [f"{head}\n\n{_rows(detectable_differences.HEAD, rows)}\n\n{detectable_differences.EXPLAINED}\n\n</details>"]


def _arm_pairs(analysis: Analysis) -> list[str]:
    parts = []
    for table in arm_pairs.tables(analysis):
        parts.append(f"### {_safe(titles.heading(analysis, table.setting, table.metric))}: arms against each other")
        rows = [[f"**{_safe(row[0])}**", *map(_safe, row[1:])] for row in table.rows]
        parts.append(_rows(["", *map(_safe, table.heads)], rows))
    return [*parts, _safe(arm_pairs.EXPLAINED)] if parts else []


def _travels(analysis: Analysis) -> list[str]:
    parts, found = [], travels.tables(analysis)
    for table in found:
        parts.append(f"### {_safe(titles.heading(analysis, table.setting, table.metric))}, and what bound it")
        parts.append(_rows(table.head, [[f"**{_safe(row[0])}**", *map(_safe, row[1:])] for row in table.rows]))
        parts.append("\n".join(f"- {_safe(said)}" for said in table.said))
    return [*parts, _safe(travels.explained(analysis, found))] if parts else []


def _stacks(analysis: Analysis) -> list[str]:
    found = flames(analysis)
    rows = []
    for flame in found.all:
        name = f"{_safe(flame.arm)}, {SIDES[flame.side]}{_safe(queries.where(analysis, flame.setting))}"
        for program in flame.programs:
            shares = (program.kinds[kind] for kind in KINDS)
            cells = [formatting.percent(share) if share > 0.005 else "" for share in shares]
            link = f"[{name}]({quote(flame.file)})" if flame.drawn else name
            rows.append(
                [link, _safe(flame.setting.workload), _safe(program.name), formatting.percent(program.share), *cells]
            )
    said = [f"- no stacks of {_safe(formatting.listed(trials))}: {_safe(why)}" for why, trials in found.refused.items()]
    if not rows:
        return ["## Where the CPU went", "\n".join(said)] if said else []
    cost = (
        ""
        if found.cost is None
        else f" perf itself used {found.cost:.2f} s of CPU per trial, in addition to the traffic."
    )
    told = (
        "Samples of each side by kernel function; the names link to flame graphs. Cryptography is "
        f"counted where function names show it.{cost}"
    )
    head = ["arm and side", "workload", "program", "all", *KINDS]
    return ["## Where the CPU went", told, _rows(head, rows), "\n".join(said)]


def _costs(analysis: Analysis) -> list[str]:
    parts = []
    for cost in costs.costs(analysis):
        parts.append(f"### {_safe(cost.setting.workload + queries.where(analysis, cost.setting))}")
        rows = [
            [
                f"**{_safe(arm.arm)}**",
                *(_priced(analysis, analysis.cell(arm.arm, cost.setting, metric.name)) for metric, _ in cost.columns),
            ]
            for arm in analysis.arms
        ]
        parts.append(_rows(["arm", *(title for _, title in cost.columns)], rows))
        if cost.absent:
            lines = "\n".join(f"- {_safe(reason)}" for reason in cost.absent)
            parts.append(f"<details><summary>What was not seen, and why</summary>\n\n{lines}\n\n</details>")
    return ["## What it cost", _safe(costs.explained(analysis)), *parts] if parts else []


def _priced(analysis: Analysis, cell: MetricCell) -> str:
    effect = formatting.effect(cell.metric, cell.against_direct) if cell.against_direct else ""
    return "<br>".join(filter(None, (costs.value(analysis, cell), effect)))


def _grades(analysis: Analysis) -> list[str]:
    parts = ["## What the results are worth", _safe(graded.summary(analysis))]
    if said := graded.causes(analysis):
        parts.append("\n".join(f"- {_safe(cause)}" for cause in said))
    if rows := graded.alone(analysis):
        table = [
            [_safe(one.metric), f"**{_safe(one.arm)}**", one.usable, f"{one.good}{' ⚠' if one.differs else ''}"]
            for one in rows
        ]
        parts.append(f"<details><summary>Good trials alone</summary>\n\n{_rows(graded.HEAD, table)}\n\n</details>")
    return parts


def _failures(analysis: Analysis) -> list[str]:
    if not analysis.failures:
        return []
    parts = ["## What failed, and what is void"]
    for group in grouped(analysis.failures):
        row = group.first
        cause = f"**{_safe(group.title)}** ({row.reason or row.outcome}): {_safe(row.message or '')}"
        hint = f" Hint: {_safe(row.hint)}" if row.hint else ""
        log = (
            f"\n\n  <details><summary>end of the log</summary>\n\n{_block(row.log)}\n\n  </details>" if row.log else ""
        )
        parts.append(f"- {cause}{hint}{log}")
    return parts


def _time(analysis: Analysis) -> str:
    rows = phases(analysis)
    return _rows(["phase", "time", "of the wall time"], rows) if rows else ""


def _environment(analysis: Analysis) -> str:
    facts = environment(analysis.results.environment)
    rows = [[_safe(name), f"`{value}`" if value else ""] for name, value in facts.plain()]
    if not rows:
        return ""
    return f"<details><summary>Versions and settings</summary>\n\n{_rows(['what', 'value'], rows)}\n\n</details>"


def _yardsticks(analysis: Analysis) -> list[str]:
    found = machine_facts.yardsticks(analysis.results)
    if not found:
        return []
    inside = _rows(machine_facts.YARDSTICKS, found)
    return [f"<details><summary>Yardsticks of this machine</summary>\n\n{inside}\n\n</details>"]


def _features(analysis: Analysis) -> str:
    table = features(analysis.results.environment)
    if table is None:
        return ""
    rows = [[title, *(_safe(cell.value) for cell in cells)] for title, _, cells in table.lines]
    inside = _rows(["", *map(_safe, table.heads)], rows)
    return f"<details><summary>Features of these VPNs (sources: environment.json)</summary>\n\n{inside}\n\n</details>"


def _block(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.rstrip().splitlines())
