"""Conditions side by side in every report: matrices, heat maps, scatters, box plots; what is missing is said where it is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from math import isclose
from random import Random

import pytest
from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.report import across_html, across_tables, html, json_export, markdown, terminal
from tunnelmark.report.figures import boxes, heat, points
from unit.builders import PING, PROFILE, TCP, UDP, Study
from unit.conditions import FIRST, SECOND, STUDY, analysed
from unit.report.test_html import Page

SPACE = "\N{NO-BREAK SPACE}"
FAILS = frozenset({("openvpn", SECOND, 3)} | {("nebula", SECOND, block) for block in range(1, 9)})
FACTORS: dict[tuple[str, str, int | None], float] = {
    ("*", SECOND, None): 0.1,
    ("tinc", SECOND, None): 0.2,
    ("tinc", SECOND, 5): 0.0,
}


@pytest.fixture(scope="module")
def found() -> Analysis:
    return analysed(replace(STUDY, series=True, workloads=(TCP, PING)), FACTORS, FAILS)


def one_condition() -> Analysis:
    return judge(replace(STUDY, profiles=(PROFILE,)).results())


def on_a_terminal(analysis: Analysis, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as captured:
        console.print(terminal.render(analysis))
    return captured.get().replace(SPACE, " ")


def goodput(analysis: Analysis) -> across_tables.Matrix:
    return next(one for one in across_tables.matrices(analysis) if one.metric.name == "goodput")


def test_a_matrix_has_every_arm_in_every_condition(found: Analysis) -> None:
    matrix = goodput(found)
    assert matrix.heads == (FIRST, SECOND)
    assert list(matrix.rows) == [arm.name for arm in found.results.plan.arms]
    tinc = matrix.rows["tinc"]
    assert re.fullmatch(r"▼ (49|50|51)(\.\d)?.% \[.*", tinc[0].effect)
    assert tinc[0].kept == ""
    assert re.match(r"keeps (9\.\d|10\.\d|10)\D", matrix.rows["direct"][1].kept)
    assert re.search(
        r"keeps (9\.\d|10\.?\d?).% \[.*\], = \d+\.?\d*.% \[.*\] of direct’s, 1 block failed",
        matrix.rows["openvpn"][1].kept,
    )


def test_a_zero_and_a_failure_are_said_in_their_cell(found: Analysis) -> None:
    rows = goodput(found).rows
    assert "0 in 1 of 8 blocks" in rows["tinc"][1].kept
    assert any("0 in 1 of 8 blocks" in note for note in rows["tinc"][1].notes)
    assert "1 of 8 trials failed" in " ".join(rows["openvpn"][1].notes) or "7/8 ok" in " ".join(
        rows["openvpn"][1].notes
    )
    assert rows["nebula"][1].value == ""
    assert rows["nebula"][1].notes[0] == "failed"
    assert rows["nebula"][1].kept == "8 blocks failed"


def test_tables_of_the_page_say_by_what_a_cell_is_sorted(found: Analysis) -> None:
    page = html.render(found)
    medians = [cell.spread.median for cell in found.cells if cell.arm == "tinc" and cell.spread]
    for section in ("across", "found"):
        part = page.partition(f'<section aria-labelledby="{section}">')[2].partition("</section>")[0]
        rows = {
            arm: "".join(re.findall(rf'<th scope="row">{arm}</th>(.*?)</tr>', part, re.DOTALL))
            for arm in ("tinc", "nebula")
        }
        given = [float(one) for one in re.findall(r'data-sort="([^"]*)"', rows["tinc"])]
        assert given
        assert all(any(isclose(one, value, rel_tol=1e-5) for value in medians) for one in given)
        assert '<td data-sort="">' in rows["nebula"], "what failed has no value to be sorted by"


def test_every_report_sets_conditions_side_by_side(found: Analysis) -> None:
    page, text, screen = html.render(found), markdown.render(found), on_a_terminal(found)
    for said in (page, text, screen):
        assert "Across conditions" in said
    assert "1 block failed" in page and "1 block failed" in text
    assert re.search(r"tinc +2\d\d Mbit/s ▼ +\d+(\.\d)? Mbit/s \S 0 in 1/8", screen)
    assert re.search(r"nebula +\d+ Mbit/s ▼ +failed", screen)
    assert re.search(r"keeps (19\.\d|20\.\d|20) %", screen)


def test_a_study_of_one_condition_has_none() -> None:
    analysis = one_condition()
    assert across_tables.matrices(analysis) == ()
    for said in (html.render(analysis), markdown.render(analysis), on_a_terminal(analysis)):
        assert "Across conditions" not in said


def test_a_study_that_has_not_begun_has_none() -> None:
    assert across_tables.matrices(judge(replace(STUDY, stop_after=0).results())) == ()


def test_where_direct_keeps_other_than_itself_every_report_says_that_no_sign_is_to_be_believed() -> None:
    wrong = analysed(STUDY, {("*", SECOND, None): 0.1, ("direct-again", SECOND, None): 0.05})
    right = analysed(STUDY, {("*", SECOND, None): 0.1})
    for analysis, times in ((wrong, 1), (right, 0)):
        for said in (html.render(analysis), markdown.render(analysis), on_a_terminal(analysis, 200)):
            assert said.count("Believe no sign on what arms keep: direct-again in lossy by TCP goodput") == times


def test_what_bound_an_arm_stands_in_its_cell() -> None:
    study = replace(STUDY, blocks=3)
    results = study.results()
    busy = {"core_source": 1.0, "used_source": 1.0, "core_target": 0.2, "used_target": 0.2}
    trials = tuple(replace(row, limits=busy) if row.arm == "tinc" else row for row in results.trials)
    analysis = judge(replace(results, trials=trials))
    assert goodput(analysis).rows["tinc"][0].bound == "the sender's core"
    assert "bound by the sender" in html.render(analysis)
    assert "bound by the sender's core" in markdown.render(analysis)


def test_the_terminals_matrix_holds_in_80_columns(found: Analysis) -> None:
    many = tuple(replace(PROFILE, name=f"profile-{place}", title=f"{place}") for place in range(6))
    analysis = judge(replace(STUDY, profiles=many, blocks=3).results())
    text = on_a_terminal(analysis, 80)
    part = text[text.index("Across conditions") :]
    assert max(len(line) for line in text.splitlines()) <= 80
    assert all(f"profile-{place}" in part for place in range(6))


def test_the_page_is_sound_and_every_figure_says_in_words_what_it_shows(found: Analysis) -> None:
    page = html.render(found)
    parsed = Page(page)
    assert parsed.open == []
    assert {"across", "distributions"} <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    sections = re.findall(r'<section aria-labelledby="(?:across|distributions)">.*?</section>', page, re.DOTALL)
    figures = re.findall(r"<svg[^>]*>(<title>[^<]{40,})?", "".join(sections))
    assert len(figures) >= 5
    assert all(figures)


def test_the_heat_map_prints_the_number_in_each_cell(found: Analysis) -> None:
    matrix = goodput(found)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", str(heat.heat(found, matrix)))
    for arm, cells in matrix.rows.items():
        for shown in cells:
            assert any(shown.value in text for text in texts) if shown.value else "failed" in texts, arm
            comparison = shown.cell.against_direct
            if comparison is not None and comparison.estimate is not None:
                assert any(text.startswith(("▼", "=", "?", "▲")) for text in texts)
    assert any(re.match(r"▼ (49|50)\.?\d* %", text.replace(SPACE, " ")) for text in texts)


def test_numbers_are_read_on_the_strongest_shade_in_light_and_in_the_dark() -> None:
    """By the contrast of WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    style = (files("tunnelmark.report") / "templates" / "report.css").read_text()
    dark = style.index("@media (prefers-color-scheme: dark)")
    for part in (style[:dark], style[dark:]):
        colours = {name: bytes.fromhex(code) for name, code in re.findall(r"--(\w+): #(\w{6})", part)[::-1]}
        for shade in ("blue", "red"):
            mixed = [
                heat.STRONGEST * own + (1 - heat.STRONGEST) * under
                for own, under in zip(colours[shade], colours["wash"], strict=True)
            ]
            bright, faint = sorted((_luminance(colours["ink"]), _luminance(mixed)), reverse=True)
            assert (bright + 0.05) / (faint + 0.05) >= 4.5


def _luminance(colour: Iterable[float]) -> float:
    parts = [each / 255 for each in colour]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_shades_run_from_a_factor_of_four_worse_to_four_better() -> None:
    study = replace(STUDY, noise=0.0, tcp={"tinc": 0.5, "nebula": 0.01, "openvpn": 2.0})
    cells = {arm: row[0].cell for arm, row in goodput(judge(study.results())).rows.items()}
    assert isclose(heat.shade(cells["tinc"]), -0.5, abs_tol=1e-6)
    assert heat.shade(cells["nebula"]) == -1.0
    assert isclose(heat.shade(cells["openvpn"]), 0.5, abs_tol=1e-6)
    assert isclose(heat.shade(cells["direct-again"]), 0.0, abs_tol=1e-6)
    slower = judge(replace(STUDY, workloads=(PING,), noise=0.0, rtt={"tinc": 2.0}).results())
    (matrix,) = across_tables.matrices(slower)
    assert isclose(heat.shade(matrix.rows["tinc"][0].cell), -0.5, abs_tol=1e-6)


def test_where_direct_loses_nothing_an_arm_that_loses_has_the_full_shade() -> None:
    lossy = judge(replace(STUDY, workloads=(UDP,), loss={"tinc": 12.0}).results())
    matrix = next(one for one in across_tables.matrices(lossy) if one.metric.name == "loss")
    assert heat.shade(matrix.rows["tinc"][0].cell) == -1.0
    assert heat.shade(matrix.rows["nebula"][0].cell) == 0.0


def test_names_of_dots_cover_neither_each_other_nor_a_dot() -> None:
    random = Random(5)
    for _ in range(20):
        spots = [(random.uniform(60, 340), random.uniform(20, 220)) for _ in range(10)]
        names = [random.choice(("direct", "wireguard-go", "openvpn-again", "tinc", "easytier")) for _ in spots]
        frame = (30.0, 0.0, 390.0, 240.0)
        placed = points.placed(names, spots, frame)
        for place, box in enumerate(placed):
            assert all(points._overlap(box, other) == 0 for other in placed[:place])
            assert all(not (box[0] < x < box[2] and box[1] < y < box[3]) for x, y in spots)
            assert points._covers(box, frame)


def test_a_scatter_names_the_arms_that_have_no_dot(found: Analysis) -> None:
    (axes,) = points.choices(found)
    assert (axes.across.name, axes.up.name) == ("goodput", "retransmits")
    drawn = str(points.points(found, axes, [(FIRST, FIRST, "pair"), (SECOND, SECOND, "pair")]))
    assert "without a value: nebula (failed)" in drawn
    assert drawn.count("<circle") == 5 + 4


def test_goodput_is_held_against_the_delay_under_load_where_there_is_one() -> None:
    tail = replace(PING.metrics[1], primary=True, feels="tail")
    study = replace(STUDY, workloads=(TCP, replace(PING, metrics=(*PING.metrics[:1], tail, *PING.metrics[2:]))))
    chosen = points.choices(judge(study.results()))
    assert [(axes.up.name, axes.up_of) for axes in chosen] == [("rtt_p99", "ping"), ("retransmits", "tcp")]


def test_a_box_is_tukeys() -> None:
    found = boxes.five_numbers([1, 2, 3, 4, 5, 6, 7, 8, 100])
    assert (found.quarter, found.median, found.three_quarters) == (3, 5, 7)
    assert (found.low, found.high, found.beyond) == (1, 8, (100,))
    assert boxes.five_numbers([4.0]) == boxes.FiveNumbers(1, 4.0, 4.0, 4.0, 4.0, 4.0, ())


def test_box_plots_name_the_arms_without_a_series(found: Analysis) -> None:
    setting = next(one for one in found.settings() if (one.profile, one.workload) == (SECOND, "tcp"))
    drawn = str(boxes.boxes(found, setting, TCP.metrics[0]))
    assert "nebula failed" in drawn
    assert drawn.count('class="quartiles"') == 4
    assert str(boxes.boxes(found, setting, TCP.metrics[1])) == ""


def test_rank_tests_say_what_they_do_not_rank(found: Analysis) -> None:
    table = next(one for one in across_html.section(found).tables if one.title.endswith("(tcp)"))
    (pair,) = (row for row in table.ranks if row[0] == f"direct / openvpn, {SECOND}")
    assert pair[1] == "8 / 7"
    assert "openvpn: 1 failed, not ranked" in pair[-1]
    (nebula,) = (row for row in table.scatter if row[0] == f"nebula, {SECOND}")
    assert nebula[1:] == ("0", "", "", "", "8 failed, failed")


def test_the_export_for_programs_has_all_of_it(found: Analysis) -> None:
    document = json.loads(json_export.render(found))
    (tinc,) = (one for one in document["across_conditions"] if (one["arm"], one["metric"]) == ("tinc", "goodput"))
    assert tinc["setting"]["profile"] == SECOND
    assert tinc["over_direct"]["zeros"] == [1, 0]
    assert document["across_workloads"] == []
    assert {"u", "p", "q", "delta", "least", "differs"} <= set(document["rank_tests"][0])
    assert {"standard_deviation", "coefficient_of_variation"} <= set(document["scatter"][0])


def test_workloads_of_one_metric_have_a_table_of_their_own() -> None:
    ring = replace(TCP, name="ring", title="TCP around a ring")
    analysis = judge(Study(arms=("direct", "direct-again", "tinc"), workloads=(TCP, ring)).results())
    for said in (html.render(analysis), markdown.render(analysis)):
        assert "ring over tcp" in said
    (shares,) = across_tables.workload_shares(analysis)
    assert re.match(r"is (99|100|101|98|102)", shares.rows["tinc"][0]), "nothing is kept of another workload"
