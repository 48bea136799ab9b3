"""What a study's design leaves out is not missing: nothing waits for it, nothing is asked of it, and tables say so."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from tunnelmark.analyse import block_power, judge
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.analyse.stopping import widths
from tunnelmark.plan.design import ALL, CellPattern, Design
from tunnelmark.plan.enough import Enough
from tunnelmark.record.results import Results
from tunnelmark.report import html, json_export, markdown, terminal
from tunnelmark.report.methods import methods
from unit.builders import PING, TCP, Study

LEFT_OUT = Design((CellPattern(arms=("nebula",), workloads=("tcp",)),))
TCP_SETTING, PING_SETTING = Scenario("gigabit", "pair", "tcp"), Scenario("gigabit", "pair", "ping")


def results(design: Design = LEFT_OUT) -> Results:
    whole = Study(workloads=(PING, TCP), blocks=6, tcp={"tinc": 0.5, "nebula": 0.4}).results()
    rows = [row for row in whole.trials if design.has((row.arm, row.profile, row.topology, row.workload))]
    plan = replace(whole.plan, design=design, trials=tuple(row.trial for row in rows))
    return replace(whole, plan=plan, trials=tuple(rows))


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return judge(results())


def test_its_cells_say_so_and_no_trial_is_missing(analysis: Analysis):
    assert analysis.cell("nebula", TCP_SETTING, "goodput").verdict == "left out"
    assert analysis.cell("nebula", PING_SETTING, PING.metrics[0].name).verdict != "left out"
    assert analysis.missing == ()


def test_it_is_compared_with_nothing_and_takes_no_chance_of_error_from_others(analysis: Analysis):
    asked = {(pair.arm, pair.against) for pair in analysis.pairs if pair.setting == TCP_SETTING}
    assert not any("nebula" in pair for pair in asked)
    whole = block_power.questions(results(ALL).plan, "direct")
    assert block_power.questions(analysis.results.plan, "direct") < whole
    assert {
        one.arm for one in block_power.stated(analysis.results.plan, "direct", 0.05) if one.setting == TCP_SETTING
    } == {
        "wireguard-go",
        "tinc",
        "openvpn",
        "yggdrasil",
    }


def test_a_block_is_whole_without_it(analysis: Analysis):
    assert analysis.whole == {PING_SETTING: 6, TCP_SETTING: 6}
    assert judge(results(ALL)).whole == {PING_SETTING: 6, TCP_SETTING: 6}


def test_no_block_is_added_for_it(analysis: Analysis):
    waited = {(one.arm, one.setting) for one in widths(analysis, Enough(3, 40, precision=0.05))}
    assert ("tinc", TCP_SETTING) in waited
    assert ("nebula", TCP_SETTING) not in waited


def test_a_setting_without_a_cell_is_no_setting():
    only_ping = judge(results(Design(part=CellPattern(workloads=("ping",)))))
    assert only_ping.settings() == (PING_SETTING,)


def test_every_form_of_the_report_can_be_made_and_the_methods_say_what_is_left_out(analysis: Analysis):
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(terminal.render(analysis))
    for text in (captured.get(), markdown.render(analysis), html.render(analysis)):
        assert "left out" in text
        assert "not run yet" not in text
    assert any("leaves out nebula · tcp" in paragraph.text for paragraph in methods(analysis))
    cells = json.loads(json_export.render(analysis))
    assert cells["blocks"] == 6
