r"""Writes a run's results as LaTeX tables, one for each primary metric in each scenario, to be read with \input.

Below each table is what makes its numbers believable: what the intervals cover, and the cautions. A document needs only
the package booktabs, and UTF-8; the tables use no commands of our own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import tunnelmark
from tunnelmark.analyse.model import Analysis, MetricCell, Scenario
from tunnelmark.record.results import MetricInfo
from tunnelmark.report import formatting, machine_facts, queries
from tunnelmark.report.cautions import cautions

SUFFIX = ".tex"

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\neq$",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "τ": r"$\tau$",
    "·": r"$\cdot$",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "–": "--",
    "…": r"\ldots{}",
    "\N{NO-BREAK SPACE}": "~",
    "\n": " ",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""LaTeX text for characters that LaTeX reads as commands, or that its oldest font encoding lacks."""

_LAST_LATIN = "\N{LATIN SMALL LETTER LONG S}"
"""The last Latin letter that pdflatex knows by itself. At any other character that it does not know, it stops."""

_HEAD = ("arm", "ok", "median", "rank", "verdict")


def escape(text: str) -> str:
    """Return text that LaTeX prints as given; a character that it cannot print becomes a question mark."""
    return "".join(_SPECIAL.get(sign) or _known(sign) for sign in text)


def _known(sign: str) -> str:
    """Return a character without a command: itself, else its simpler parts in ASCII, else a question mark."""
    if sign.isascii() or (sign <= _LAST_LATIN and unicodedata.name(sign, "").startswith("LATIN ")):
        return sign
    simpler = unicodedata.normalize("NFKD", sign)
    return escape(simpler) if simpler.isascii() else "?"


def render(analysis: Analysis, name: str = "") -> str:
    """Return all tables of one run, with a newline at the end; `name` in their labels tells several runs apart."""
    plan = analysis.results.plan
    head = [
        f"% {plan.title} ({plan.study}, seed {plan.seed}), by tunnelmark {tunnelmark.__version__}; \\usepackage{{booktabs}}"
    ]
    tables = [
        "\n".join(_table(analysis, setting, metric, name))
        for setting in analysis.settings()
        for metric in queries.primary_metrics(analysis, setting)
    ]
    return "\n\n".join([*(line.replace("\n", " ") for line in head), *tables]) + "\n"


def _table(analysis: Analysis, setting: Scenario, metric: MetricInfo, name: str) -> Iterable[str]:
    cells = queries.cells(analysis, setting, metric)
    against = analysis.reference
    columns = [*_HEAD[:3], *([f"against {against} [95 %]"] if against else []), *_HEAD[3:]]
    scale = formatting.scale(metric.unit, [cell.spread.median for cell in cells if cell.spread])
    label = "-".join(part for part in (name, setting.profile, setting.topology, setting.workload, metric.name) if part)
    better = "larger" if metric.better == "higher" else "smaller"
    what = f"{metric.title}: {queries.workload(analysis, setting).title}, {setting.profile}, {setting.topology}."
    yield r"\begin{table}"
    yield r"\centering"
    yield f"\\caption{{{escape(what)} {escape(f'Medians of blocks; {better} is better.')}}}"
    yield f"\\label{{tab:{_label(label)}}}"
    yield f"\\begin{{tabular}}{{@{{}}l{'r' * (len(columns) - 2)}l@{{}}}}"
    yield r"\toprule"
    yield row(columns)
    yield r"\midrule"
    for cell in cells:
        yield row(_cells(analysis, cell, scale))
    yield r"\bottomrule"
    yield r"\end{tabular}"
    for note in _notes(analysis):
        yield f"\\par\\smallskip{{\\footnotesize {escape(note)}\\par}}"
    yield r"\end{table}"


def _cells(analysis: Analysis, cell: MetricCell, scale: formatting.Scale) -> list[str]:
    place = queries.place(analysis, cell.setting, cell.metric, cell.arm)
    compared = cell.against_direct
    return [
        queries.label(analysis, cell.arm),
        formatting.success(cell.success, cell.void),
        scale.value(cell.spread.median) if cell.spread else "",
        *([formatting.effect(cell.metric, compared) if compared else ""] if analysis.reference else []),
        formatting.rank(place.first, place.last) if place else "",
        formatting.state(cell) + (", unreliable" if cell.unreliable else ""),
    ]


def _notes(analysis: Analysis) -> list[str]:
    return [f"An interval covers {machine_facts.covers(analysis.results)}.", *cautions(analysis)]


def row(cells: Iterable[str]) -> str:
    """Return a row of a LaTeX table, in which the given texts of the cells are escaped."""
    return " & ".join(escape(cell) for cell in cells) + r" \\"


def _label(text: str) -> str:
    """Return the text as a label, with a hyphen for each character that LaTeX or a shell would interpret."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-.") else "-" for sign in text)
