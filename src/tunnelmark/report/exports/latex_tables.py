r"""A run's results as LaTeX tables (package booktabs), one for each primary metric in each scenario, to be read into a paper with \input.

What makes a number believable is below it: intervals with what they cover, trials that succeeded, cautions. Only booktabs is needed,
and a document in UTF-8; no command of the tables is ours.
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
"""Characters that LaTeX reads as commands, or that its oldest font encoding lacks."""

_LAST_LATIN = "\N{LATIN SMALL LETTER LONG S}"
"""The last of the Latin letters that pdflatex has by itself; any other character that it does not know ends it."""

_HEAD = ("arm", "ok", "median", "rank", "verdict")


def escape(text: str) -> str:
    """Text as LaTeX prints it; a question mark for what it could not."""
    return "".join(_SPECIAL.get(sign) or _known(sign) for sign in text)


def _known(sign: str) -> str:
    """A character that has no command: itself, what it is made of, or a question mark."""
    if sign.isascii() or (sign <= _LAST_LATIN and unicodedata.name(sign, "").startswith("LATIN ")):
        return sign
    simpler = unicodedata.normalize("NFKD", sign)
    return escape(simpler) if simpler.isascii() else "?"


def render(analysis: Analysis, name: str = "") -> str:
    """All tables of one run, with a newline at the end; `name` tells the labels of several runs apart."""
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
    """A line of a table."""
    return " & ".join(escape(cell) for cell in cells) + r" \\"


def _label(text: str) -> str:
    """A label without what LaTeX or the shell would read."""
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-.") else "-" for sign in text)
