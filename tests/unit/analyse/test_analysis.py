"""The analysis finds what is known to be there, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Scenario
from tunnelmark.record.results import ProfileInfo
from unit.builders import PING, PROFILE, TCP, UDP, Study

SETTING = Scenario("gigabit", "pair", "tcp")


def goodput(study: Study, arm: str):
    return judge(study.results()).cell(arm, SETTING, "goodput")


def test_an_arm_at_six_tenths_of_direct_is_worse_and_its_interval_holds_the_truth():
    study = Study(arms=("direct", "direct-again", "nebula"), workloads=(TCP,), tcp={"nebula": 0.6})
    held = 0
    for seed in range(60):
        cell = goodput(replace(study, seed=seed), "nebula")
        assert cell.verdict == "worse"
        assert cell.against_direct is not None
        assert cell.against_direct.interval is not None
        assert cell.against_direct.estimate == pytest.approx(0.6, rel=0.1)
        held += cell.against_direct.interval.low <= 0.6 <= cell.against_direct.interval.high
    assert held >= 0.85 * 60


def test_pairing_inside_blocks_cancels_what_a_whole_block_shares():
    calm = goodput(Study(tcp={"nebula": 0.6}, block_noise=0.0), "nebula").against_direct
    stormy = goodput(Study(tcp={"nebula": 0.6}, block_noise=1.0), "nebula").against_direct
    assert calm is not None
    assert stormy is not None
    assert calm.effects == pytest.approx(stormy.effects)


def test_arms_that_are_alike_are_hardly_ever_called_different_and_mostly_equal():
    verdicts = [
        cell.verdict
        for seed in range(20)
        for cell in judge(Study(workloads=(TCP,), seed=seed, noise=0.02, blocks=8).results()).cells
        if cell.metric.primary and cell.arm not in ("direct", "direct-again")
    ]
    assert verdicts.count("equal") + verdicts.count("undecided") == len(verdicts)
    assert verdicts.count("equal") >= 0.9 * len(verdicts)


def test_a_true_difference_that_was_not_seen_is_undecided_and_not_equal():
    # A true 10 %, trials that scatter by 10 %, five blocks: nine of ten studies cannot see it.
    study = Study(arms=("direct", "direct-again", "nebula"), workloads=(TCP,), tcp={"nebula": 0.9}, noise=0.1)
    verdicts = [goodput(replace(study, seed=seed), "nebula").verdict for seed in range(60)]
    assert verdicts.count("undecided") >= 40
    assert verdicts.count("equal") <= 3


def test_a_difference_that_is_sure_but_negligible_is_no_difference():
    cell = goodput(Study(tcp={"nebula": 0.995}, noise=0.0001), "nebula")
    assert cell.against_direct is not None
    assert cell.against_direct.q is not None
    assert cell.against_direct.q < 0.001
    assert cell.verdict == "equal"


def test_a_difference_within_what_the_twins_show_is_no_difference():
    study = Study(tcp={"nebula": 0.97}, noise=0.001, workloads=(TCP,))
    assert goodput(study, "nebula").verdict == "worse"
    noisy = replace(study, tcp={"nebula": 0.97, "direct-again": 1.04})
    assert goodput(noisy, "nebula").verdict == "equal"


def test_lower_is_better_where_the_metric_says_so():
    analysis = judge(Study(rtt={"nebula": 2.0, "tinc": 0.5}).results())
    setting = Scenario("gigabit", "pair", "ping")
    assert analysis.cell("nebula", setting, "rtt_p50").verdict == "worse"
    assert analysis.cell("tinc", setting, "rtt_p50").verdict == "better"


def test_loss_that_is_zero_everywhere_is_equal_and_loss_beside_it_is_worse():
    analysis = judge(Study(loss={"openvpn": 5.0}).results())
    setting = Scenario("gigabit", "pair", "udp")
    none, much = (analysis.cell(arm, setting, "loss") for arm in ("tinc", "openvpn"))
    assert none.verdict == "equal"
    assert none.against_direct is not None
    assert none.against_direct.estimate == 0.0
    assert much.verdict == "worse"
    assert much.against_direct is not None
    assert much.against_direct.estimate == pytest.approx(5.0, rel=0.05)


def test_an_arm_that_failed_in_two_of_five_blocks_is_judged_by_three_and_shows_it():
    alone = Study(arms=("direct", "direct-again", "tinc"), workloads=(TCP,), tcp={"tinc": 0.5}, noise=0.01)
    cell = goodput(replace(alone, fails=(("tinc", "tcp", 1), ("tinc", "tcp", 4))), "tinc")
    assert (cell.success.count, cell.success.total) == (3, 5)
    assert cell.against_direct is not None
    assert cell.against_direct.blocks == (2, 3, 5)
    assert cell.against_direct.interval is not None
    assert cell.against_direct.interval.method == "student"
    assert cell.verdict == "worse"


@pytest.mark.parametrize(("failed", "verdict"), [(3, "too few blocks"), (5, "failed")])
def test_an_arm_with_hardly_a_block_is_not_judged(failed, verdict):
    cell = goodput(Study(fails=tuple(("tinc", "tcp", block) for block in range(1, failed + 1))), "tinc")
    assert cell.verdict == verdict


def test_a_block_in_which_direct_failed_compares_nothing():
    cell = goodput(Study(fails=(("direct", "tcp", 2),)), "nebula")
    assert cell.against_direct is not None
    assert cell.against_direct.blocks == (1, 3, 4, 5)
    assert len(cell.values) == 5


def test_ranks_are_ranges_and_arms_that_are_not_apart_share_theirs():
    analysis = judge(
        Study(tcp={"wireguard-go": 0.9, "nebula": 0.6, "tinc": 0.3, "openvpn": 0.3, "yggdrasil": 0.1}).results()
    )
    ranking = next(found for found in analysis.rankings if found.metric == "goodput")
    places = {place.arm: (place.first, place.last) for place in ranking.places}
    assert places == {
        "wireguard-go": (1, 1),
        "nebula": (2, 2),
        "tinc": (3, 4),
        "openvpn": (3, 4),
        "yggdrasil": (5, 5),
    }


def test_direct_and_twins_are_not_ranked():
    ranked = {place.arm for ranking in judge(Study().results()).rankings for place in ranking.places}
    assert ranked == {"wireguard-go", "tinc", "openvpn", "nebula", "yggdrasil"}


def test_a_metric_that_is_only_a_series_has_no_value_and_breaks_nothing():
    cell = judge(Study(series=True).results()).cell("tinc", Scenario("gigabit", "pair", "ping"), "rtt")
    assert cell.spread is None


def test_settings_are_judged_apart():
    slow = ProfileInfo("slow", "10 Mbit/s", "", 10_000_000, 65536)
    analysis = judge(Study(profiles=(PROFILE, slow), workloads=(TCP,)).results())
    assert [setting.profile for setting in analysis.settings()] == ["gigabit", "slow"]


def test_the_same_results_give_the_same_analysis():
    study = Study(blocks=9, tcp={"nebula": 0.6})
    assert judge(study.results()) == judge(study.results())


def test_another_arm_does_not_move_the_intervals_of_the_others():
    study = Study(blocks=9, workloads=(PING, TCP, UDP))
    results = study.results()
    fewer = replace(
        results,
        plan=replace(results.plan, arms=results.plan.arms[:-1]),
        trials=tuple(row for row in results.trials if row.arm != "yggdrasil"),
    )
    both = [judge(each).cell("nebula", SETTING, "goodput").against_direct for each in (results, fewer)]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].interval == both[1].interval


def test_first_packet_is_of_the_slower_direction():
    results = Study(arms=("direct", "tinc"), same_as={}, blocks=1, workloads=(TCP,)).results()
    trials = tuple(replace(row, first_packet={"a>b": 0.1, "b>a": 0.4}) for row in results.trials)
    first = judge(replace(results, trials=trials)).arms[1].first_packet
    assert first is not None
    assert first.median == 0.4


@pytest.mark.parametrize("stop", [0, 1, 30])
def test_an_unfinished_run_is_judged_as_far_as_it_went(stop):
    analysis = judge(Study(stop_after=stop).results())
    assert len(analysis.missing) == 105 - stop
    assert not analysis.rankings


def test_a_study_without_direct_shows_values_and_compares_nothing():
    analysis = judge(Study(arms=("tinc", "nebula"), same_as={}).results())
    assert analysis.reference is None
    assert {cell.verdict for cell in analysis.cells if cell.spread} == {"too few blocks"}


@pytest.mark.parametrize(("outcomes", "verdict"), [(["void"], "void"), (["void", "failed"], "failed")])
def test_a_cell_whose_every_attempt_was_void_has_not_failed(outcomes, verdict):
    results = Study().results()
    mine = [row.trial for row in results.trials if (row.arm, row.workload) == ("tinc", "tcp")]
    ended = {trial: outcomes[place % len(outcomes)] for place, trial in enumerate(mine)}
    trials = tuple(
        replace(row, outcome=ended[row.trial], samples=()) if row.trial in ended else row for row in results.trials
    )
    analysis = judge(replace(results, trials=trials))
    found = next(cell for cell in analysis.cells if (cell.arm, cell.metric.name) == ("tinc", "goodput"))
    assert found.verdict == verdict
