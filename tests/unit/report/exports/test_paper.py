"""A paper's skeleton holds the methods, figures and tables of a run, and nothing is left to be filled in by hand but its words."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tunnelmark.analyse import judge
from tunnelmark.claims import reading
from tunnelmark.claims.model import OUTCOMES
from tunnelmark.claims.verdicts import of_run
from tunnelmark.cli import main
from tunnelmark.report import formatting, repetition
from tunnelmark.report.exports import paper, paper_figures
from unit import repeated
from unit.builders import TCP, Study
from unit.report.test_exports import KINDS, LOST
from unit.report.test_repetition import ENVIRONMENT
from unit.stored import write

DRAWN = (
    "whole",
    "unfinished",
    "not begun",
    "one block",
    "an arm failed",
    "direct failed",
    "no direct",
    "two profiles",
    "with series",
)
"""The kinds of runs whose figures differ; the others differ in words, which tables and methods have from the report."""


@cache
def made(kind: str) -> dict[str, bytes]:
    """The files of a paper on that kind of run, drawn once."""
    return drawn(KINDS[kind])


def drawn(study: Study) -> dict[str, bytes]:
    analysis = judge(study.results())
    return dict(paper.files(analysis, tuple(paper_figures.figures(analysis))))


def stored(folder: Path) -> Path:
    return write(Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=5).results(), folder)


@pytest.mark.parametrize("kind", DRAWN)
def test_every_kind_of_run_gives_a_paper_whose_parts_are_there(kind: str) -> None:
    files = made(kind)
    whole = "".join(content.decode() for name, content in files.items() if name.endswith(".tex"))
    assert {f"{each}.tex" for each in re.findall(r"\\input\{(.*?)\}", whole)} <= set(files)
    pictures = re.findall(r"\\includegraphics\{(.*?)\}", whole)
    assert set(pictures) == {name for name in files if name.endswith(".pdf")}
    assert whole.isascii()
    assert len(set(re.findall(r"\\label\{(.*?)\}", whole))) == whole.count(r"\label{")
    for environment in ("figure", "table", "tabular", "document"):
        assert whole.count(f"\\begin{{{environment}}}") == whole.count(f"\\end{{{environment}}}")


def test_the_same_results_give_the_same_bytes() -> None:
    small = Study(arms=("direct", "tinc"), workloads=(TCP,), blocks=5, series=True)
    assert drawn(small) == drawn(small)


def test_each_primary_metric_has_its_effects_and_each_series_its_boxes() -> None:
    names = {Path(name).stem for name in made("with series")}
    assert {"effects-gigabit-pair-tcp-goodput", "by-second-gigabit-pair-tcp-goodput"} <= names


def test_several_conditions_have_a_heat_map_with_the_reports_numbers() -> None:
    analysis = judge(KINDS["two profiles"].results())
    words = re.findall(r">([^<>]+)</text>", made("two profiles")["figures/conditions-tcp-goodput.svg"].decode())
    assert {arm.name for arm in analysis.results.plan.arms} <= {word.removesuffix(" (A/A)") for word in words}
    for cell in analysis.cells:
        if (
            cell.metric.name == "goodput"
            and cell.against_direct is not None
            and cell.against_direct.estimate is not None
        ):
            assert any(word.startswith(formatting.amount(cell.metric, cell.against_direct.estimate)) for word in words)


def test_a_run_that_repeats_a_source_is_set_against_it() -> None:
    analysis = judge(repeated.results("cascade", environment=ENVIRONMENT))
    verdicts = of_run(analysis)
    assert verdicts is not None
    files = {name: content.decode() for name, content in paper.files(analysis, ()).items()}
    assert r"\input{repeats}" in files["paper.tex"] and r"\usepackage{longtable}" in files["paper.tex"]
    text = files["repeats.tex"]
    assert "S. Pahl, F. Adamsky" in text and "wireguard-go 0.0.20230223" in text
    assert text.count(r"\item ") == sum(len(said) for _, said in repetition.repetition(analysis, verdicts).otherwise)
    rows = [line for line in text.splitlines() if line.startswith(tuple(f"{each} & " for each in OUTCOMES))]
    assert len(rows) == len(verdicts.judged)
    assert text.isascii() and text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 3
    assert all(line.count(" & ") == 4 for line in rows)
    assert "repeats" not in made("whole")["paper.tex"].decode()


@pytest.mark.parametrize("name", reading.names())
def test_every_source_that_is_repeated_has_a_paper_that_latex_can_read(name: str) -> None:
    analysis = judge(repeated.results(reading.find(name).study, smoke=True, environment=ENVIRONMENT))
    text = "".join(content.decode() for content in paper.files(analysis, ()).values())
    assert r"\input{repeats}" in text
    assert text.isascii()


def test_a_figure_has_a_column_s_width_and_letters_stay_text() -> None:
    svg = made("whole")["figures/effects-gigabit-pair-tcp-goodput.svg"].decode()
    assert all(f">{arm}" in svg for arm in ("nebula", "tinc", "openvpn"))
    assert 'width="252pt"' in svg  # 3.5 inches of 72 points


def test_the_methods_are_those_of_the_run() -> None:
    text = made("whole")["methods.tex"].decode()
    for part in ("Machine", "Links", "What was compared", "Workloads", "Design", "Statistics", "Attempts"):
        assert f"\\paragraph{{{part}.}}" in text
    plan = LOST.results().plan
    assert f"{plan.blocks} randomised blocks were measured" in text and f"seed {plan.seed} decided" in text
    assert "direct again as direct-again" in text
    assert f"Of {len(plan.trials)} planned trials" in text
    assert "With fewer than 3 blocks no interval" in made("one block")["methods.tex"].decode()


def test_the_command_writes_it_and_never_over_the_text_of_its_author(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(tmp_path / "run")
    assert main(["report", str(results), "--export", "paper"]) == 0
    folder = results / "export" / "paper"
    assert {path.name for path in folder.iterdir()} == {
        "paper.tex",
        "tables.tex",
        "methods.tex",
        "figures.tex",
        "figures",
    }
    (folder / "paper.tex").write_text("mine")
    (folder / "tables.tex").write_text("old")
    assert main(["report", str(results), "--export", "paper"]) == 0
    assert (folder / "paper.tex").read_text() == "mine" and "kept as it is" in capsys.readouterr().err
    assert r"\toprule" in (folder / "tables.tex").read_text()


def test_figures_alone_are_pdf_and_svg(tmp_path: Path) -> None:
    results = stored(tmp_path / "run")
    assert main(["report", str(results), "--export", "figures", "--to", str(tmp_path / "out")]) == 0
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {f"effects-gigabit-pair-tcp-goodput.{form}" for form in ("pdf", "svg")}


def test_markdown_is_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(stored(tmp_path / "run")), "--export", "markdown", "--to", "-"]) == 0
    assert capsys.readouterr().out.startswith("# ")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-base)")
def test_latex_compiles_it(tmp_path: Path) -> None:
    for name, content in made("two profiles").items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    said = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 20_000


def test_the_methods_give_a_further_build_its_own_version() -> None:
    record = {"vpns": {"nebula": {"version": "1.6.1"}, "nebula 1.10": {"version": "1.10.3"}}}
    found = Study(arms=("direct", "newer"), vpns={"newer": "nebula"}, workloads=(TCP,), environment=record).results()
    arms = tuple(replace(arm, options={"build": "1.10"} if arm.name == "newer" else {}) for arm in found.plan.arms)
    text = paper.files(judge(replace(found, plan=replace(found.plan, arms=arms))), ())["methods.tex"].decode()
    assert "newer (version 1.10.3; build 1.10)" in text and "1.6.1" not in text
