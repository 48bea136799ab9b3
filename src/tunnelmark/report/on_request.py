"""Shows the long parts of the report on a terminal, if asked for: `tunnelmark report RESULTS --show NAMES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tunnelmark.analyse.failures import grouped
from tunnelmark.analyse.link import text as link_text
from tunnelmark.analyse.model import Analysis
from tunnelmark.errors import UnknownName
from tunnelmark.report import arm_pairs, costs, detectable_differences, graded, machine_facts, queries, titles, travels
from tunnelmark.units import clock

ALL = "all"
"""The name that means every part."""

_LINK_HEAD = ("", "way", "stated", "from", "to", "achieved", "", "")
_OK = {True: ("inside", "green"), False: ("outside", "red"), None: ("", "dim")}
_PARTS = {"shown": ("shown", "green"), "not tested": ("not tested", "yellow"), "outside": ("outside", "red")}


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the parts that are asked for, in the order in which they are shown.

    Each of `names` may be several names, joined by commas; the name `ALL` means every part. Raises UnknownName, with
    the nearest names, if there is no such part.
    """
    asked = [name.strip() for joined in names for name in joined.split(",") if name.strip()]
    for name in asked:
        if name not in (*PARTS, ALL):
            raise UnknownName("part of the report", name, (*PARTS, ALL))
    return tuple(PARTS) if ALL in asked else tuple(name for name in PARTS if name in asked)


def further(analysis: Analysis, shown: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the parts that are not shown, but have something to say about these results."""
    return tuple(name for name in PARTS if name not in shown and PARTS[name](analysis))


def table(columns: Iterable[str], rows: Iterable[Iterable[str | Text]], *, whole: int = 1) -> Table:
    """Build a table without lines; the first `whole` columns are never broken into several lines."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
    for place, column in enumerate(columns):
        made.add_column(Text(column), overflow="fold", no_wrap=place < whole)
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def heading(text: str) -> RenderableType:
    """Return the title of a part, in bold below an empty line."""
    return Padding(Text(text, style="bold"), (1, 0, 0, 0))


def _machines(analysis: Analysis) -> list[RenderableType]:
    """Return each arm's headline, where it would lie on another machine, and what limited the arm."""
    parts: list[RenderableType] = []
    found = travels.tables(analysis)
    for each in found:
        parts.append(
            heading(f"{titles.heading(analysis, each.setting, each.metric)}: on another machine, and what bound it")
        )
        parts.append(table(each.head, each.rows))
        parts += [Text(said, style="yellow") for said in each.said]
    return [*parts, Text(travels.explained(analysis, found), style="dim")] if parts else []


def _pairs(analysis: Analysis) -> list[RenderableType]:
    """Return a table of the arms against each other for each ranked metric; empty if nothing is ranked."""
    parts: list[RenderableType] = []
    for found in arm_pairs.tables(analysis):
        parts.append(heading(f"{titles.heading(analysis, found.setting, found.metric)}: arms against each other"))
        parts.append(table(("", *found.heads), found.rows))
    return [*parts, Text(arm_pairs.EXPLAINED, style="dim")] if parts else []


def _costs(analysis: Analysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for cost in costs.costs(analysis):
        if not any(metric.name.startswith("cpu_per_gb") for metric, _ in cost.columns):
            continue  # too few bytes passed for a cost per gigabyte; the other reports show the other costs
        parts.append(heading(f"What it cost: {cost.setting.workload}{queries.where(analysis, cost.setting)}"))
        rows = []
        for arm in analysis.arms:
            cells = [analysis.cell(arm.arm, cost.setting, metric.name) for metric, _ in cost.columns]
            rows.append([arm.arm, *(costs.value(analysis, cell) for cell in cells)])
        parts.append(table(("arm", *(title for _, title in cost.columns)), rows))
    return [*parts, Text(costs.explained(analysis), style="dim")] if parts else []


def _links(analysis: Analysis) -> list[RenderableType]:
    """Return all link checks, property by property, and what each has shown of each part of the profile."""
    parts: list[RenderableType] = []
    for look in analysis.results.link_checks:
        parts.append(heading(f"Look at {look.profile}, {look.topology}, {_WHEN[look.when]}"))
        parts += [Text(f"outside: {look.reason}", style="red")] if look.verdict == "outside" else []
        rows: list[tuple[str | Text, ...]] = [
            (
                link_text.TITLES[line.name],
                line.way,
                line.stated,
                *(link_text.value(line, number) for number in (line.low, line.high, line.achieved)),
                Text(*_OK[line.ok]),
                line.note,
            )
            for line in look.lines
        ]
        parts.append(table(_LINK_HEAD, rows, whole=0))
        told: list[tuple[str | Text, ...]] = [
            (part.name, part.way, Text(*_PARTS[part.verdict]), part.why) for part in look.parts
        ]
        parts += [table(("part", "way", "", ""), told, whole=0)] if told else []
    return parts


def _power(analysis: Analysis) -> list[RenderableType]:
    said = detectable_differences.sentences(analysis)
    return [heading(said[0]), *(Text(one) for one in said[1:])] if said else []


def _times(analysis: Analysis) -> list[RenderableType]:
    wall = analysis.wall
    rows = [(name, clock(seconds)) for name, seconds in wall.phases.items() if seconds >= 0.5]
    rows += [("outside of trials", clock(wall.outside))] if wall.outside >= 0.5 else []
    return [heading("Time by phase"), table(("phase", "time"), rows)] if wall.wall > 0 and rows else []


def _failures(analysis: Analysis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for group in grouped(analysis.failures):
        row = group.first
        style = "yellow" if row.outcome == "void" else "red"
        parts.append(Text.assemble((f"{row.outcome}: ", style), f"{group.title}: {row.message or row.reason or ''}"))
        parts += [Text(f"  hint: {row.hint}", style="dim")] if row.hint else []
    causes = [Text(f"disturbed: {cause}") for cause in graded.causes(analysis)]
    return [heading("What failed, is void or disturbed"), *parts, *causes] if parts or causes else []


def _yardsticks(analysis: Analysis) -> list[RenderableType]:
    rows = machine_facts.yardsticks(analysis.results)
    return [heading("Yardsticks of this machine"), table(machine_facts.YARDSTICKS, rows)] if rows else []


_WHEN = {"before": "before the trials", "during": "between the trials", "after": "after the trials"}

PARTS: dict[str, Callable[[Analysis], list[RenderableType]]] = {
    "pairs": _pairs,
    "machines": _machines,
    "costs": _costs,
    "links": _links,
    "failures": _failures,
    "power": _power,
    "times": _times,
    "yardsticks": _yardsticks,
}
"""By name, the function that makes a part; it returns an empty list if the results have nothing for it."""
