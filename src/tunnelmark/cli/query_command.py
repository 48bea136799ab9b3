"""The command `query`: queries the results of any number of runs in SQL."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tunnelmark.cli import output, param_types
from tunnelmark.errors import StoreError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1000
"""The most rows that are shown on a terminal; with more, the user is asked to write a file."""


@click.command()
@click.argument("sql", metavar="SQL", required=False)
@click.argument("results", nargs=-1, type=param_types.RESULTS_OR_FILE)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help="How the answer is written.",
)
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="File for the answer  [the terminal]")
@click.option("--schema", is_flag=True, help="Show the views and their columns with units, and end.")
def query(sql: str | None, results: tuple[Path, ...], form: str, to: Path | None, schema: bool) -> None:
    r"""Answer SQL about the runs in RESULTS: folders of runs, merged or single, or folders that hold such  [results/].

    A data file of flent (NAME.flent.gz) is a run, too, with its values and nothing compared.

    The views are runs, trials, samples, metrics, effects, verdicts and environment. Nothing is measured or changed.

    \b
    tunnelmark query --schema
    tunnelmark query "SELECT arm, median(value) FROM metrics WHERE used AND metric = 'goodput' GROUP BY arm"
    """
    if schema:
        _schema()
        return
    if sql is None:
        raise UsageError("there is no query", hint="SQL in quotes; `tunnelmark query --schema` shows what can be asked")
    if form == "parquet" and to is None and output.console().is_terminal:
        raise UsageError("Parquet is not for a terminal", hint="name a file with --to")
    from tunnelmark.record import flent_files, run_folders
    from tunnelmark.report import store_query
    from tunnelmark.report.exports.tidy import StoredRuns

    foreign = [each for each in results if flent_files.is_flent(each)]
    folders = [each for each in results if each not in foreign]
    runs = run_folders.read(folders) if folders or not foreign else {}
    answer = store_query.ask(StoredRuns(runs, {str(each): flent_files.read(each) for each in foreign}), sql)
    if form == "table" and to is None:
        _table(answer)
    else:
        _write(answer, form, to)


def _table(answer: pa.Table) -> None:
    from tunnelmark.report.exports.plain_rows import rows, shown

    few = answer.slice(0, _MOST)
    output.table(answer.column_names, [[shown(value) for value in row] for row in rows(few)])
    if answer.num_rows > _MOST:
        click.echo(
            f"the first {_MOST} of {answer.num_rows} rows are shown; all are written with --format csv --to FILE",
            err=True,
        )


def _write(answer: pa.Table, form: str, to: Path | None) -> None:
    from tunnelmark.report.exports import csv_tables, json_rows, parquet_tables

    if form == "table":
        raise UsageError("--to has no format", hint="add --format csv, json or parquet")
    writer = {"csv": csv_tables.write, "json": json_rows.write, "parquet": parquet_tables.write}[form]
    if to is None:
        writer(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        with to.open("wb") as file:
            writer(answer, file)
    except OSError as error:
        raise StoreError(f"{to} cannot be written: {error.strerror}", hint="choose another with --to") from error


def _schema() -> None:
    from tunnelmark.report import store_query

    for name, row, columns in store_query.schema():
        click.echo(f"{name}: {row}")
        output.table(("  column", "type", "unit", "meaning"), [(f"  {first}", *rest) for first, *rest in columns])
        click.echo()
