"""Writes the skeleton of a paper in LaTeX: the run's methods, figures and tables, ready for `pdflatex paper.tex`.

It needs the packages booktabs, geometry, graphicx and longtable, and a document class that every TeX distribution has
(article). The text has numbers with their intervals; to say what they mean is left to the paper's authors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tunnelmark
from tunnelmark.analyse.model import Analysis
from tunnelmark.report import formatting
from tunnelmark.report.cautions import cautions
from tunnelmark.report.exports import latex_tables, paper_repeats
from tunnelmark.report.exports.latex_tables import escape
from tunnelmark.report.exports.paper_figures import FORMS, PaperFigure
from tunnelmark.report.findings import findings
from tunnelmark.report.methods import methods
from tunnelmark.report.titles import heading

MAIN, TABLES, METHODS, FIGURES, REPEATS = "paper.tex", "tables.tex", "methods.tex", "figures.tex", "repeats.tex"
r"""The main file, and the files that it reads with \input."""

FOLDER = "figures"
"""The folder of the figures, relative to the main file."""

_MAIN = r"""% {comment}
% pdflatex paper.tex, twice. All other files are made again by: tunnelmark report RESULTS --export paper
\documentclass[10pt,a4paper]{{article}}
\usepackage[utf8]{{inputenc}}
\usepackage[T1]{{fontenc}}
\usepackage{{booktabs}}
\usepackage{{graphicx}}
\usepackage{{longtable}}
\usepackage[margin=25mm]{{geometry}}
\title{{{title}}}
\author{{}}
\date{{}}
\begin{{document}}
\maketitle
{description}
\section{{Methods}}
\input{{methods}}
{repeats}\section{{Results}}
{results}
\input{{figures}}
\clearpage
\input{{tables}}
\end{{document}}
"""


def files(analysis: Analysis, drawn: Sequence[PaperFigure]) -> Mapping[str, bytes]:
    """Return the content of each of the paper's files, by its path in the paper's folder; `drawn`: the figures."""
    repeats = paper_repeats.render(analysis)
    text = ({REPEATS: repeats} if repeats else {}) | {
        MAIN: _main(analysis, repeats=bool(repeats)),
        METHODS: _methods(analysis),
        FIGURES: _figures(drawn),
        TABLES: latex_tables.render(analysis),
    }
    made = {path: content.encode() for path, content in text.items()}
    for figure in drawn:
        for form in FORMS:
            made[f"{FOLDER}/{figure.name}.{form}"] = figure.files[form]
    return made


def _main(analysis: Analysis, *, repeats: bool) -> str:
    plan = analysis.results.plan
    said = [f"\\textbf{{{escape(text)}}}\n" for text in cautions(analysis)]
    said += [
        f"\\paragraph{{{escape(formatting.capital(heading(analysis, found.setting, found.metric)))}.}} {escape(found.text)}\n"
        for found in findings(analysis)
    ]
    return _MAIN.format(
        comment=f"{plan.study}, seed {plan.seed}, by tunnelmark {tunnelmark.__version__}",
        title=escape(plan.title),
        description=f"\\begin{{abstract}}\n{escape(plan.description)}\n\\end{{abstract}}" if plan.description else "",
        repeats="\\section{What this run repeats}\n\\input{repeats}\n" if repeats else "",
        results="\n".join(said),
    )


def _methods(analysis: Analysis) -> str:
    return "\n".join(f"\\paragraph{{{escape(part.heading)}.}} {escape(part.text)}\n" for part in methods(analysis))


def _figures(drawn: Sequence[PaperFigure]) -> str:
    parts = []
    for figure in drawn:
        star = "*" if figure.wide else ""
        parts.append(
            f"\\begin{{figure{star}}}\n\\centering\n\\includegraphics{{{FOLDER}/{figure.name}.pdf}}\n"
            f"\\caption{{{escape(figure.caption)}}}\n\\label{{fig:{figure.name}}}\n\\end{{figure{star}}}\n"
        )
    return "\n".join(parts)
