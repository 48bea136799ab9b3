"""What the generator reaches on the bare link that is not shaped is a ceiling of every cell near it."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis
from tunnelmark.record.results import ProfileInfo, Results
from tunnelmark.report import formatting, markdown
from unit.builders import PING, PROFILE, TCP, UDP, Study

FREE = ProfileInfo("unshaped", "as fast as the machine", "", None, None)
FASTER = replace(PROFILE, name="ten", rate=10_000_000_000)


def scaled(results: Results, by: dict[tuple[str, str], float]) -> Results:
    """The goodput and deliveries of some (profile, arm) multiplied."""
    return replace(
        results,
        trials=tuple(
            replace(
                row,
                samples=tuple(
                    replace(s, value=s.value * by.get((row.profile, row.arm), 1.0)) if s.metric == "goodput" else s
                    for s in row.samples
                ),
            )
            for row in results.trials
        ),
    )


def study(**of_tcp: float) -> Study:
    return Study(
        profiles=(FREE, FASTER),
        workloads=(TCP, PING, UDP),
        noise=0.001,
        block_noise=0.0,
        tcp={name.replace("_", "-"): share for name, share in of_tcp.items()},
    )


def ceilings(analysis: Analysis, profile: str, metric: str = "goodput") -> dict[str, str | None]:
    return {
        cell.arm: cell.ceiling
        for cell in analysis.cells
        if cell.metric.name == metric and cell.setting.profile == profile
    }


def test_arms_near_the_bare_unshaped_link_are_limited_by_the_lab():
    analysis = judge(study(tinc=0.95, nebula=0.85).results())
    found = ceilings(analysis, "unshaped")
    assert found["direct"] == found["tinc"] == "lab"
    assert found["nebula"] is None


def test_each_link_without_a_rate_has_its_own_capacity():
    """As it was, that of the last profile counted for all: a link with cards that split was held against one without."""
    slower = replace(FREE, name="unshaped+no-offloads")
    results = replace(study(tinc=0.55), profiles=(FREE, slower)).results()
    half = scaled(results, {(slower.name, arm.name): 0.5 for arm in results.plan.arms})
    analysis = judge(half)
    assert ceilings(analysis, "unshaped")["tinc"] is None, (
        "half of what direct has there, which is all that it has on the other"
    )
    assert ceilings(analysis, "unshaped")["direct"] == ceilings(analysis, slower.name)["direct"] == "lab"


def test_so_are_those_of_a_shaped_link_that_nobody_fills():
    """600 Mbit/s of a link of 10 Gbit/s: not the link is the limit, but what makes the traffic."""
    analysis = judge(study(nebula=0.5).results())
    found = ceilings(analysis, "ten")
    assert found["direct"] == found["tinc"] == "lab"
    assert found["nebula"] is None


def test_far_below_the_generators_limit_nothing_is_marked():
    arms = study().arms
    results = scaled(study().results(), {("ten", arm): 0.3 for arm in arms})
    assert set(ceilings(judge(results), "ten").values()) == {None}


def test_a_load_is_told_before_the_lab():
    analysis = judge(study().results())
    assert ceilings(analysis, "unshaped", "delivered")["direct"] == "load"


def test_a_rate_that_was_asked_for_is_no_capacity():
    analysis = judge(study().results())
    assert [(one.setting.workload, one.metric.name) for one in analysis.capacities] == [("tcp", "goodput")]
    assert analysis.capacities[0].direct > 5e8


def test_an_impaired_link_shows_no_capacity():
    lossy = replace(FREE, name="lossy", impaired=True)
    analysis = judge(replace(study(), profiles=(lossy,)).results())
    assert analysis.capacities == ()
    assert not any(cell.ceiling == "lab" for cell in analysis.cells)


def test_latencies_have_no_such_ceiling():
    analysis = judge(study().results())
    assert set(ceilings(analysis, "unshaped", "rtt_p50").values()) == {None}


def test_the_report_says_what_the_generators_reach():
    analysis = judge(study().results())
    said = formatting.capacities(analysis.capacities)
    assert said.startswith("On the bare link that is not shaped, generator and lab reach: tcp ")
    assert "unshaped" in said
    assert "generator and lab reach: tcp" in markdown.render(analysis)
    assert "near the most that generator and lab carry here" in markdown.render(analysis)
    assert formatting.capacities(()) == ""
