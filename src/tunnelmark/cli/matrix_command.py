"""`tunnelmark matrix`: what each VPN can do and how it is built, with sources; `--measure` fills the measured cells."""

from __future__ import annotations

import asyncio
import json
import platform
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from statistics import median, median_low
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from tunnelmark import registry
from tunnelmark.cli import param_types
from tunnelmark.cli.measurement_lock import alone
from tunnelmark.cli.output import as_json, console, table
from tunnelmark.errors import LabError, MissingPart, TrialError, UnknownName
from tunnelmark.host import utilisation
from tunnelmark.host.programs import part_version
from tunnelmark.model.features import Fact
from tunnelmark.plan.study_arms import ANCHOR, DIRECT
from tunnelmark.report.feature_tables import GROUPS, LEGEND, UNKNOWN, mark, markdown
from tunnelmark.vpns.feature_matrix import CRITERIA, Criterion, MatrixRow, gaps

_COLOURS = {"✓": "green", "✗": "red", "~": "yellow", "?": "dim"}
_LOOKS = 3  # measurements of each VPN: a Go program's number of threads and first answer vary
_ASIDE = 3  # the most VPNs that fit side by side with their full values
# Short heads, one word per line, so that eleven columns fit a terminal.
_HEADS = {
    "registration": "joins alone",
    "granular_acl": "by port",
    "architectures": "x86, ARM",
    "nat_traversal": "NAT path",
}


@click.command()
@click.argument("vpns", nargs=-1, type=param_types.Name("vpn", lambda: [row.name for row in registry.matrix()]))
@click.option("--group", "groups", multiple=True, type=click.Choice(list(GROUPS)), help="Show only these criteria.")
@click.option(
    "--measure", is_flag=True, help="Deploy on three nodes each VPN that is ready, and fill the measured cells."
)
@click.option("--sources", is_flag=True, help="Print each cell with its source and date.")
@click.option("--markdown", "markdown_", is_flag=True, help="Print Markdown for documents.")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def matrix(
    vpns: tuple[str, ...], groups: tuple[str, ...], measure: bool, sources: bool, markdown_: bool, json_: bool
) -> None:
    """Compare the features of VPNS, or of all.

    Up to three are shown side by side, more as marks and by criterion. VPNs that the lab cannot run have a row with
    the reason.
    """
    if measure:
        _measure(vpns)
    rows = registry.matrix()
    if unknown := [name for name in vpns if name not in {row.name for row in rows}]:
        raise UnknownName("row", unknown[0], [row.name for row in rows])
    chosen = [row for row in rows if row.name in vpns or (not vpns and row.name not in (ANCHOR, DIRECT))]
    if json_:
        as_json([(_of_groups(row, groups) if groups else row).plain() for row in chosen])
    elif markdown_:
        click.echo(markdown(chosen, groups or GROUPS))
    elif sources:
        _with_sources(chosen, groups or GROUPS)
    else:
        _by_group(chosen, groups or GROUPS)


def _of_groups(row: MatrixRow, groups: Collection[str]) -> MatrixRow:
    """Return the row with only the cells of these groups."""
    keys = {criterion.key for criterion in _criteria(groups)}
    return replace(row, cells={key: fact for key, fact in row.cells.items() if key in keys})


def _by_group(rows: Sequence[MatrixRow], groups: Collection[str]) -> None:
    for group in groups:
        criteria = _criteria([group])
        title = f"\n{GROUPS[group]}"
        if len(rows) <= _ASIDE:
            lines: list[Sequence[str | Text]] = [[c.title, *(_whole(row, c) for row in rows)] for c in criteria]
            table(("", *(row.title for row in rows)), lines, title=title)
        elif group == "design":
            _by_criterion(rows, criteria, title)
        else:
            _marks(rows, criteria, title)
    _unstated(rows, groups)
    for row in rows:
        if row.reason:
            console().print(Text(f"\n{row.title} has no driver: {row.reason}."))


def _unstated(rows: Sequence[MatrixRow], groups: Collection[str]) -> None:
    """Print into which file missing facts go, if at most three VPNs are shown: all their cells may be empty."""
    asked = [criterion for criterion in _criteria(groups) if criterion.group != "measured"]
    for row in rows if len(rows) <= _ASIDE else ():
        if missing := gaps(row, asked):
            click.echo(
                f"\n{row.name}: {len(missing)} of {len(asked)} facts are not stated; those that its driver does not say go into "
                f"matrix/{row.name}.toml, see docs/matrix.md"
            )


def _marks(rows: Sequence[MatrixRow], criteria: Sequence[Criterion], title: str) -> None:
    shown = Table(
        title=title, title_justify="left", box=None, header_style="bold", pad_edge=False, collapse_padding=True
    )
    shown.add_column("")
    for criterion in criteria:
        head = _HEADS.get(criterion.key, criterion.title).replace(" ", "\n")
        marked = criterion.group == "choosing" and criterion.key != "licence"
        shown.add_column(head, justify="center" if marked else "left", vertical="bottom")
    for row in rows:
        cells = [mark(criterion, row.cells.get(criterion.key)) for criterion in criteria]
        shown.add_row(row.name, *(Text(cell, _COLOURS.get(cell, "")) for cell in cells))
    console().print(shown)
    if "choosing" in {criterion.group for criterion in criteria}:
        click.echo(LEGEND)


def _by_criterion(rows: Sequence[MatrixRow], criteria: Sequence[Criterion], title: str) -> None:
    """Print one block for each criterion, with the VPNs' values one below the other; equal values share a line."""
    out = console()
    out.print(Text(title, "italic"))
    for criterion in criteria:
        out.print(Text(f"\n{criterion.title}", "bold").append(f"  {criterion.question}", "dim not bold"))
        same: dict[str, list[str]] = {}
        for row in rows:
            if fact := row.cells.get(criterion.key):
                same.setdefault(fact.value, []).append(row.name)
        block = _block(32)
        for value, named in same.items():
            block.add_row(", ".join(named), Text(value))
        out.print(block)


def _whole(row: MatrixRow, criterion: Criterion) -> Text:
    fact = row.cells.get(criterion.key)
    return Text(fact.value) if fact else Text("not measured" if criterion.group == "measured" else UNKNOWN, "dim")


def _with_sources(rows: Sequence[MatrixRow], groups: Collection[str]) -> None:
    out = console()
    for row in rows:
        out.print(Text(f"\n{row.title}: {row.homepage}", "italic"))
        for criterion in _criteria(groups):
            if fact := row.cells.get(criterion.key):
                block = _block(15)
                block.add_row(Text(criterion.title, "bold"), Text(fact.value))
                block.add_row("", Text(f"{fact.source} ({fact.date})", "dim"))
                out.print(block)


def _block(first: int) -> Table:
    """Return a table of two columns without lines; the first one has a fixed width."""
    block = Table.grid(padding=(0, 2))
    block.add_column(width=first)
    block.add_column(overflow="fold")
    return block


def _criteria(groups: Collection[str]) -> list[Criterion]:
    return [criterion for criterion in CRITERIA if criterion.group in groups]


def _measure(wanted: Sequence[str]) -> None:
    """Measure each VPN at rest, and store its values at once; print which VPNs are missing or do not come up."""
    out = console(stderr=True)
    file = registry.measured_file()
    chosen = [name for name in registry.vpns() if name in wanted or (not wanted and name not in (ANCHOR, DIRECT))]
    with alone(out, "matrix --measure"):
        for place, name in enumerate(chosen, start=1):
            try:
                version = part_version(registry.vpn_part(registry.vpn(name)))
                out.print(f"{place} of {len(chosen)}: {name} {version}")
                _keep(file, name, asyncio.run(_look(name, version)))
            except (MissingPart, TrialError, LabError) as error:
                out.print(f"{place} of {len(chosen)}: {name} [yellow]not measured[/]: {error.message}")
    out.print(f"kept in {file}", soft_wrap=True)


def _keep(file: Path, name: str, found: Mapping[str, Fact]) -> None:
    """Replace the stored values of one VPN by the new ones, in one step."""
    known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    known[name] = {key: asdict(fact) for key, fact in found.items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    fresh.replace(file)


async def _look(name: str, version: str) -> dict[str, Fact]:
    """Return a VPN's medians over `_LOOKS` measurements, each of newly started daemons on new nodes."""
    from tunnelmark.lab.client import LabClient
    from tunnelmark.plan.files import Files
    from tunnelmark.plan.load import load_topology
    from tunnelmark.run.idle_footprint import look

    driver = registry.vpn(name)
    lan, seen = load_topology("lan-3", Files.standard()), []
    with tempfile.TemporaryDirectory() as logs:
        async with LabClient() as labs:
            for number in range(_LOOKS):
                seen.append(await look(labs, lan, driver, driver.options(), Path(logs, str(number))))
    where = f"Linux {platform.release()}, {utilisation.cores()} cores"
    source = f"measured, {version}, {where}, median of {_LOOKS}: tunnelmark matrix --measure"
    today = str(date.today())
    values = {
        "measured_first_packet": f"{median(one.first_packet for one in seen):.2f} s",
        "measured_mtu": str(median_low(one.mtu for one in seen)),
        "measured_threads": str(median_low(one.threads for one in seen)),
        "measured_offloads": "yes, TSO" if seen[0].segmentation else "no",
        "measured_memory": f"{median(one.memory for one in seen) / 2**20:.1f} MiB",
    }
    return {key: Fact(value, source, today) for key, value in values.items()}
