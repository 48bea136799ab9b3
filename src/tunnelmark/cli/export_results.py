"""Writes results for other tools (`report --export`): one exporter for each format, which reads only the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from tunnelmark.errors import StoreError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from tunnelmark.analyse.model import Analysis
    from tunnelmark.report.exports.tidy import StoredRuns

FOLDER = "export"
"""The subfolder of a results folder into which exports are written, unless `--to` names another one."""

_KEPT = "paper.tex"
"""The file of the export `paper` that people edit by hand. An existing one is therefore never overwritten."""


def export(results: Path, form: str, to: Path | None) -> None:
    """Write results in one of `FORMATS`, and print the path of each file that was written.

    `to` is a folder for a format of several files, else a file, or `-` for stdout. None means the subfolder `export` of
    the results. UsageError if `to` is a file where a folder is needed, or the reverse, or if nothing can be
    exported. StoreError if a file cannot be written. MissingPart if the format needs a library that is not installed.
    """
    from tunnelmark.record import run_folders
    from tunnelmark.report.exports.tidy import StoredRuns

    runs = StoredRuns(run_folders.read([results]))
    try:
        if form in _SEVERAL:
            subfolder, write = _SEVERAL[form]
            folder = to or results / FOLDER / subfolder
            if str(folder) == "-" or (folder.exists() and not folder.is_dir()):
                raise UsageError(
                    f"{folder} is not a folder, and {form} is several files", hint="name a folder with --to"
                )
            for file in write(runs, folder):
                click.echo(f"written: {file}", err=True)
        else:
            _document(runs, results, form, to)
    except OSError as error:
        raise StoreError(
            f"{error.filename or to} cannot be written: {error.strerror}", hint="choose another place with --to"
        ) from error


def _csv(runs: StoredRuns, folder: Path) -> Iterable[Path]:
    from tunnelmark.report.exports import csv_tables

    return _tables(runs, folder, csv_tables.SUFFIX, csv_tables.write)


def _parquet(runs: StoredRuns, folder: Path) -> Iterable[Path]:
    from tunnelmark.report.exports import parquet_tables

    return _tables(runs, folder, parquet_tables.SUFFIX, parquet_tables.write)


def _tables(runs: StoredRuns, folder: Path, suffix: str, write: Callable[[pa.Table, BinaryIO], None]) -> Iterable[Path]:
    """Write one file for each view except `metrics`, and yield its path."""
    from tunnelmark.report.exports.views import VIEWS

    folder.mkdir(parents=True, exist_ok=True)
    for view in VIEWS:
        if view == "metrics":  # the samples without a time
            continue
        path = folder / f"{view}{suffix}"
        with path.open("wb") as file:
            write(runs.table(view), file)
        yield path


def _figures(runs: StoredRuns, folder: Path) -> Iterable[Path]:
    from tunnelmark.report.exports import paper_figures

    for part, analysis in _each(runs, folder):
        for figure in paper_figures.figures(analysis):
            yield from _written(part, {f"{figure.name}.{form}": content for form, content in figure.files.items()})


def _paper(runs: StoredRuns, folder: Path) -> Iterable[Path]:
    from tunnelmark.report.exports import paper, paper_figures

    for part, analysis in _each(runs, folder):
        made = paper.files(analysis, tuple(paper_figures.figures(analysis)))
        if (part / _KEPT).exists():
            click.echo(f"kept as it is: {part / _KEPT}", err=True)
            made = {path: content for path, content in made.items() if path != _KEPT}
        yield from _written(part, made)


def _flent(runs: StoredRuns, folder: Path) -> Iterable[Path]:
    from tunnelmark.report.exports import flent

    found = False
    for name, results in runs.results.items():
        for path, content in flent.files(results):
            found = True
            yield from _written(folder / name if len(runs.results) > 1 else folder, {path: content})
    if not found:
        raise UsageError(
            "no trial here has a counterpart in flent",
            hint=f"a trial of {', '.join(flent.TESTS)} has one if it is not void, has a series over time, and sends one stream",
        )


def _each(runs: StoredRuns, folder: Path) -> Iterable[tuple[Path, Analysis]]:
    """Yield each run's folder and analysis: a subfolder with the run's name, or `folder` itself for a single run."""
    for name, analysis in runs.analyses.items():
        yield (folder / name if len(runs.analyses) > 1 else folder), analysis


def _written(folder: Path, files: Mapping[str, bytes]) -> Iterable[Path]:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        yield path


def _document(runs: StoredRuns, results: Path, form: str, to: Path | None) -> None:
    name, make = _ONE[form]
    text = make(runs, results)
    if to is not None and str(to) == "-":
        click.echo(text, nl=False)
        return
    path = to or results / FOLDER / name
    if path.is_dir():
        raise UsageError(f"{path} is a folder, and {form} is one file", hint=f"--to {path / name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    click.echo(f"written: {path}", err=True)


def _latex(runs: StoredRuns, _results: Path) -> str:
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


def _markdown(runs: StoredRuns, results: Path) -> str:
    from tunnelmark.analyse.meta_analysis import merge
    from tunnelmark.record.several_runs import is_merged
    from tunnelmark.report import machine_repetition, markdown, meta_report

    if is_merged(results):
        return meta_report.markdown(merge(runs.analyses), machine_repetition.of_runs(runs.analyses))
    return "\n".join(markdown.render(analysis) for analysis in runs.analyses.values())


_SEVERAL: Mapping[str, tuple[str, Callable[[StoredRuns, Path], Iterable[Path]]]] = {
    "csv": ("", _csv),
    "parquet": ("", _parquet),
    "flent": ("flent", _flent),
    "figures": ("figures", _figures),
    "paper": ("paper", _paper),
}
"""Formats of several files: the subfolder of `FOLDER`, and the function that writes them and yields their paths."""

_ONE: Mapping[str, tuple[str, Callable[[StoredRuns, Path], str]]] = {
    "latex": ("tables.tex", _latex),
    "json": ("analysis.json", _json),
    "markdown": ("report.md", _markdown),
}
"""Formats of one file: its name, and the function that makes its text."""

FORMATS = (*_SEVERAL, *_ONE)
