"""Every exporter copes with every kind of run, and says what it must."""

from __future__ import annotations

import json as stdlib_json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.report import detectable_differences, html, json_export, markdown, side_by_side, terminal
from tunnelmark.report.cautions import cautions
from tunnelmark.report.findings import findings
from unit.builders import ARMS, PROFILE, TCP, Study

LOST = Study(tcp={"nebula": 0.6, "tinc": 0.3, "openvpn": 0.3}, loss={"openvpn": 12.0}, noise=0.01)
GUEST = {"kernel": "6.1.0-56-amd64", "qemu": "7.2", "clock": "1 ns an instruction", "emulated": True}
KINDS = {
    "whole": LOST,
    "emulated": replace(LOST, environment={"guest": GUEST}),
    "in a virtual machine": replace(LOST, environment={"guest": {**GUEST, "emulated": False}}),
    "unfinished": replace(LOST, stop_after=40),
    "not begun": replace(LOST, stop_after=0),
    "one block": replace(LOST, blocks=1),
    "an arm failed": replace(LOST, fails=tuple(("tinc", "tcp", block) for block in range(1, 6))),
    "direct failed": replace(LOST, fails=tuple(("direct", "tcp", block) for block in range(1, 6))),
    "A/A failed": replace(LOST, tcp={"direct-again": 0.8}),
    "no direct": replace(LOST, arms=ARMS[2:], same_as={}),
    "only direct": replace(LOST, arms=ARMS[:2]),
    "two profiles": replace(
        LOST, profiles=(PROFILE, replace(PROFILE, name="slow", title="slow", rate=None, queue=None))
    ),
    "with series": replace(LOST, series=True),
}


def on_terminal(study: Study, width: int = 100) -> str:
    console = Console(width=width, record=True, file=None, quiet=False, force_terminal=False, color_system=None)
    with console.capture() as captured:
        console.print(terminal.render(judge(study.results())))
    return captured.get()


@pytest.mark.parametrize("kind", KINDS)
def test_every_exporter_copes_with_every_kind_of_run(kind):
    analysis = judge(KINDS[kind].results())
    for exporter in (markdown, html, json_export):
        text = exporter.render(analysis)
        assert KINDS[kind].results().plan.title in text
    assert "direct" in on_terminal(KINDS[kind])


def test_the_same_results_give_the_same_bytes():
    for exporter in (markdown, html, json_export):
        assert exporter.render(judge(LOST.results())) == exporter.render(judge(LOST.results()))


def said(study: Study, metric: str) -> str:
    found = next(found for found in findings(judge(study.results())) if found.metric.name == metric)
    return found.text.replace("\N{NO-BREAK SPACE}", " ")


def test_findings_say_how_much_is_kept_and_what_is_equal():
    text = said(LOST, "goodput")
    assert re.search(r"nebula keeps (59|60|61)(\.\d)? % \[[\d.]+–[\d.]+\] of the bare link's", text)
    assert re.search("(tinc and openvpn|openvpn and tinc) are equal within 5 %", text)
    assert "wireguard-go and yggdrasil are equal to the bare link within 5 %" in text


def test_findings_name_what_is_equal_among_arms_that_are_not_shown_to_differ():
    study = replace(LOST, tcp={"nebula": 0.6, "tinc": 0.6, "openvpn": 0.6}, arms=("direct", "direct-again", "nebula", "tinc", "openvpn"), same_as={"direct-again": "direct"})  # fmt: skip
    analysis = judge(study.results())
    alike = {("tinc", "openvpn"), ("openvpn", "tinc")}
    pairs = tuple(replace(pair, differs=False, equal=(pair.arm, pair.against) in alike) for pair in analysis.pairs)
    text = next(found.text for found in findings(replace(analysis, pairs=pairs)) if found.metric.name == "goodput")
    assert re.search(
        "Of .*, (tinc and openvpn|openvpn and tinc) are equal within 5\N{NO-BREAK SPACE}%; the other pairs are undecided",
        text,
    )


def test_findings_call_nothing_equal_that_is_only_undecided():
    wide = replace(LOST, tcp={"nebula": 0.8}, noise=0.5, arms=("direct", "direct-again", "nebula"))
    text = said(wide, "goodput")
    assert "Whether nebula differs from the bare link is undecided" in text
    assert "equal" not in text
    assert "?" in on_terminal(wide)
    assert "? undecided: neither is shown" in " ".join(on_terminal(wide).split())


def test_findings_name_the_offered_load_as_the_limit():
    assert "deliver at least 99 % of what is offered, so the offered load" in said(LOST, "delivered")


def test_findings_call_every_arm_equal_only_where_each_was_judged():
    alike = replace(LOST, tcp={}, blocks=8)
    assert "Every arm is equal to the bare link within 5 %" in said(alike, "goodput")
    failed = replace(alike, fails=tuple(("tinc", "tcp", block) for block in range(1, 9)))
    text = said(failed, "goodput")
    assert "Every arm" not in text
    assert "are equal to the bare link within 5 %" in text and "tinc: failed in every attempt" in text


def test_findings_on_the_offered_load_are_about_the_median_block():
    assert "In the median block every arm delivers at least 99 %" in said(replace(LOST, loss={}), "delivered")


def test_the_signs_are_explained_as_those_of_a_mean_beside_whose_verdict_a_median_may_stand():
    for text in (" ".join(on_terminal(LOST).split()), markdown.render(judge(LOST.results()))):
        assert "by two one-sided tests, which are an interval of 92" in text
        assert "Where a median is given, the interval that is printed is the median's" in text


def test_findings_of_a_study_that_must_not_be_ranked_rank_nothing():
    text = said(KINDS["A/A failed"], "goodput")
    assert "not to be ranked" in text
    assert "keeps" not in text


@pytest.mark.parametrize(
    ("kind", "caution"),
    [
        ("A/A failed", "Do not rank"),
        ("unfinished", "40 of 105 trials have run"),
        ("one block", "a single block"),
        ("an arm failed", "5 attempts of tinc failed"),
        ("no direct", "no A/A pair"),
        ("emulated", "Emulated: measured with Linux 6.1.0-56-amd64"),
        ("emulated", "never how fast"),
        ("in a virtual machine", "Virtual: measured with Linux 6.1.0-56-amd64"),
    ],
)
def test_what_a_reader_must_know_first_stands_first_everywhere(kind, caution):
    analysis = judge(KINDS[kind].results())
    assert any(caution in text for text in cautions(analysis))
    page = html.render(analysis)
    assert page.index(caution) < page.index('id="found"')
    assert caution in on_terminal(KINDS[kind], width=200)
    assert caution.replace("(", "(") in markdown.render(analysis)


def test_a_table_that_does_not_fit_is_split_and_no_word_is_broken():
    text = on_terminal(KINDS["whole"], width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    titles = {metric.title for use in KINDS["whole"].workloads for metric in use.metrics if metric.primary}
    assert {word for title in titles for word in title.split() if word not in text} == set()
    assert len(re.findall(r"^arm ", text, re.MULTILINE)) > 1
    assert len(re.findall(r"^arm ", on_terminal(KINDS["whole"], width=160), re.MULTILINE)) == 1


def test_an_arm_without_any_result_is_told_once_and_not_beside_every_metric():
    uses, blocks = ("tcp", "ping", "udp"), range(1, 6)
    analysis = judge(Study(fails=tuple(("tinc", use, block) for use in uses for block in blocks)).results())
    assert any("tinc (" in text and "has no result at all" in text for text in cautions(analysis))
    assert not any("tinc" in finding.text for finding in findings(analysis))


def test_two_workloads_with_one_metric_are_told_apart_in_every_report():
    study = replace(LOST, workloads=(TCP, replace(TCP, name="tcp-again")), blocks=8)
    analysis = judge(study.results())
    names = ["TCP goodput (tcp)", "TCP goodput (tcp-again)"]
    page = html.render(analysis)
    for name in names:
        assert f"<dt>{name}</dt>" in page
        assert f'<th scope="col">{name}</th>' in page
        assert f"<h3>{name}</h3>" in page
    heads = [line for line in markdown.render(analysis).splitlines() if line.startswith("| arm | ok |")]
    assert heads == ["| arm | ok | first packet | TCP goodput (tcp) | TCP goodput (tcp-again) |"]
    assert all(f"**{name}**: " in markdown.render(analysis) for name in names)
    assert all(name in " ".join(on_terminal(study, 200).split()) for name in names)
    assert {row.metric for row in detectable_differences.firm(analysis)} == set(names)
    assert [said.split(": ")[0] for said in detectable_differences.sentences(analysis)[1:]] == names
    assert "**TCP goodput**: " in markdown.render(judge(LOST.results()))


def test_results_beside_each_other_have_a_column_each_and_no_verdict_across():
    columns = {"Linux 6.1": judge(LOST.results()), "Linux 6.12": judge(replace(LOST, tcp={"nebula": 0.9}).results())}
    console = Console(width=160, record=True, force_terminal=False, color_system=None)
    with console.capture() as captured:
        console.print(side_by_side.render(columns))
    text = captured.get().replace("\N{NO-BREAK SPACE}", " ")
    row = next(line for line in text.splitlines() if "nebula" in line and "Mbit/s" in line)
    assert "Linux 6.1 " in text and "Linux 6.12" in text
    assert len(re.findall(r"Mbit/s +\d+(?:\.\d)? % \[", row)) == 2
    assert "worse" not in text


def test_the_terminal_table_holds_in_80_columns():
    text = on_terminal(LOST, width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text


def test_the_terminal_shows_value_effect_signs_failure_and_gates():
    text = on_terminal(KINDS["an arm failed"], width=140).replace("\N{NO-BREAK SPACE}", " ")
    assert "Mbit/s" in text
    assert re.search(r"= \d+(\.\d+)? %", text)
    assert "▼ " in text
    assert "failed" in text
    assert "10/15" in text
    assert "✗ not met: every trial succeeded" in text


def test_markdown_tables_are_sound_and_logs_are_not_markup():
    text = markdown.render(judge(KINDS["an arm failed"].results()))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    blocks: dict[int, set[int]] = {}
    for number, line in enumerate(rows):
        blocks.setdefault(line.count("|"), set()).add(number)
    assert all(len(lines) >= 3 for lines in blocks.values())
    assert "<error>" in text
    assert all(line.startswith("      ") for line in text.splitlines() if "<error>" in line)


def test_json_holds_every_judgement():
    document = stdlib_json.loads(json_export.render(judge(LOST.results())))
    assert document["schema"] == 3
    assert document["same"]["standing"] == "agrees"
    cell = next(c for c in document["cells"] if (c["arm"], c["metric"]) == ("nebula", "goodput"))
    assert (cell["verdict"], cell["sign"]) == ("worse", "▼")
    assert cell["rank"] == [3, 3]
    assert cell["against_direct"]["interval"]["low"] < 0.62
    assert [gate["passed"] for gate in document["gates"]] == [True, True, False]
