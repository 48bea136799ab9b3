"""Writes the part of a paper that compares a run with the source that it repeats.

It shows how the source and the run were set up, how they differ, and each claim with its verdict. It needs the packages
booktabs and longtable; longtable comes with LaTeX itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunnelmark.analyse.model import Analysis
from tunnelmark.claims.verdicts import of_run
from tunnelmark.report import claim_tables, repetition
from tunnelmark.report.exports.latex_tables import escape, row

_SETUPS = r"p{0.16\linewidth}p{0.38\linewidth}p{0.38\linewidth}"
_CONCLUSIONS = r"p{0.5\linewidth}p{0.24\linewidth}p{0.18\linewidth}"
_CLAIMS = r"p{0.09\linewidth}p{0.3\linewidth}p{0.24\linewidth}p{0.1\linewidth}p{0.17\linewidth}"


def render(analysis: Analysis) -> str:
    """Return the section's text, with a newline at the end; "" if the study does not repeat a source."""
    if (found := of_run(analysis)) is None:
        return ""
    repeats = repetition.repetition(analysis, found)
    said = " ".join(filter(None, (f"{repeats.source}.", repeats.part, f"{claim_tables.summary(found.judged)}.")))
    parts = [escape(said) + "\n"]
    if concluded := claim_tables.conclusions(found.claims, found.judged):
        rows = [(each.says, each.fared, each.place) for each in concluded]
        parts += [*_table(_CONCLUSIONS, claim_tables.CONCLUSIONS_HEAD, rows)]
        parts.append(escape(claim_tables.shared_figures(found.judged)) + "\n")
    parts += _table(_SETUPS, repetition.HEAD, repeats.rows)
    if repeats.otherwise:
        items = [rf"\item {escape(f'{topic}: {each}')}" for topic, texts in repeats.otherwise for _, each in texts]
        parts += [
            "What else this run does otherwise than the source:",
            r"\begin{enumerate}",
            *items,
            r"\end{enumerate}",
        ]
    claims = [
        (line.outcome, line.says, line.compared, line.printed, line.found)
        for line in claim_tables.lines(found.claims, found.judged)
    ]
    parts += _table(_CLAIMS, ("verdict", "claim", "compared", "in the source", "found here"), claims)
    parts.append(rf"{{\footnotesize {escape(_legend())}\par}}")
    return "\n".join(parts) + "\n"


def _legend() -> str:
    """Return the report's legend without the sign in front of each verdict, which the paper does not use."""
    text = claim_tables.LEGEND
    for sign in claim_tables.SIGNS.values():
        text = text.replace(f"{sign} ", "", 1)
    return text


def _table(columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the LaTeX lines of a table that may be longer than a page; `columns` has LaTeX's column types."""
    return [
        r"{\footnotesize",
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        row(head),
        r"\midrule",
        r"\endhead",
        *(row(cells) for cells in rows),
        r"\bottomrule",
        r"\end{longtable}}",
    ]
