"""`tunnelmark topology`: shows how a topology joins its nodes, in the terminal or as a picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from tunnelmark.cli import output, param_types
from tunnelmark.errors import UsageError
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_topology


@click.group()
def topology() -> None:
    """Look at topologies: which nodes there are, joined how."""


@topology.command()
@click.argument("name", type=param_types.TOPOLOGY)
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file.")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
def show(name: str, svg: Path | None, json_: bool) -> None:
    """Draw the topology NAME: its nodes and routers, and the links between them."""
    from tunnelmark.record.describe import topology_info
    from tunnelmark.report.figures import topology as drawn

    files, name = Files.standard().with_paths("topology", name)
    found = topology_info(load_topology(name, files))
    if svg is not None:
        try:
            svg.write_text(drawn.file(found), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{svg}: {error.strerror}", hint="name a file in a folder that you may write to"
            ) from error
    if json_:
        output.as_json(asdict(found))
        return
    console = output.console()
    console.print(Text.assemble((found.name, "bold"), f": {found.title}"), soft_wrap=True)
    console.print(drawn.tree(found))
    if svg is not None:
        click.echo(f"\npicture: {svg}")
