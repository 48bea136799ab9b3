"""What `report --export` writes: results of a folder for other tools, each format by an exporter of its own, from the store alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from tunnelmark.errors import StoreError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from tunnelmark.report.exports.tidy import StoredRuns

FORMATS = ("csv", "latex", "json", "parquet")

FOLDER = "export"
"""Where exports are written in a results folder, unless somebody names another place."""


def export(results: Path, form: str, to: Path | None) -> None:
    """Write results in a format, and say where: CSV and Parquet as a folder with a file for each view, others as one file (`-`: stdout).

    UsageError where the place is of the wrong kind, StoreError where it cannot be written.
    """
    from tunnelmark.record import run_folders
    from tunnelmark.report.exports.tidy import StoredRuns

    runs = StoredRuns(run_folders.read([results]))
    try:
        if form in ("csv", "parquet"):
            for file in _tables(runs, form, to or results / FOLDER):
                click.echo(f"written: {file}", err=True)
        else:
            _document(runs, results, form, to)
    except OSError as error:
        raise StoreError(
            f"{error.filename or to} cannot be written: {error.strerror}", hint="choose another place with --to"
        ) from error


def _tables(runs: StoredRuns, form: str, folder: Path) -> Iterable[Path]:
    from tunnelmark.report.exports import csv_tables, parquet_tables
    from tunnelmark.report.exports.views import VIEWS

    if str(folder) == "-" or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is no folder, and {form} is several tables", hint="name a folder with --to")
    folder.mkdir(parents=True, exist_ok=True)
    writers: Mapping[str, tuple[str, Callable[[pa.Table, BinaryIO], None]]] = {
        "csv": (csv_tables.SUFFIX, csv_tables.write),
        "parquet": (parquet_tables.SUFFIX, parquet_tables.write),
    }
    suffix, write = writers[form]
    for view in VIEWS:
        if view == "metrics":  # the samples without a time
            continue
        path = folder / f"{view}{suffix}"
        with path.open("wb") as file:
            write(runs.table(view), file)
        yield path


def _document(runs: StoredRuns, results: Path, form: str, to: Path | None) -> None:
    names = {"latex": "tables.tex", "json": "analysis.json"}
    text = _latex(runs) if form == "latex" else _json(runs, results)
    if to is not None and str(to) == "-":
        click.echo(text, nl=False)
        return
    path = to or results / FOLDER / names[form]
    if path.is_dir():
        raise UsageError(f"{path} is a folder, and {form} is one file", hint=f"--to {path / names[form]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    click.echo(f"written: {path}", err=True)


def _latex(runs: StoredRuns) -> str:
    from tunnelmark.report.exports import latex_tables

    several = len(runs.analyses) > 1
    return "\n".join(latex_tables.render(analysis, name if several else "") for name, analysis in runs.analyses.items())


def _json(runs: StoredRuns, results: Path) -> str:
    from tunnelmark.analyse.meta_analysis import merge
    from tunnelmark.record.several_runs import is_merged
    from tunnelmark.report import json_export, meta_tables

    if is_merged(results):
        return meta_tables.render_json(merge(runs.analyses))
    each = [json_export.render(analysis) for analysis in runs.analyses.values()]
    return each[0] if len(each) == 1 else "[\n" + ",\n".join(one.rstrip() for one in each) + "\n]\n"
