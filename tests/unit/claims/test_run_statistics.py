"""Figures that no trial reports by itself: of its seconds, over the runs of a cell, of the trials that succeeded, of first packets."""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path
from statistics import stdev

import numpy as np
import pytest

from tunnelmark.analyse import judge as analyse
from tunnelmark.analyse.intervals import exact_share
from tunnelmark.analyse.model import Analysis, Bottleneck, Scenario
from tunnelmark.claims import reading
from tunnelmark.claims.judging import judge
from tunnelmark.claims.measured import RunValues
from tunnelmark.claims.model import Cell, Claim, ClaimsFile, Judged, Statement
from tunnelmark.claims.run_statistics import of_runs, whole_seconds
from tunnelmark.errors import PlanError
from tunnelmark.plan.design import CellPattern
from tunnelmark.record.results import SampleRow
from unit.builders import TCP, Study
from unit.claims.test_judging_claims import Drawn

FILE = """\
[source]
authors = "A. Author"
year = 2020
title = "Two VPNs"
study = "quick"

[arms]
Bare = "direct"
Tinc = "tinc"

[condition.base]
title = "gigabit"
profile = "gigabit"

[quantity.tcp]
title = "one stream"
unit = "Mbit/s"
kind = "rate"
better = "higher"
workload = "tcp"
metric = "goodput"
factor = 1e6

[quantity.spread]
title = "spread from second to second"
unit = "Mbit/s"
kind = "rate"
better = "lower"
workload = "tcp"
metric = "goodput"
statistic = "seconds-sd"
factor = 1e6

[quantity.relative]
title = "spread from second to second, of the mean"
unit = "%"
kind = "rate"
better = "lower"
workload = "tcp"
metric = "goodput"
statistic = "seconds-cv"
factor = 0.01

[quantity.scatter]
title = "spread over runs"
unit = "Mbit/s"
kind = "rate"
better = "lower"
workload = "tcp"
metric = "goodput"
statistic = "runs-sd"
factor = 1e6

[quantity.ends]
title = "streams that ended"
unit = "%"
kind = "share"
better = "higher"
workload = "tcp"
statistic = "success"

[quantity.passes]
title = "tests that passed"
unit = "%"
kind = "share"
better = "higher"
statistic = "suite-success"

[quantity.first]
title = "first packet"
unit = "s"
kind = "time"
better = "lower"
statistic = "first-packet"

[quantity.cpu]
title = "CPU"
unit = "%"
kind = "share"
better = "lower"
workload = "tcp"
metric = "retransmits"
unless_full = true

[[claim]]
id = "spread"
place = "tab 1"
says = "Tinc varies more."
test = "ratio"
quantity = "spread"
conditions = ["base"]
arms = ["Tinc"]
over = [{ arm = "Bare" }]
least = 2.0

[[claim]]
id = "relative"
place = "tab 1"
says = "Tinc varies more for its size."
test = "ratio"
quantity = "relative"
conditions = ["base"]
arms = ["Tinc"]
over = [{ arm = "Bare" }]
least = 2.0

[[claim]]
id = "scatter"
place = "tab 1"
says = "Tinc scatters more."
test = "ratio"
quantity = "scatter"
conditions = ["base"]
arms = ["Tinc"]
over = [{ arm = "Bare" }]
least = 2.0

[[claim]]
id = "ends"
place = "tab 1"
says = "Tinc ends."
test = "value"
quantity = "ends"
conditions = ["base"]
arms = ["Tinc"]
least = 50.0

[[claim]]
id = "passes"
place = "tab 1"
says = "Tinc passes nine in ten."
test = "value"
quantity = "passes"
conditions = ["base"]
arms = ["Tinc"]
least = 90.0

[[claim]]
id = "first"
place = "tab 1"
says = "Tinc is there at once."
test = "difference"
quantity = "first"
conditions = ["base"]
arms = ["Tinc"]
over = [{ arm = "Bare" }]
most = 0.5

[[claim]]
id = "cpu"
place = "tab 1"
says = "Tinc takes more."
test = "ratio"
quantity = "cpu"
conditions = ["base"]
arms = ["Tinc"]
over = [{ arm = "Bare" }]
least = 1.0
"""


@pytest.fixture
def claims(tmp_path: Path) -> ClaimsFile:
    return written(tmp_path, FILE)


def written(folder: Path, text: str) -> ClaimsFile:
    (folder / "two.toml").write_text(text)
    return reading.read(folder / "two.toml")


def run(blocks: int = 8, fails: tuple[int, ...] = (), reason: str = "", varies: float = 1.0) -> Analysis:
    """Streams of four seconds; those of tinc vary from second to second as often as said."""
    study = Study(
        arms=("direct", "direct-again", "tinc"),
        workloads=(TCP,),
        blocks=blocks,
        fails=tuple(("tinc", "tcp", block) for block in fails),
    )
    results = study.results()
    rows = []
    for row in results.trials:
        wobble = 0.01 * (varies if row.arm == "tinc" else 1.0)
        seconds = [1 + wobble, 1 - wobble, 1 + wobble, 1 - wobble]
        series = tuple(SampleRow("goodput", "bit/s", 1e8 * seconds[n // 10], n / 10) for n in range(40))
        told = replace(row, reason=reason, message="it is not installed") if reason and row.outcome == "failed" else row
        rows.append(replace(told, samples=(*row.samples, *series)) if row.outcome == "ok" else told)
    return analyse(replace(results, trials=tuple(rows)))


def verdict(claims: ClaimsFile, name: str, analysis: Analysis) -> Judged:
    claim = next(claim for claim in claims.claims if claim.id == name)
    return judge(claim, RunValues(claims, analysis))


def test_the_spread_of_a_trial_s_seconds_is_compared(claims: ClaimsFile) -> None:
    found = verdict(claims, "spread", run(varies=3.0))
    assert found.outcome == "held"
    assert found.effects[0].estimate == pytest.approx(3)
    assert verdict(claims, "spread", run(varies=1.0)).outcome == "did not hold"


def test_a_spread_may_be_taken_as_a_share_of_the_mean(claims: ClaimsFile) -> None:
    slow = run(varies=3.0)
    rows = [
        replace(row, samples=tuple(replace(s, value=s.value / 10) if s.time is not None else s for s in row.samples))
        if row.arm == "tinc"
        else row
        for row in slow.trials
    ]
    slow = analyse(replace(slow.results, trials=tuple(rows)))
    assert verdict(claims, "spread", slow).effects[0].estimate == pytest.approx(0.3)
    found = verdict(claims, "relative", slow)
    assert (found.outcome, found.effects[0].estimate) == ("held", pytest.approx(3))


def test_a_series_too_short_for_a_spread_says_so(claims: ClaimsFile) -> None:
    study = Study(arms=("direct", "direct-again", "tinc"), workloads=(TCP,))
    assert "too few whole seconds" in verdict(claims, "spread", analyse(study.results())).reason


def test_seconds_are_means_of_what_lies_in_them_and_the_last_counts_if_it_is_whole() -> None:
    assert whole_seconds([(0.0, 1.0), (0.5, 3.0), (1.0, 5.0), (1.5, 7.0)]) == [2.0, 6.0]
    assert whole_seconds([(0.0, 1.0), (0.25, 1.0), (0.5, 1.0), (0.75, 1.0), (1.0, 9.0), (1.25, 9.0)]) == [1.0]
    assert whole_seconds([(None, 4.0)]) == []


def test_a_spread_over_runs_is_told_by_pseudo_values_whose_mean_is_near_its_logarithm() -> None:
    values = dict(enumerate(np.random.default_rng(2).normal(100, 5, 60)))
    pseudo = of_runs(values)
    assert set(pseudo) == set(values)
    assert np.mean([log(each) for each in pseudo.values()]) == pytest.approx(log(stdev(values.values())), abs=0.05)
    assert of_runs({1: 1.0, 2: 2.0}) == {}
    assert of_runs({1: 3.0, 2: 3.0, 3: 3.0}) == {}


@pytest.mark.parametrize("blocks", [3, 10])
def test_intervals_of_a_ratio_of_spreads_hold_the_truth_as_often_as_they_say(blocks: int) -> None:
    """A true ratio of 2 lies in the interval of 95 % in 91 to 98 % of 500 studies (standard error 1 %)."""
    random, covered = np.random.default_rng(4), 0
    one, other = Cell("tcp", "base", "X"), Cell("tcp", "base", "Y")
    claim = Claim("c", "", "", (Statement(((one, 1), (other, -1)), "ratio", 1.0, None),))
    for _ in range(500):
        drawn = {cell: dict(enumerate(random.normal(100, sd, blocks))) for cell, sd in ((one, 4.0), (other, 2.0))}
        spreads = {cell: list(of_runs(values).values()) for cell, values in drawn.items()}
        (effect,) = judge(claim, Drawn(spreads)).effects
        assert effect.low is not None
        assert effect.high is not None
        covered += effect.low <= 2 <= effect.high
    assert 455 <= covered <= 490


def test_a_scatter_over_runs_is_judged_whatever_bound_the_arm(claims: ClaimsFile) -> None:
    analysis = run()
    core = Bottleneck("sender's core")
    bound = {("tinc", Scenario("gigabit", "pair", "tcp")): core, ("direct", Scenario("gigabit", "pair", "tcp")): core}
    found = verdict(claims, "scatter", replace(analysis, bound_by=bound))
    assert found.outcome == "did not hold"
    assert found.effects[0].low is not None


def test_that_all_of_a_few_trials_succeeded_shows_nothing_yet(claims: ClaimsFile) -> None:
    few = verdict(claims, "ends", run(blocks=3))
    assert (few.outcome, few.effects[0].blocks) == ("undecided", 6)
    assert few.effects[0].low == pytest.approx(100 * exact_share(3, 3)[0])
    assert verdict(claims, "ends", run(blocks=6)).outcome == "held"
    assert verdict(claims, "ends", run(blocks=6, fails=(1, 2, 3, 4, 5, 6))).outcome == "did not hold"


def test_a_failure_of_the_machine_says_nothing_of_an_arm(claims: ClaimsFile) -> None:
    found = verdict(claims, "ends", run(blocks=6, fails=(1, 2, 3, 4, 5, 6), reason="missing-part"))
    assert (found.outcome, "it is not installed" in found.reason) == ("not testable", True)


def test_all_trials_of_an_arm_count_for_what_it_passes(claims: ClaimsFile) -> None:
    assert verdict(claims, "passes", run(blocks=8, fails=(1, 2, 3, 4, 5))).outcome == "did not hold"
    assert verdict(claims, "passes", run(blocks=8)).outcome == "undecided"


def test_a_part_of_the_workloads_says_nothing_of_all_that_an_arm_passes(claims: ClaimsFile) -> None:
    """As it was, sixty pings showed that a VPN passes all of seven benchmarks."""
    analysis = run(blocks=60)
    part = CellPattern(workloads=("ping",))
    plan = replace(analysis.results.plan, design=replace(analysis.results.plan.design, part=part))
    found = verdict(claims, "passes", replace(analysis, results=replace(analysis.results, plan=plan)))
    assert (found.outcome, "only a part of the workloads" in found.reason) == ("not testable", True)


def test_first_packets_are_those_of_all_deployments(claims: ClaimsFile) -> None:
    found = verdict(claims, "first", run())
    assert found.outcome == "held"
    assert abs(found.effects[0].estimate) < 0.2


def never_answered(blocks: tuple[int, ...], reason: str = "not-ready") -> Analysis:
    """Twelve blocks, in some of which tinc's deployment came to nothing."""
    return run(blocks=12, fails=blocks, reason=reason)


def test_first_packets_are_not_those_of_the_few_deployments_that_answered(claims: ClaimsFile) -> None:
    found = verdict(claims, "first", never_answered(tuple(range(1, 10))))
    assert (found.outcome, found.reason) == (
        "not testable",
        "Tinc, first packet, gigabit: 3 of 12 deployments answered here, fewer than nine in ten",
    )
    assert verdict(claims, "first", never_answered((1,))).outcome == "held"


def test_a_deployment_that_the_machine_had_no_part_for_did_not_fail_to_answer(claims: ClaimsFile) -> None:
    assert verdict(claims, "first", never_answered((1, 2, 3, 4), "missing-part")).outcome == "held"


@pytest.mark.parametrize(
    ("limits", "other", "full"),
    [
        ({"core_source": 0.97, "used_source": 0.9}, 0.0, "the sender's core"),
        ({"core_target": 0.99, "used_target": 0.9}, 0.0, "the receiver's core"),
        ({"core_source": 0.97, "used_source": 0.2}, 0.5, ""),  # other work had it
        ({"core_source": 0.9, "used_source": 0.9}, 0.0, ""),
    ],
)
def test_what_a_full_core_used_is_not_compared_though_the_link_s_queue_bound_the_path(
    claims: ClaimsFile, limits: dict[str, float], other: float, full: str
) -> None:
    analysis = run()
    rows = [
        replace(row, limits=limits, host={"other_cpu": other}) if row.arm == "tinc" else row for row in analysis.trials
    ]
    analysis = analyse(replace(analysis.results, trials=tuple(rows)))
    queue = {("tinc", Scenario("gigabit", "pair", "tcp")): Bottleneck("loss", "the link's queue")}
    found = verdict(claims, "cpu", replace(analysis, bound_by=queue))
    assert (f"{full} was fully used here" in found.reason) if full else (found.outcome != "not testable"), found.reason


def test_what_a_full_core_used_is_not_compared(claims: ClaimsFile) -> None:
    analysis = run()
    bound = {("tinc", Scenario("gigabit", "pair", "tcp")): Bottleneck("receiver's core")}
    found = verdict(claims, "cpu", replace(analysis, bound_by=bound))
    assert "the receiver's core was fully used here" in found.reason


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('quantity = "ends"', 'over = [{ arm = "Bare" }]\nquantity = "ends"', "compares shares of trials"),
        ('test = "ratio"\nquantity = "scatter"', 'test = "difference"\nquantity = "scatter"', "otherwise than by its"),
        ('statistic = "runs-sd"', 'statistic = "runs-cd"', "statistic"),
    ],
)
def test_a_test_that_a_statistic_does_not_bear_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = FILE.replace(old, new)
    if "over" in new:
        text = text.replace(f'test = "value"\n{new}', f'test = "ratio"\n{new}')
    with pytest.raises(PlanError) as caught:
        written(tmp_path, text)
    assert complaint in str(caught.value)


def test_the_exact_interval_of_a_share_is_clopper_s_and_pearson_s() -> None:
    assert exact_share(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert exact_share(10, 10) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert exact_share(3, 10) == pytest.approx((0.0667, 0.6525), abs=1e-4)
