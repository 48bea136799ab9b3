"""Zeros, failures and voids are results: none is dropped, and each is shown where it could change what is said."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from statistics import median

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Scenario
from tunnelmark.analyse.robust import doubtful, far_off
from tunnelmark.record.results import Results, SampleRow
from tunnelmark.report import formatting, html, json_export, markdown
from tunnelmark.report.cautions import cautions
from tunnelmark.report.findings import findings
from unit.builders import TCP, UDP, Study

SETTING = Scenario("gigabit", "pair", "tcp")
ARMS = ("direct", "direct-again", "tinc", "nebula", "openvpn")
STUDY = Study(
    arms=ARMS,
    workloads=(TCP,),
    tcp={"tinc": 0.95, "nebula": 0.6, "openvpn": 0.3},
    noise=0.01,
    block_noise=0.0,
    blocks=8,
)


def with_zeros(study: Study, arm: str, blocks: Collection[int]) -> Results:
    """The study's results with nothing delivered by that arm in those blocks."""
    results = study.results()
    trials = tuple(
        replace(row, samples=(SampleRow("goodput", "bit/s", 0.0),)) if row.arm == arm and row.block in blocks else row
        for row in results.trials
    )
    return replace(results, trials=trials)


def places(analysis: Analysis) -> dict[str, tuple[int, int]]:
    (ranking,) = analysis.rankings
    return {place.arm: (place.first, place.last) for place in ranking.places}


def test_a_block_in_which_both_arms_are_at_zero_is_one_doubtful_block():
    results = with_zeros(STUDY, "tinc", (2, 5))
    both = replace(
        results,
        trials=tuple(
            replace(row, samples=(SampleRow("goodput", "bit/s", 0.0),))
            if (row.arm, row.block) == ("direct", 2)
            else row
            for row in results.trials
        ),
    )
    pair = judge(both).cell("tinc", SETTING, "goodput").against_direct
    assert pair is not None
    assert (pair.doubt, pair.doubtful, pair.zeros) == ("zeros", 2, (2, 1))


def test_an_arm_at_zero_in_three_of_eight_blocks_is_not_the_best_and_shows_it():
    analysis = judge(with_zeros(STUDY, "tinc", (2, 5, 7)))
    cell = analysis.cell("tinc", SETTING, "goodput")
    pair = cell.against_direct
    assert pair is not None
    assert (pair.blocks, pair.zeros, pair.doubt) == ((1, 2, 3, 4, 5, 6, 7, 8), (3, 0), "zeros")
    assert pair.interval is not None
    assert (pair.interval.low, pair.interval.method) == (0.0, "sign")
    assert pair.order == pytest.approx(-0.52, abs=0.05)  # the log of 0.95 * 5 / 8: zeros are in it
    assert cell.verdict == "undecided"
    assert places(analysis)["tinc"][1] > 1
    assert formatting.doubts(pair, "direct") == "0 in 3 of 8 blocks, no ratio in blocks with 0: median"
    assert "tinc: 0 in 3 of 8 blocks." in findings(analysis)[0].text


def test_an_arm_that_never_carries_anything_is_worse_than_all_and_stands_last():
    analysis = judge(with_zeros(STUDY, "tinc", range(1, 9)))
    cell = analysis.cell("tinc", SETTING, "goodput")
    assert cell.verdict == "worse"
    assert cell.against_direct is not None
    assert cell.against_direct.estimate == 0.0
    assert places(analysis) == {"nebula": (1, 1), "openvpn": (2, 2), "tinc": (3, 3)}


def test_a_single_zero_keeps_an_arm_from_being_equal():
    equal = replace(STUDY, tcp={})
    assert judge(equal.results()).cell("nebula", SETTING, "goodput").verdict == "equal"
    assert judge(with_zeros(equal, "nebula", (3,))).cell("nebula", SETTING, "goodput").verdict == "undecided"


def test_where_direct_is_at_zero_nothing_is_infinite_in_what_is_written():
    analysis = judge(with_zeros(STUDY, "direct", (1, 2, 3, 4, 5)))
    for exporter in (json_export, markdown, html):
        text = re.sub(r"<script.*?</script>", "", exporter.render(analysis), flags=re.DOTALL)
        assert re.search(r"\b(nan|inf|infinity)\b|∞", text, re.IGNORECASE) is None


def test_one_block_far_off_has_the_median_told():
    results = STUDY.results()
    trials = tuple(
        replace(row, samples=(SampleRow("goodput", "bit/s", 60e6),)) if (row.arm, row.block) == ("nebula", 4) else row
        for row in results.trials
    )
    pair = judge(replace(results, trials=trials)).cell("nebula", SETTING, "goodput").against_direct
    assert pair is not None
    assert (pair.doubt, pair.interval and pair.interval.method) == ("far off", "sign")
    assert pair.estimate == pytest.approx(median(pair.effects))
    assert formatting.doubts(pair, "direct") == "1 of 8 blocks far off: median"
    assert pair.left_out is not None
    assert pair.estimate is not None
    assert pair.left_out[0] <= pair.estimate <= pair.left_out[1]


def test_a_remark_says_how_many_blocks_are_far_off_or_without_any_difference():
    far = {"nebula": (2, 4, 7)}
    results = STUDY.results()
    trials = tuple(
        replace(row, samples=(SampleRow("goodput", "bit/s", 60e6),)) if row.block in far.get(row.arm, ()) else row
        for row in results.trials
    )
    pair = judge(replace(results, trials=trials)).cell("nebula", SETTING, "goodput").against_direct
    assert pair is not None
    assert formatting.doubts(pair, "direct") == "3 of 8 blocks far off: median"
    lost = doubtful([0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0, "mostly zero")
    assert formatting.doubts(replace(pair, doubt="mostly zero", doubtful=lost), "direct") == (
        "2 of 8 blocks without any difference: median"
    )


def test_far_off_asks_for_six_blocks_and_for_a_spread():
    assert far_off([0.0, 0.1, -0.1, 0.05, -0.05, 3.0])
    assert not far_off([0.0, 0.1, -0.1, 0.05, 3.0])
    assert not far_off([0.0, 0.0, 0.0, 0.0, 0.0, 3.0])


def test_losses_that_are_mostly_zero_have_the_median_told():
    study = Study(arms=ARMS, workloads=(UDP,), blocks=8)
    results = study.results()
    trials = tuple(
        replace(
            row, samples=(SampleRow("delivered", "bit/s", 2e8), SampleRow("loss", "%", 3.0 if row.block == 2 else 0.0))
        )
        if row.arm == "tinc"
        else row
        for row in results.trials
    )
    cell = judge(replace(results, trials=trials)).cell("tinc", Scenario("gigabit", "pair", "udp"), "loss")
    assert cell.against_direct is not None
    assert (cell.against_direct.doubt, cell.against_direct.estimate) == ("mostly zero", 0.0)


def test_below_nine_of_ten_an_arm_is_unreliable_and_its_rank_says_so():
    analysis = judge(replace(STUDY, fails=(("tinc", "tcp", 3), ("tinc", "tcp", 6))).results())
    cell = analysis.cell("tinc", SETTING, "goodput")
    assert cell.unreliable
    (ranking,) = analysis.rankings
    assert {place.arm for place in ranking.places if place.unreliable} == {"tinc"}
    assert "unreliable (6/8 ok)" in formatting.remarks(cell, "direct")
    assert "tinc is unreliable: 6/8 succeeded" in findings(analysis)[0].text


def test_missing_blocks_bound_the_median_whatever_they_would_have_shown():
    analysis = judge(replace(STUDY, fails=(("tinc", "tcp", 3), ("tinc", "tcp", 6))).results())
    cell = analysis.cell("tinc", SETTING, "goodput")
    assert cell.against_direct is not None
    assert cell.bounds is not None
    ordered = sorted(cell.against_direct.effects)
    assert cell.bounds.missing == 2
    assert cell.bounds.low == pytest.approx((ordered[1] + ordered[2]) / 2)
    assert cell.bounds.high == pytest.approx((ordered[3] + ordered[4]) / 2)
    whole = judge(STUDY.results()).cell("tinc", SETTING, "goodput")
    assert whole.bounds is None
    assert not whole.unreliable


def test_where_half_of_the_blocks_are_missing_nothing_bounds_the_median():
    fails = tuple(("tinc", "tcp", block) for block in range(1, 5))
    cell = judge(replace(STUDY, fails=fails).results()).cell("tinc", SETTING, "goodput")
    assert cell.bounds is not None
    assert (cell.bounds.missing, cell.bounds.low, cell.bounds.high) == (4, None, None)


def test_an_arm_that_is_void_more_often_than_the_others_is_named():
    results = STUDY.results()

    def spoilt(arms: Collection[str]) -> Results:
        void = [
            replace(row, outcome="void", samples=()) if row.arm in arms and row.block <= 5 else row
            for row in results.trials
        ]
        return replace(results, trials=tuple(void))

    rates = {rate.arm: rate for rate in judge(spoilt(["tinc"])).void_rates}
    assert rates["tinc"].unlike
    assert (rates["tinc"].void, rates["tinc"].attempts, rates["tinc"].void_others) == (5, 8, 0)
    said = [text for text in cautions(judge(spoilt(["tinc"]))) if "often than the others" in text]
    assert len(said) == 1, "that the others were void less often says nothing more"
    assert said[0].startswith("tinc (5 of 8 attempts) was void more often than the others")
    assert "Trials of tinc are void more often than others'" in findings(judge(spoilt(["tinc"])))[0].text
    assert not any(rate.unlike for rate in judge(spoilt(ARMS)).void_rates)
    assert judge(results).void_rates == ()
