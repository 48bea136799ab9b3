"""The command `report`: shows the results of a folder again, and rewrites their reports."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
from rich.console import Console

from tunnelmark.cli import export_results, output, param_types
from tunnelmark.errors import UsageError


@click.command()
@click.argument("results", type=param_types.RESULTS)
@click.option("--json", "as_json", is_flag=True, help="Print the analysis as JSON and write nothing.")
@click.option(
    "--export",
    "form",
    type=click.Choice(export_results.FORMATS),
    help="Write the results for other tools instead: tidy tables (csv, parquet), the analysis (json), the report (markdown); for a paper: "
    "tables (latex), figures as PDF and SVG (figures), or all of it with the methods of this run (paper).",
)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="Where --export writes: a folder for several files, a file for json, latex and markdown, - for stdout  [RESULTS/export/]",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Serve the reports of RESULTS, a run or a folder of runs, to a browser on this machine; of a run that goes on, too.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port of --serve  [one that is free]")
@click.option(
    "--show",
    "asked",
    multiple=True,
    type=param_types.PART,
    metavar="NAMES",
    help="Also show these parts: pairs, machines, costs, links, failures, power, times, yardsticks, or all; joined by commas, or repeated.",
)
def report(
    results: Path,
    as_json: bool,
    form: str | None,
    to: Path | None,
    serve: bool,
    port: int | None,
    asked: tuple[str, ...],
) -> int:
    """Show RESULTS (a folder that a run has written), and rewrite report.html, report.md and the Parquet tables.

    Nothing is measured and no root is needed: every figure comes from the journal. Results that `repeat` or `merge` has
    written are shown as one.
    """
    from tunnelmark.record.gathered import of_one_machine
    from tunnelmark.record.several_runs import is_merged
    from tunnelmark.report import on_request

    results = of_one_machine(results)
    parts = on_request.chosen(asked)
    if parts and (as_json or form is not None or serve or is_merged(results)):
        raise UsageError(
            "--show is for the tables of one run",
            hint="leave --json, --export and --serve out, and name one of the runs of a merged folder",
        )
    if as_json and form is not None:
        raise UsageError("--json prints, and --export writes", hint="leave one out; --export json --to - prints, too")
    if to is not None and form is None:
        raise UsageError("--to has no format", hint=f"add --export {', '.join(export_results.FORMATS)}")
    if port is not None and not serve:
        raise UsageError("--port is for --serve", hint="add --serve")
    if serve:
        if form is not None or as_json:
            raise UsageError("--serve goes with neither --json nor --export", hint="leave those out")
        from tunnelmark.cli import report_server

        report_server.serve([results], port or 0, lambda url: click.echo(f"{url}   (Ctrl-C ends it)"))
        return 0
    if form is not None:
        export_results.export(results, form, to)
        return 0
    if is_merged(results):
        return show_merged(results, output.console(), as_json=as_json)
    if as_json:
        click.echo(analysis(results))
        return 0
    return show(results, output.console(), parts)


def analysis(*folders: Path) -> str:
    """Return the analysis of a results folder as JSON. For several folders (one for each kernel) it is a list."""
    from tunnelmark import analyse
    from tunnelmark.record import store
    from tunnelmark.report import json_export

    each = [json_export.render(analyse.judge(store.load(folder))).rstrip() for folder in folders]
    return each[0] if len(each) == 1 else "[\n" + ",\n".join(each) + "\n]"


def show_beside(folders: Mapping[str, Path], console: Console) -> None:
    """Print results of one study side by side, under the names of `folders`."""
    from tunnelmark import analyse
    from tunnelmark.record import store
    from tunnelmark.report import side_by_side

    console.print(side_by_side.render({name: analyse.judge(store.load(folder)) for name, folder in folders.items()}))


def show(folder: Path, console: Console, parts: Sequence[str] = (), *, failures: Console | None = None) -> int:
    """Analyse a results folder, print its tables, write its reports; return 1 if a gate failed, else 0.

    `parts`: names of further tables to print, keys of `report.on_request.PARTS` such as "links". Failed gates are
    repeated at the end, on the console `failures` if it is given.
    """
    from rich.text import Text

    from tunnelmark import analyse
    from tunnelmark.analyse import build_change
    from tunnelmark.cli import draw_flames
    from tunnelmark.record import store
    from tunnelmark.report import build_answer, html, markdown, on_request, terminal

    found = store.load(folder)
    analysis = analyse.judge(found)

    def write() -> None:
        store.export(found)
        draw_flames.draw(found, console)
        _write_pages(folder, markdown.render(analysis), html.render(analysis))

    written = _written(folder, write)
    if found.plan.enough is not None and found.plan.enough.change is not None:
        verdict = build_change.builds(analysis, found.plan.enough)
        console.print(Text(f"\n{build_answer.terminal(analysis, verdict)}\n"), soft_wrap=True)
    console.print(terminal.render(analysis, parts))
    failed = [gate for gate in analyse.gates(analysis) if gate.passed is False]
    for gate in failed:
        (failures or console).print(f"[red]failed:[/] {gate.name}: {gate.explanation}", soft_wrap=True)
    if more := on_request.further(analysis, parts):
        place = shlex.quote(str(folder))
        console.print(f"more: tunnelmark report {place} --show {','.join(more)} (or all)", soft_wrap=True)
    console.print(written, soft_wrap=True)
    return 1 if failed else 0


def show_merged(folder: Path, console: Console, *, as_json: bool = False) -> int:
    """Show several runs as one, and write their reports; with `as_json` only print JSON, and return 0.

    Return 1 if a gate of one of the runs failed, or if the A/A pair differs over the runs.
    """
    from tunnelmark import analyse
    from tunnelmark.analyse.meta_analysis import merge
    from tunnelmark.record import several_runs
    from tunnelmark.report import machine_repetition, meta_tables
    from tunnelmark.report import meta_report as pages

    analyses = {member.name: analyse.judge(results) for member, results in several_runs.load(folder)}
    found = merge(analyses)
    if as_json:
        click.echo(meta_tables.render_json(found).rstrip())
        return 0
    repeats = machine_repetition.of_runs(analyses)
    written = _written(folder, lambda: _write_pages(folder, pages.markdown(found, repeats), pages.html(found, repeats)))
    console.print(pages.terminal(found, repeats))
    console.print(written, soft_wrap=True)
    return 1 if found.same.standing == "differs" or any(each.failed_gates for each in found.sessions) else 0


def _write_pages(folder: Path, markdown: str, html: str) -> None:
    for name, text in (("report.md", markdown), ("report.html", html)):
        (folder / name).write_text(text, encoding="utf-8")


def _written(folder: Path, write: Callable[[], None]) -> str:
    """Write a report's files into a results folder; return where the report is, or why it was not written.

    Users who may only read the results of another user still see their tables.
    """
    try:
        write()
    except PermissionError:
        owner, place = str(folder.stat().st_uid), shlex.quote(str(folder))
        with suppress(KeyError):  # a user that this system does not know
            owner = folder.owner()
        return (
            f"[yellow]warning:[/] no report was written: the results belong to {owner}\n"
            f'hint: [bold]sudo chown -R "$(id -un)" {place}[/] makes them yours'
        )
    return f"report: {folder / 'report.html'}"
