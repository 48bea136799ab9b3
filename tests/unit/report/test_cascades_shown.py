"""What results and reports say of arms that are cascades."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from tunnelmark import registry
from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.model import Plan
from tunnelmark.record import describe
from tunnelmark.report import html, json_export, markdown, terminal
from unit.builders import Study

KINDS = {"tinc": "nested", "nebula": "series"}
SAID = "Cascades in series (a tunnel on each link): nebula; nested (each tunnel inside the one before): tinc."


def analysis(**kinds: str) -> Analysis:
    results = Study(arms=("direct", "direct-again", "tinc", "nebula", "openvpn")).results()
    arms = tuple(replace(arm, cascade=kinds.get(arm.name, "")) for arm in results.plan.arms)
    return judge(replace(results, plan=replace(results.plan, arms=arms)))


def on_a_terminal(found: Analysis) -> str:
    stream = StringIO()
    Console(file=stream, width=200).print(terminal.render(found))
    return stream.getvalue()


def test_each_report_says_which_arms_are_one():
    found = analysis(**KINDS)
    assert SAID in on_a_terminal(found)
    assert "nested (each tunnel inside the one before): tinc" in markdown.render(found)
    assert json.loads(json_export.render(found))["cascades"] == KINDS
    page = html.render(found)
    assert "a cascade, nested" in page
    assert "a cascade, series" in page


def test_without_one_nothing_is_said():
    found = analysis()
    for text in (on_a_terminal(found), markdown.render(found), html.render(found)):
        assert "ascade" not in text
    assert json.loads(json_export.render(found))["cascades"] == {}


def test_results_keep_it_with_the_arm():
    study = load_study("cascade", Files((PACKAGED,)), registry.catalogue())
    info = describe.describe(Plan(study, ()), registry.vpns(), registry.workloads())
    kept = {arm.name: arm.cascade for arm in info.arms}
    assert kept["wireguard-go"] == kept["direct"] == ""
    assert kept["openvpn-series"] == "series"
    assert kept["wireguard-go-nested"] == "nested"
