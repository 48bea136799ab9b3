"""Arms are compared with each other, too: how far the first is ahead, whatever direct did."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark.analyse import judge
from tunnelmark.report import arm_pairs, html, markdown
from tunnelmark.report.in_front import InFront
from unit.builders import PING, TCP, Study

CLEAR = Study(
    arms=("direct", "direct-again", "tinc", "nebula", "openvpn"),
    workloads=(TCP, PING),
    tcp={"tinc": 0.5, "nebula": 0.8, "openvpn": 0.5},
    noise=0.01,
    blocks=8,
)


def table(metric: str, study: Study = CLEAR) -> arm_pairs.PairTable:
    return next(one for one in arm_pairs.tables(judge(study.results())) if one.metric.name == metric)


def test_every_two_arms_are_compared_once_the_most_favourable_first() -> None:
    found = table("goodput")
    (first, *ahead), (second, blank, other) = found.rows
    assert (first, set(found.heads) | {first}) == ("nebula", {"nebula", "tinc", "openvpn"})
    assert (second, blank) == (found.heads[0], "")
    assert all(text.startswith(("▲ 1.6", "▲ 1.5")) and "× [" in text for text in ahead)
    assert other.startswith(("= 1.0", "? 1.0"))


def test_a_comparison_is_the_same_whichever_arm_the_plan_names_first() -> None:
    turned = replace(CLEAR, arms=("direct", "direct-again", "nebula", "openvpn", "tinc"))
    for study in (CLEAR, turned):
        ratio = float(table("goodput", study).rows[0][1].split()[1].rstrip("×"))
        assert 1.5 < ratio < 1.7


def test_nothing_is_compared_if_nothing_may_be_ranked() -> None:
    assert arm_pairs.tables(judge(replace(CLEAR, blocks=1).results())) == ()


def test_a_block_in_which_direct_was_slow_does_not_widen_them() -> None:
    results = CLEAR.results()
    slow = tuple(
        replace(row, samples=tuple(replace(one, value=one.value / 9) for one in row.samples))
        if row.workload == "tcp" and row.block == 3 and row.arm in ("direct", "direct-again")
        else row
        for row in results.trials
    )
    found = next(one for one in arm_pairs.tables(judge(replace(results, trials=slow))) if one.metric.name == "goodput")
    assert set(found.rows) == set(table("goodput").rows)


def test_the_lead_says_where_its_interval_alone_would_show_it_and_what_is_a_median() -> None:
    """As it was read: "not shown to differ", next to 1.12 times with an interval of 1.03 to 1.26."""
    found = judge(CLEAR.results())
    (ranking,) = (one for one in found.rankings if one.metric == "goodput")
    pairs = tuple(replace(one, differs=False) if "nebula" in (one.arm, one.against) else one for one in found.pairs)
    front = InFront(("nebula", "tinc"), ("openvpn",), (), (), "")
    text = arm_pairs.lead(replace(found, pairs=pairs), ranking, front)
    assert text.count("(not shown once all comparisons are corrected for)") == 2
    assert "not shown" not in arm_pairs.lead(found, ranking, front)
    doubted = tuple(replace(one, doubt="far off") for one in found.pairs)
    assert arm_pairs.lead(replace(found, pairs=doubted), ranking, front).count("(median)") == 2


def test_pages_hold_them() -> None:
    analysis = judge(CLEAR.results())
    for text in (html.render(analysis), markdown.render(analysis)):
        assert "arms against each other" in text and arm_pairs.EXPLAINED[:60] in text
