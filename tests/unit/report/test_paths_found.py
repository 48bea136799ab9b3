"""A grid of routers: which path each arm found, in every report, and that finding none is a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from tunnelmark.analyse import judge
from tunnelmark.analyse.gates import gates
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import (
    ArmInfo,
    MetricInfo,
    PlanInfo,
    Results,
    SampleRow,
    Session,
    TopologyInfo,
    TrialRow,
    WorkloadInfo,
)
from tunnelmark.report import html, markdown, paths_found, terminal
from tunnelmark.report.cautions import cautions
from unit.builders import PROFILE

METRICS = (
    MetricInfo("path_direct", "%", "bytes that came from the other end itself", "higher", "difference", True),
    MetricInfo("path_tcp", "%", "bytes over TCP", "lower", "difference", False, watcher="path"),
    MetricInfo("path_direct_after", "s", "until all went directly", "lower", "difference", False, watcher="path"),
)
WORKLOAD = WorkloadInfo("traversal", "traversal", "which path", {}, METRICS, 20.0, 0.0)
KINDS = ("symmetric", "full-cone", "full-cone+symmetric")
DIRECT = {"path_direct": 98.0, "path_tcp": 0.0, "path_direct_after": 1.5}
LATER = {"path_direct": 60.0, "path_tcp": 0.0, "path_direct_after": 8.2}
RELAYED = {"path_direct": 0.0, "path_tcp": 0.0}
OVER_TCP = {"path_direct": 0.0, "path_tcp": 100.0}
NOTHING: Mapping[str, float] = {}


def analysed(
    found: Mapping[tuple[str, str], Mapping[str, float]],
    blocks: Sequence[Mapping[str, float]] = (DIRECT,),
    reason: str = "not-ready",
) -> Analysis:
    """A study of direct and two VPNs; `found` by kinds and arm, else what `blocks` has for each block; failed for that `reason` where it is empty."""
    arms = ("direct", "tinc", "nebula", "nebula-again")
    topologies = tuple(
        TopologyInfo(f"behind-nat+{kinds}", f"Two homes: {kinds}", ("a", "s", "b"), {"internet": ("a", "s", "b")})
        for kinds in KINDS
    )
    rows = []
    cells = [(block, usual, t.name, arm) for block, usual in enumerate(blocks, 1) for t in topologies for arm in arms]
    for number, (block, usual, topology, arm) in enumerate(cells):
        values = found.get((topology.partition("+")[2], arm), usual)
        rows.append(
            TrialRow(
                position=number,
                trial=f"{block:03d}.{arm}.gigabit.{topology}.traversal",
                block=block,
                arm=arm,
                profile="gigabit",
                topology=topology,
                workload="traversal",
                link="a>b",
                outcome="ok" if values else "failed",
                started=1_790_000_000.0 + 30 * number,
                phases={"measure": 20.0},
                samples=tuple(SampleRow(name, "", value) for name, value in values.items()),
                reason=None if values else reason,
                message=None if values else "no ping was answered",
            )
        )
    plan = PlanInfo(
        study="traversal",
        title="Paths",
        description="",
        seed=1,
        blocks=len(blocks),
        arms=tuple(
            ArmInfo(a, a.removesuffix("-again"), a, {}, "nebula" if a == "nebula-again" else None) for a in arms
        ),
        profiles=(PROFILE,),
        topologies=topologies,
        workloads=(WORKLOAD,),
        trials=tuple(row.trial for row in rows),
    )
    session = Session(rows[0].started - 1, 30.0 * len(rows))
    return judge(Results(Path("results/grid"), plan, {}, tuple(rows), (session,)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (DIRECT, "direct, 1.50\u00a0s"),
        (LATER, "direct, 8.20\u00a0s"),
        (RELAYED, "relayed"),
        (OVER_TCP, "relayed, TCP"),
        ({"path_direct": 40.0, "path_tcp": 0.0}, "direct and relayed"),
        (NOTHING, "no path"),
    ],
)
def test_each_path_has_its_words_in_every_report(values: Mapping[str, float], words: str) -> None:
    analysis = analysed({("symmetric", "nebula"): values})
    (grid,) = paths_found.grids(analysis)
    assert str(grid.cells[("symmetric",), "nebula"]) == words
    console = Console(width=200, record=True)
    console.print(terminal.render(analysis))
    assert words in console.export_text()
    assert words in markdown.render(analysis)
    assert words in html.render(analysis)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ((DIRECT, LATER, DIRECT), "direct, 1.50\u00a0s"),
        ((DIRECT, RELAYED, RELAYED, RELAYED, RELAYED), "relayed (direct in 1 of 5)"),
        ((DIRECT, DIRECT, DIRECT, DIRECT, RELAYED), "direct and relayed (direct in 4 of 5)"),
        ((DIRECT, DIRECT, NOTHING), "direct, 1.50\u00a0s (2 of 3)"),
        ((DIRECT, OVER_TCP, OVER_TCP, NOTHING), "relayed, TCP (direct in 1 of 3, a path in 3 of 4)"),
    ],
)
def test_a_path_is_direct_where_every_block_was_and_else_it_is_said_how_many(
    blocks: Sequence[Mapping[str, float]], words: str
) -> None:
    analysis = analysed({}, blocks)
    (grid,) = paths_found.grids(analysis)
    assert str(grid.cells[("symmetric",), "nebula"]) == words
    assert words in markdown.render(analysis)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not-ready", "no path"),
        ("missing-part", "–"),
        ("setup-failed", "–"),
        ("daemon-died", "–"),
        ("workload-failed", "–"),
    ],
)
def test_only_an_arm_that_was_never_answered_has_no_path(reason: str, words: str) -> None:
    (grid,) = paths_found.grids(analysed({("symmetric", "nebula"): NOTHING}, reason=reason))
    assert str(grid.cells[("symmetric",), "nebula"]) == words


def test_a_grid_takes_the_place_of_a_table_for_each_topology() -> None:
    page = markdown.render(analysed({}))
    assert page.count("### Paths") == 1
    assert "symmetric × symmetric" in page
    assert "full-cone × symmetric" in page
    assert "### 1 Gbit/s" not in page


def test_no_path_is_a_result_and_nothing_is_ranked() -> None:
    analysis = analysed({("symmetric", "tinc"): NOTHING})
    found = {gate.name: gate for gate in gates(analysis)}
    assert found["A/A agrees"].passed
    assert found["every trial succeeded"].passed
    assert "in 1 no path was found" in found["every trial succeeded"].explanation
    assert not cautions(analysis)
