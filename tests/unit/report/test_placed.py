"""The line above the tables that says which cores the nodes had, and the cautions where cores were shared or too few."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.host.placement import Whole, place
from tunnelmark.report import html, markdown, overview, placed
from tunnelmark.report.cautions import cautions
from unit.builders import Study


def report_of(nodes: str, machine: list[Whole], each: int = 1):
    topology = Study().results().plan.topologies[0].name
    found = {topology: place(nodes, machine, each=each).plain()}
    return judge(replace(Study(), environment={"lab": {"placement": found}}).results())


@pytest.mark.parametrize(
    ("nodes", "machine", "said"),
    [
        (
            "ab",
            [(0,), (1,)],
            "Cores per node: 1; the links are on core 1, together with b, whose CPU figures include what the kernel does for them.",
        ),
        (
            "abc",
            [(0,), (1,)],
            "Cores per node: 1; a and b share core 0, the links are on core 1, together with c, whose CPU figures include what the kernel does for them.",
        ),
        ("ab", [(0,), (1,), (2,)], "Cores per node: 1; links and command have 1 core of their own."),
        ("ab", [(core,) for core in range(8)], "Cores per node: 1; links and command have 6 cores of their own."),
    ],
)
def test_cores_per_node_stand_above_the_tables(nodes: str, machine: list[Whole], said: str):
    analysis = report_of(nodes, machine)
    assert placed.head(analysis) == said
    assert said in markdown.render(analysis) and said in html.render(analysis)
    assert placed.cautions(analysis) == (
        (
            "a and b of pair share core 0: what one of them does takes time from the other, as on one machine and on no two.",
        )
        if "share core" in said
        else ()
    )


@pytest.mark.parametrize(
    ("cores", "each", "said"),
    [
        (
            2,
            1,
            "Each node of the topology pair had one core, so what a VPN does with several is not shown; the core of b carried the links, too.",
        ),
        (3, 1, "Each node of the topology pair had one core, so what a VPN does with several is not shown."),
        (8, 2, ""),
    ],
)
def test_what_one_core_a_node_does_not_show_is_said(cores: int, each: int, said: str):
    analysis = report_of("ab", [(core,) for core in range(cores)], each=each)
    assert placed.single_cores(analysis) == ((said,) if said else ())
    assert not said or said in overview.not_shown(analysis)


def test_a_path_whose_ends_share_a_core_is_said_first():
    (said,) = placed.cautions(report_of("ab", [(0,)]))
    assert "a and b" in said and "share a core" in said
    assert said in cautions(report_of("ab", [(0,)]))


def test_fewer_cores_than_were_asked_for_are_told():
    (said,) = placed.cautions(report_of("ab", [(core,) for core in range(4)], each=2))
    assert "have 1 core each and not the 2 that were asked for" in said


@pytest.mark.parametrize("lab", [None, {}, {"placement": None}, {"placement": {"elsewhere": {}}}])
def test_results_written_before_say_nothing(lab: object):
    analysis = judge(replace(Study(), environment={"lab": lab}).results())
    assert (placed.head(analysis), placed.cautions(analysis)) == ("", ())
