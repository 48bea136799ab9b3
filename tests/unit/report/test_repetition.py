"""A report says which publication a run repeats, what came of its claims, and what the run does otherwise, from its own record."""

from __future__ import annotations

import json as stdlib_json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.claims import reading
from tunnelmark.claims.verdicts import of_run
from tunnelmark.report import claim_tables, html, markdown, repetition, terminal
from unit import repeated
from unit.report.test_html import Page

MACHINE = {"cpu": "a processor", "cores": 2, "memory_bytes": 8 << 30, "kernel": "6.1.0", "virtualisation": "none"}
ENVIRONMENT = {
    "machine": MACHINE,
    "vpns": {"openvpn": {"version": "2.6.14"}, "wireguard-go": {"version": "0.0.20230223"}},
    "tools": {"iperf3": {"version": "3.12"}},
    "lab": {"shaper": {"gigabit": "tbf rate 1 Gbit/s", "cascade-internet": "tunnelmark-emulator, model netem, unit wire: delay 30 ms"}},
}  # fmt: skip
HOSTS = {"a": {"machine": MACHINE}, "b": {"machine": MACHINE | {"kernel": "6.2.0"}}}


def run(study: str = "cascade", environment: Mapping[str, Any] = ENVIRONMENT, **given: Any) -> Analysis:
    return judge(repeated.results(study, environment=environment, **given))


@cache
def usual() -> Analysis:
    return run()


def shown(analysis: Analysis) -> repetition.Repetition:
    verdicts = of_run(analysis)
    assert verdicts is not None
    return repetition.repetition(analysis, verdicts)


def rows(analysis: Analysis) -> dict[str, tuple[str, str]]:
    return {name: (there, here) for name, there, here in shown(analysis).rows}


def on_terminal(analysis: Analysis) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(terminal.render(analysis))
    return captured.get()


def test_every_report_names_the_publication_its_verdicts_and_both_ways_of_measuring():
    analysis = usual()
    for text in (html.render(analysis), markdown.render(analysis), on_terminal(analysis)):
        plain = " ".join(text.replace("\\", "").split())
        assert (
            "S. Pahl, F. Adamsky, D. Kaiser and T. Engel, 2021: Evaluating Cascading-VPN Performance (poster)" in plain
        )
        assert "1.0.20200827, in the kernel" in plain and "wireguard-go 0.0.20230223" in plain
        assert "10 minutes" in plain and "5 s, after 4 s that are left out" in plain
        assert "WireGuard is faster than OpenVPN in cascades" in plain and "its claims here" in plain
    page = html.render(analysis)
    for text in (page, markdown.render(analysis)):  # on a terminal a column is too narrow for it
        plain = " ".join(text.replace("\\", "").split())
        assert "WireGuard is faster than OpenVPN in cascades (a preliminary result)." in plain
    assert "Evaluating Cascading-VPN Performance</a>. 48 claims: " in page.partition("<main>")[0]
    assert page.index('id="repeats"') < page.index('id="answer"')


def test_what_a_run_recorded_of_itself_is_set_against_the_source():
    found = rows(usual())
    assert "bare link" not in found, "its source prints no rate of it"
    there, here = rows(run("mesh-vpns", smoke=True))["bare link"]
    assert there == "Baseline 934, Low 333, Medium 29.6, High 4.25 Mbit/s"
    assert re.fullmatch(r"Baseline [\d.e+]+, Low [\d.e+]+, Medium [\d.e+]+, High [\d.e+]+ Mbit/s", here)
    assert (
        found["hosts"][1]
        == "network namespaces of one machine: a processor, 2 cores, 8 GiB of memory; 1 core at most for a node"
    )
    assert found["kernel"] == ("Linux 5.10.7 (Manjaro)", "Linux 6.1.0")
    assert (
        found["links"][1]
        == "tunnelmark's emulator and a shaper of the kernel on a middle node; decides for each packet on the wire"
    )
    assert found["OpenVPN"] == ("2.5.0", "openvpn 2.6.14")
    assert found["iperf3"] == ("3.9", "3.12")
    assert found["repeats"] == ("not stated", "3 blocks, each with one trial of each in a new order")


def test_names_that_are_not_the_source_s_are_set_against_its_names():
    found = rows(run("mesh-vpns", smoke=True))
    there, here = (text.split("; ") for text in found["names of arms"])
    named = dict(zip(there, here, strict=True))
    assert (named["Internal"], named["Headscale"]) == ("direct", "tailscale")
    assert "Tinc" not in named, "it has the same name here"
    there, here = (text.split("; ") for text in found["names of conditions"])
    assert dict(zip(there, here, strict=True))["Low"] == "thesis-low+thesis-round-trip+gso+gigabit"
    hops = dict(zip(*(text.split("; ") for text in rows(usual())["names of conditions"]), strict=True))
    assert hops["one hop, local"] == "gigabit chain-1"


def test_programs_of_another_version_than_their_vpn_are_named():
    programs = {"tailscaled": {"version": "1.98.0"}, "headscale": {"version": "0.26.1"}, "sh": {}}
    vpns = {"vpns": {"tailscale": {"version": "1.98.0", "programs": programs}}}
    ran = rows(run("edge-cloud", blocks=1, environment={**ENVIRONMENT, **vpns}))
    assert "tailscale 1.98.0 with headscale 0.26.1" in [here for _, here in ran.values()]


def test_each_build_of_a_vpn_has_its_own_version():
    pinned = {"wireguard-go": {"version": "0.0.0-20220920152132-bb719d3a6e2c"}}
    vpns = {
        "wireguard-go": {"version": "0.0.20230223"},
        "wireguard-go 2022": {"version": "0.0.20220316", "programs": pinned},
        "wireguard-go 2023": {"version": "0.0.20230224"},
    }
    ran = rows(run("wireguard-go-offloads", blocks=1, environment={**ENVIRONMENT, "vpns": vpns}))
    assert ran["before and before, MTU 8921"][1] == "wireguard-go 0.0.0-20220920152132-bb719d3a6e2c"
    assert ran["after"][1] == "wireguard-go 0.0.20230224"


def test_another_length_and_more_blocks_are_said_without_a_change_of_the_source_s_file():
    found = rows(run(full=True, blocks=4))
    assert found["length of tcp"] == ("10 minutes", "9 min 56 s, after 4 s that are left out")
    assert found["repeats"][1].startswith("4 blocks")


def test_a_run_that_was_stopped_says_how_much_of_it_there_is():
    results = usual().results
    half = [row for row in results.trials if row.block == 1]
    found = rows(judge(replace(results, trials=tuple(half[:-1]))))
    assert found["repeats"][1] == f"1 of 3 blocks, each with one trial of each in a new order; {len(half) - 1} of {3 * len(half)} trials have a result"  # fmt: skip


def test_blocks_that_were_added_for_void_trials_are_counted_apart():
    results = usual().results
    first = next(row for row in results.trials if row.block == 3)
    void = replace(first, outcome="void", samples=())
    added = replace(first, block=4, trial=first.trial + "-of-4")
    found = rows(judge(replace(results, trials=(*(row for row in results.trials if row is not first), void, added))))
    many = len({row.trial for row in results.trials}) + 1
    assert found["repeats"][1] == (
        f"3 blocks and 1 added for void trials, each with one trial of each in a new order; {many - 1} of {many} trials have a result"
    )


def test_a_vpn_without_any_result_has_no_version_here():
    ran = rows(run("cascade", fails=frozenset({"openvpn", "openvpn-series"})))
    assert [here for _, here in ran.values() if here == "no result"]


def test_what_was_not_run_is_named():
    further = "further parts of it, for which there are studies of their own: cascade-kernel, cascade-one-way and cascade-path"
    assert rows(usual())["not run"][1] == f"OpenVPN, AES-256-CBC without AES-NI; {further}"
    found = rows(run(fails=frozenset({"openvpn-series"})))
    assert "openvpn-series (in the plan, but without a result)" in found["not run"][1]
    mesh = rows(run("mesh-vpns", blocks=1))
    assert mesh["length of nix"][1] == "not in this run"
    assert "length of reboot" not in mesh, "only a study of its own has it, which is named below"
    assert "studies of their own: mesh-vpns-tuned, mesh-vpns-reboot" in mesh["not run"][1]


def test_a_study_that_repeats_a_part_says_how_many_of_the_claims():
    analysis = run("mesh-vpns-reboot", blocks=1)
    found = shown(analysis)
    verdicts = of_run(analysis)
    assert verdicts is not None
    assert (
        found.part
        == f"This study repeats a part of it: {len(verdicts.judged)} of its {len(verdicts.claims.claims)} claims."
    )
    assert set(rows(analysis)) >= {"length of reboot"} and "length of tcp" not in rows(analysis)


def test_claims_about_features_are_counted_apart_from_those_about_figures():
    verdicts = of_run(run("edge-cloud", blocks=1))
    assert verdicts is not None
    features = sum(each.claim.feature is not None for each in verdicts.judged)
    summary = claim_tables.summary(verdicts.judged)
    assert f"of {len(verdicts.judged) - features} about figures, " in summary
    assert f"; of {features} about features, which documents show and no run measures, " in summary
    assert " about " not in claim_tables.summary(shown_verdicts(usual()))


def shown_verdicts(analysis: Analysis):
    verdicts = of_run(analysis)
    assert verdicts is not None
    return verdicts.judged


def said(analysis: Analysis) -> str:
    return " ".join(each for _, sentences in shown(analysis).otherwise for _, each in sentences)


def test_only_the_differences_of_this_run_are_said():
    assert "UDP is sent at one rate to all" in said(usual())
    without = usual().results
    plan = replace(without.plan, workloads=tuple(use for use in without.plan.workloads if use.name != "udp"))
    trials = tuple(row for row in without.trials if row.workload != "udp")
    assert "UDP is sent at one rate to all" not in said(judge(replace(without, plan=plan, trials=trials)))


def test_a_run_over_hosts_does_not_speak_of_one_machine():
    assert "this machine's cores" in said(usual())
    over = run(environment=ENVIRONMENT | {"hosts": HOSTS})
    assert "this machine's cores" not in said(over)
    assert (
        rows(over)["hosts"][1] == "hosts of their own, joined by VXLANs: a and b: a processor, 2 cores, 8 GiB of memory"
    )
    assert rows(over)["kernel"][1] == "Linux 6.1.0 and Linux 6.2.0"


@pytest.mark.parametrize("name", reading.names())
def test_a_record_may_lack_anything(name: str):
    study = reading.find(name).study
    page = html.render(run(study, environment={}, blocks=1, smoke=True))
    assert "not recorded" in page
    assert repetition.NOT_RECORDED in rows(run(study, environment={}, blocks=1))["hosts"][1]


def test_each_verdict_leads_to_its_claims_and_each_claim_has_an_address():
    analysis = usual()
    text = html.render(analysis)
    page, verdicts = Page(text), of_run(analysis)
    assert verdicts is not None
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids) | {"explore"}
    assert {f"#claims-{outcome.replace(' ', '-')}" for outcome, _ in shown(analysis).counts} <= set(page.links)
    assert {f"claim-{each.claim.id}" for each in verdicts.judged} <= set(page.ids)
    assert sum(count for _, count in shown(analysis).counts) == len(verdicts.judged)


def test_json_has_the_source_and_the_differences():
    verdicts = of_run(usual())
    assert verdicts is not None
    found = stdlib_json.loads(stdlib_json.dumps(claim_tables.as_data(verdicts.claims, verdicts.judged)))
    assert (found["source"]["year"], found["there"]["tools"]) == (2021, {"iperf3": "3.9"})
    assert found["differences"][0]["topic"] == "hosts"
