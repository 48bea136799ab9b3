"""The command `history`: shows the results of a machine's runs over time, and where they changed."""

from __future__ import annotations

from pathlib import Path

import click

from tunnelmark.cli import output, param_types


@click.command()
@click.argument("results", nargs=-1, type=param_types.RESULTS)
@click.option("--metric", "metrics", multiple=True, help="Metric to follow; may be given again  [the primary ones]")
@click.option("--arm", "arms", multiple=True, help="Arm to follow; may be given again  [all]")
@click.option(
    "--join-machines",
    is_flag=True,
    help="Put runs of different machines into one series; a change may be the machine's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def history(
    results: tuple[Path, ...], metrics: tuple[str, ...], arms: tuple[str, ...], join_machines: bool, as_json: bool
) -> None:
    """Follow effects against direct over the runs in RESULTS, in the order of time, and mark where their level changed.

    RESULTS are folders of runs, merged or single, or folders that hold such  [results/]. Runs that asked another thing,
    and machines, are kept apart. Nothing is measured.
    """
    from tunnelmark.analyse import judge
    from tunnelmark.analyse.history import history as follow
    from tunnelmark.record import run_folders
    from tunnelmark.report import history_tables

    analyses = {name: judge(found) for name, found in run_folders.read(results).items()}
    found = follow(analyses, metrics, arms, join_machines=join_machines)
    if as_json:
        click.echo(history_tables.render_json(found), nl=False)
        return
    console = output.console()
    for line in history_tables.machines(found):
        console.print(line, soft_wrap=True, markup=False)
    for caution in found.cautions:
        console.print(f"note: {caution}", soft_wrap=True, markup=False)
    for each in history_tables.tables(found):
        console.print()
        console.print(each.heading, style="bold", soft_wrap=True, markup=False)
        output.table(history_tables.COLUMNS, each.rows)
        console.print(each.note, style="dim", soft_wrap=True, markup=False)
    if any(point.change for series in found.series for point in series.points):
        console.print(f"\n{history_tables.LEGEND}", soft_wrap=True, markup=False)
