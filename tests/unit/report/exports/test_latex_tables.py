"""LaTeX tables hold what the report says, escaped, in tabulars whose rows fit their columns."""

from __future__ import annotations

import re

import pytest

from tunnelmark.analyse import judge
from tunnelmark.report import formatting
from tunnelmark.report.exports import latex_tables
from unit.report.test_exports import KINDS, LOST

TABULAR = re.compile(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}\n(.*?)\\end\{tabular\}", re.DOTALL)
COMMANDS = {
    "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "ldots", "times", "mu", "le",
    "ge", "begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "par", "smallskip", "footnotesize",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_gives_tables_that_hold_together(kind: str) -> None:
    text = latex_tables.render(judge(KINDS[kind].results()))
    body = "\n".join(line for line in text.splitlines() if not line.startswith("% "))
    assert set(re.findall(r"\\([a-zA-Z]+)", body)) <= COMMANDS
    plain = re.sub(r"\\[&%$#_{}\\]", "", body)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert not re.search(r"[%#]", plain)
    assert body.isascii()
    assert body.count(r"\begin{table}") == body.count(r"\end{table}") == len(TABULAR.findall(body)) > 0
    for columns, rows in TABULAR.findall(body):
        lines = [line for line in rows.splitlines() if line.endswith(r" \\")]
        assert len(lines) >= 2
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(columns)}


def test_a_table_has_the_reports_numbers() -> None:
    analysis = judge(LOST.results())
    text = latex_tables.render(analysis)
    rows = 0
    for cell in analysis.cells:
        if cell.metric.primary and cell.against_direct is not None:
            effect = latex_tables.escape(formatting.effect(cell.metric, cell.against_direct))
            assert f" & {effect} & " in text
            rows += 1
    assert rows == 24  # six arms against direct by four primary metrics


def test_what_makes_numbers_doubtful_stands_below_them() -> None:
    text = latex_tables.render(judge(KINDS["A/A failed"].results()))
    assert "came out different" in text.partition(r"\end{tabular}")[2].partition(r"\end{table}")[0]
    assert r"\footnotesize An interval covers this run" in text


def test_special_characters_are_escaped() -> None:
    assert latex_tables.escape(r"50 % of a_b & c#d {e} $5 ~ ^ \x") == (
        r"50 \% of a\_b \& c\#d \{e\} \$5 \textasciitilde{} \textasciicircum{} \textbackslash{}x"
    )
    assert latex_tables.escape("2.1× [1.9–2.3], −3 µs") == r"2.1$\times$ [1.9--2.3], $-$3 $\mu$s"


@pytest.mark.parametrize(
    ("text", "printed"),
    [("τ 0.61", r"$\tau$ 0.61"), ("Zoë Ŝmith", "Zoë Ŝmith"), ("H₂ at ５ ％", r"H2 at 5 \%"), ("日本 ⊤", "?? ?")],
)
def test_what_latex_does_not_know_is_replaced(text: str, printed: str) -> None:
    assert latex_tables.escape(text) == printed


def test_tables_of_several_runs_have_labels_of_their_own() -> None:
    analysis = judge(LOST.results())
    one, two = (re.findall(r"\\label\{(.*?)\}", latex_tables.render(analysis, name)) for name in ("m/01", "m_02"))
    assert len({*one, *two}) == len(one) + len(two)
    assert all(re.fullmatch(r"tab:[A-Za-z0-9.-]+", label) for label in one + two)
