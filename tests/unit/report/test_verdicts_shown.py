"""Every report shows the sign and word of each verdict, zeros, what fails too often, twins, and what the study could find."""

from __future__ import annotations

import json as stdlib_json
from dataclasses import replace
from math import log

import pytest
from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Verdict
from tunnelmark.record.results import SampleRow
from tunnelmark.report import formatting, html, json_export, markdown, terminal
from unit.builders import PING, TCP, Study

ADDED = replace(PING, metrics=tuple(replace(m, compare="difference", feels="delay") for m in PING.metrics))
STUDY = Study(
    arms=("direct", "direct-again", "tinc", "nebula", "openvpn", "openvpn-again", "yggdrasil"),
    same_as={"direct-again": "direct", "openvpn-again": "openvpn"},
    vpns={"openvpn-again": "openvpn"},
    workloads=(ADDED, TCP),
    tcp={"nebula": 0.97, "openvpn": 0.5, "openvpn-again": 0.5, "yggdrasil": 1.2},
    rtt={"openvpn": 4.0, "openvpn-again": 4.0},
    fails=(("nebula", "tcp", 3),),
    noise=0.02,
    block_noise=0.0,
    blocks=8,
)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    results = STUDY.results()
    trials = tuple(
        replace(row, samples=(SampleRow("goodput", "bit/s", 0.0),))
        if (row.arm, row.workload) == ("tinc", "tcp") and row.block in (2, 5, 7)
        else row
        for row in results.trials
    )
    return judge(replace(results, trials=trials))


def on_terminal(analysis: Analysis) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(terminal.render(analysis, ["power"]))
    return captured.get()


def test_signs_zeros_twins_and_power_stand_in_every_report_for_people(analysis: Analysis):
    for text in (on_terminal(analysis), markdown.render(analysis), html.render(analysis)):
        plain = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ").replace("\\", "").split())
        for said in (
            "▲ ",
            "▼ ",
            "= ",
            "? ",
            "0 in 3 of 8 blocks",
            "unreliable",
            "openvpn-again (A/A)",
            "could find",
            "+6",
        ):
            assert said in plain, said
        assert "equal within a margin that was stated before (100 µs, 5 %)" in plain
        assert "≈" not in plain


def test_words_stand_beside_signs_where_there_is_room(analysis: Analysis):
    text = markdown.render(analysis)
    for word in ("better", "worse", "equal", "undecided"):
        assert f"<sub>{word}" in text or f", {word}" in text, word


def test_a_delay_is_told_as_what_is_added(analysis: Analysis):
    setting = analysis.settings()[0]
    cell = analysis.cell("openvpn", setting, "rtt_p50")
    assert formatting.judged(cell).startswith("▼ +6") and "µs" in formatting.judged(cell)


@pytest.mark.parametrize(
    ("verdict", "low", "high", "sign"),
    [
        ("undecided", 0.9, 1.1, "?"),
        ("undecided", 0.01, 0.4, "?▼"),
        ("undecided", 1.2, 3.0, "?▲"),
        ("too few blocks", 0.01, 0.4, "?"),
        ("worse", 0.01, 0.4, "▼"),
        ("equal", 0.97, 0.99, "="),
    ],
)
def test_a_large_effect_that_the_study_does_not_show_says_in_which_direction(
    analysis: Analysis, verdict: Verdict, low: float, high: float, sign: str
):
    cell = analysis.cell("openvpn", analysis.settings()[1], "goodput")
    pair = cell.against_direct
    assert pair is not None and pair.interval is not None
    found = replace(pair, interval=replace(pair.interval, low=low, high=high), order=log((low * high) ** 0.5))
    assert formatting.sign(cell.metric, verdict, found) == sign
    assert formatting.judged(replace(cell, verdict=verdict, against_direct=found)).startswith(f"{sign} ")
    assert formatting.sign(cell.metric, "undecided", None) == "?"


def test_json_has_sign_margin_zeros_and_what_could_be_found(analysis: Analysis):
    document = stdlib_json.loads(json_export.render(analysis))
    cells = {(cell["arm"], cell["metric"]): cell for cell in document["cells"]}
    tinc, openvpn = cells["tinc", "goodput"], cells["openvpn", "goodput"]
    assert (tinc["sign"], tinc["verdict"], tinc["zeros"], tinc["equal_within"]) == ("?", "undecided", 3, 1.05)
    assert tinc["against_direct"]["interval"]["method"] == "sign"
    assert openvpn["against_direct"]["detectable"] > 1.01
    low, high = openvpn["against_direct"]["left_out"]
    assert low <= openvpn["against_direct"]["estimate"] <= high
    assert cells["openvpn-again", "goodput"]["twin_of"] == "openvpn"
    nebula = cells["nebula", "goodput"]
    assert nebula["unreliable"] and nebula["bounds"]["missing"] == 1
    assert document["void_rates"] == []
