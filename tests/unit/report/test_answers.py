"""The answer in words: who is best or ties, ahead of whom, by how much with which interval, and what bound it; no answer where nothing is ranked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tunnelmark.analyse import judge
from tunnelmark.analyse.model import Analysis, Bottleneck, Interval
from tunnelmark.record.results import MetricInfo, SampleRow
from tunnelmark.report.answers import answers, at_a_glance, unranked
from unit.analyse.test_anchor_multiples import BUSY, analysed, study
from unit.builders import PING, PROFILE, TCP, UDP, Study

TIED = Study(tcp={"nebula": 0.6, "tinc": 0.3, "openvpn": 0.3, "yggdrasil": 0.4}, loss={"openvpn": 12.0}, noise=0.01)
FULL = {"wire_source": 1e9}


def said(analysis: Analysis, metric: str) -> str:
    (condition,) = answers(analysis)
    found = next(one for one in condition.answers if one.title == metric)
    return (found.first + found.text).replace("\N{NO-BREAK SPACE}", " ")


def watched(*metrics: tuple[MetricInfo, Mapping[str, float]], arms: Sequence[str] = ("nebula", "tinc")) -> Analysis:
    """A study of TCP that has further metrics, with the value of each arm; 1 where none is said."""
    use = replace(TCP, metrics=(*TCP.metrics, *(metric for metric, _ in metrics)))
    results = replace(TIED, arms=("direct", "direct-again", *arms), workloads=(use,), blocks=8).results()
    rows = []
    for row in results.trials:
        more = (
            SampleRow(metric.name, metric.unit, values.get(row.arm, 1.0) * (1 + row.block / 100))
            for metric, values in metrics
        )
        rows.append(replace(row, samples=(*row.samples, *more)))
    return judge(replace(results, trials=tuple(rows)))


def under_load(delays: Mapping[str, float]) -> Analysis:
    """Round trips under load that take so many milliseconds."""
    return watched((MetricInfo("rtt", "ms", "round trips", "lower", "ratio", False), delays))


def cpu_of(**taken: tuple[float, float]) -> Analysis:
    """Seconds of CPU a gigabyte, of sender and receiver, by arm."""
    ends = [
        (MetricInfo(f"cpu_per_gb_{end}", "s/GB", "CPU", "lower", "ratio", False), {arm: of[at] for arm, of in taken.items()})
        for at, end in enumerate(("source", "target"))
    ]  # fmt: skip
    return watched(*ends, arms=tuple(taken))


def test_who_takes_the_least_cpu_and_who_the_most_is_said_with_the_rate():
    """As it was read: nobody who has little CPU to spend found the VPN for it on the page, then not the one to avoid."""
    two = {"nebula": (9.0, 5.5), "tinc": (4.0, 7.0)}
    text = said(cpu_of(**two), "TCP goodput")
    assert re.search(
        r"Least CPU per gigabyte, both ends together: tinc 11\.\d s and nebula 15\.\d s; direct 2\.\d+ s\.", text
    )
    four = said(cpu_of(**two, openvpn=(9.0, 6.0), yggdrasil=(20.0, 4.0)), "TCP goodput")
    assert re.search(r"tinc \S+ s, nebula \S+ s and openvpn \S+ s; the most yggdrasil 25\.\d s; direct", four)
    one_end = MetricInfo("cpu_per_gb_source", "s/GB", "CPU", "lower", "ratio", False)
    assert "Least CPU" not in said(watched((one_end, {})), "TCP goodput")


def test_segments_larger_than_the_links_packets_go_with_the_rate_of_an_arm_in_front():
    """As it was read: why the best one was ahead stood in three tables."""
    segment = MetricInfo("mss", "B", "payload of a full segment", "higher", "ratio", False)
    text = said(watched((segment, {"direct": 1448.0, "nebula": 26488.0, "tinc": 26488.0})), "TCP goodput")
    assert re.search(
        r"TCP segments hold 2\d,\d{3} bytes through nebula and 1,\d{3} through direct: fewer packets\.", text
    )
    assert "TCP segment" not in said(watched((segment, {"direct": 1448.0, "nebula": 1388.0})), "TCP goodput")


def test_a_limit_that_differs_from_trial_to_trial_is_named_as_such():
    mixed = Bottleneck("unknown", "", "it differs from trial to trial: link 3, window 3", 3, 8)
    found = judge(replace(TIED, arms=("direct", "direct-again", "nebula", "tinc"), blocks=8).results())
    bound = {("nebula", one.setting): mixed for one in found.rankings if one.metric == "goodput"}
    text = said(replace(found, bound_by=bound), "TCP goodput")
    assert "bound by no one thing (it differs from trial to trial: link 3, window 3)" in text


def test_one_that_beats_all_others_is_best_with_its_effect_and_interval():
    fast = judge(replace(TIED, arms=("direct", "direct-again", "nebula", "tinc", "openvpn")).results())
    text = said(fast, "TCP goodput")
    assert re.match(r"nebula is best, ahead of all 2 others: \d+ Mbit/s, 60", text)
    best, second = re.split(r" of direct's \d+ Mbit/s\. Next: ", text)
    assert "[" in best and "% " in best
    assert second.startswith(("tinc 30", "openvpn 30", "tinc 29", "openvpn 29"))


def test_the_delay_under_its_load_goes_with_the_rate_of_an_arm_that_pays_with_it():
    """A round trip that takes twice direct's or more is part of the answer; less is not."""
    text = said(under_load({"nebula": 5.0, "tinc": 9.0}), "TCP goodput")
    assert re.search(r"Under that load a round trip takes 5\.2\d ms through nebula, \S+ direct's\. Next: tinc", text)
    assert "through tinc" not in text
    less = said(under_load({"nebula": 5.0, "tinc": 0.5}), "TCP goodput")
    assert re.search(r"through nebula, \S+ direct's; the least is 0\.5\d+ ms, through tinc\.", less)
    assert "Under that load" not in said(under_load({"nebula": 1.5}), "TCP goodput")


def test_arms_that_may_both_be_next_are_both_named():
    arms = ("direct", "direct-again", "nebula", "tinc", "openvpn", "yggdrasil")
    study = replace(TIED, arms=arms, tcp={"nebula": 0.8, "tinc": 0.4, "openvpn": 0.4, "yggdrasil": 0.1}, blocks=8)
    text = said(judge(study.results()), "TCP goodput")
    _, _, second = text.partition("Next: ")
    assert second.startswith(("tinc ", "openvpn ")) and " or " in second and ", not shown to differ. " in second
    second, _, compared = second.partition(" Compared with each other, ")
    assert "tinc" in second and "openvpn" in second and "yggdrasil" not in second
    assert re.fullmatch(r"nebula is 2\.0.× \[.*\] \w+, 2\.0.× \[.*\] \w+ and 8\.0.× \[.*\] yggdrasil\.", compared)
    alone = judge(replace(study, tcp={**study.tcp, "openvpn": 0.2}).results())
    assert "not shown to differ" not in said(alone, "TCP goodput").partition("Next: tinc 4")[2]


def test_a_range_over_many_arms_is_said_to_be_one_of_estimates_and_of_intervals():
    text = said(judge(replace(TIED, workloads=(UDP,), loss={}).results()), "UDP packets lost")
    assert "(estimates 0 points, with intervals within 0 points against direct's 0 %)" in text


def test_of_many_arms_that_are_not_shown_to_differ_the_first_and_the_last_are_named_by_estimate():
    """As it was read: "estimates 19–72 %, with intervals within 12–103 %", of which nobody could tell whose they were."""
    wide = said(judge(replace(TIED, blocks=4, noise=0.2).results()), "TCP goodput")
    effect = r" \d+ % \[\d+–\d+\]"
    named = re.search(
        rf"ahead: estimates from (\S+){effect}, (\S+){effect} and (\S+){effect} to (\S+){effect} of direct's \d", wide
    )
    assert named is not None
    assert named[1] == "wireguard-go" and len(set(named.groups())) == 4


def test_the_delay_under_its_load_goes_with_the_first_of_many_by_estimate():
    use = replace(TCP, metrics=(*TCP.metrics, MetricInfo("rtt", "ms", "round trips", "lower", "ratio", False)))
    results = replace(TIED, tcp={"wireguard-go": 1.4}, workloads=(use,), blocks=4, noise=0.3).results()
    slow = {"wireguard-go": 9.0}
    rows = [
        replace(row, samples=(*row.samples, SampleRow("rtt", "ms", slow.get(row.arm, 1.0) * (1 + row.block / 100))))
        for row in results.trials
    ]
    text = said(judge(replace(results, trials=tuple(rows))), "TCP goodput")
    assert "none of the 5" in text and re.search(
        r"Under that load a round trip takes 9\S+ ms through wireguard-go, ", text
    )


def test_arms_that_are_equal_tie_and_those_that_are_beaten_are_named():
    found = judge(replace(TIED, tcp={"nebula": 0.6}).results())
    text = said(found, "TCP goodput")
    assert "tie" in text and "nebula is beaten" in text
    assert "nebula" not in text.partition(" tie")[0]


def test_arms_that_are_beaten_are_so_by_those_that_are_shown_to_be_ahead_of_them():
    """As it was read: "nebula and tinc are not shown to differ, and openvpn is beaten", where tinc was not shown to beat it."""
    found = judge(replace(TIED, arms=("direct", "direct-again", "nebula", "tinc", "openvpn"), blocks=8).results())
    (ranking,) = (one for one in found.rankings if one.metric == "goodput")
    assert "nebula" in {place.arm for place in ranking.places}

    def after(*apart: tuple[str, str]) -> str:
        pairs = tuple(
            replace(one, differs={one.arm, one.against} in [set(pair) for pair in apart])
            for one in found.pairs
            if (one.setting, one.metric) == (ranking.setting, "goodput")
        )
        places = [
            replace(place, first=2 if place.arm == "openvpn" else 1, last=3 if place.arm != "nebula" else 2)
            for place in ranking.places
        ]
        seen = replace(found, pairs=pairs, rankings=(replace(ranking, places=tuple(places)),))
        return said(seen, "TCP goodput").partition(":")[0]

    unlike = "not shown to differ from tinc, which is not shown to differ from any other"
    assert after(("nebula", "openvpn")) == f"nebula is ahead of openvpn, and {unlike}"
    assert after(("nebula", "openvpn"), ("tinc", "openvpn")).endswith(
        " are not shown to differ, and openvpn is beaten by both"
    )


def test_of_many_in_front_those_shown_to_be_ahead_come_first_and_the_beaten_follow_with_their_effects():
    """As it was read: "zerotier is ahead of yggdrasil", and in the estimates zerotier was the last and yggdrasil not there.

    And as it was read later: the sentence began with zerotier, as if it were the best of those in front.
    """
    found = judge(replace(TIED, blocks=8).results())
    (ranking,) = (one for one in found.rankings if one.metric == "goodput")
    pairs = tuple(replace(one, differs={one.arm, one.against} == {"tinc", "yggdrasil"}) for one in found.pairs)
    places = tuple(
        replace(place, first=2 if place.arm == "yggdrasil" else 1, last=5 if place.arm != "tinc" else 4)
        for place in ranking.places
    )
    text = said(replace(found, pairs=pairs, rankings=(replace(ranking, places=places),)), "TCP goodput")
    effect = r" [\d.]+ % \[[\d.–]+\]"
    assert text.startswith(
        "none of the 4 in front is shown to be ahead of another, and tinc is ahead of yggdrasil: tinc "
    )
    assert re.search(
        rf": tinc{effect}, and estimates from \S+{effect} and \S+{effect} to \S+{effect} of direct's", text
    )
    assert re.search(rf"\. Beaten: yggdrasil{effect}\. Compared with each other, tinc is ", text)


def test_a_link_that_does_not_decide_for_each_packet_is_warned_of_beside_its_answers():
    """As it was read: the order over such a link, and only a page further down that the link may have made it."""
    results = TIED.results()
    (profile,) = results.plan.profiles
    (plain,) = answers(judge(results))
    lab = {"lab": {"shaper": {profile.name: "delay 2 ms, unit gso"}}}
    (warned,) = answers(judge(replace(results, environment={**results.environment, **lab})))
    assert plain.warning == "" and plain.answers == warned.answers
    assert "hit less often, which may decide the order of these answers" in warned.warning


def test_several_conditions_begin_with_a_table_of_the_best_estimates():
    found = answers(judge(replace(TIED, loss={}).results()))
    assert at_a_glance(found) == ((), ())
    other = replace(found[0], title="wifi", answers=found[0].answers[:1])
    head, rows = at_a_glance((replace(found[0], title="gigabit"), other))
    assert head == ("best estimate", *(one.title for one in found[0].answers))
    assert rows[0] == ("gigabit", *(one.glance for one in found[0].answers))
    assert rows[1] == ("wifi", found[0].answers[0].glance, *["–"] * (len(head) - 2))


def test_what_equals_direct_is_said_to_within_the_margin():
    text = said(judge(TIED.results()), "round-trip time, median")
    assert text.startswith("all 5 tie: equal to direct within 5 % (")
    assert re.search(r"× direct's [\d.]+ µs\)\.$", text)


def test_arms_that_no_test_tells_apart_are_not_called_alike():
    few = judge(replace(TIED, blocks=4, noise=0.2).results())
    assert said(few, "TCP goodput").startswith("none of the 5 is shown to be ahead: ")
    wide = judge(replace(TIED, tcp={**TIED.tcp, "wireguard-go": 3.0, "nebula": 2.9}, noise=0.05).results())
    assert " are not shown to differ, and " in said(wide, "TCP goodput")


def test_a_single_vpn_is_not_best_of_anything():
    alone = judge(replace(TIED, arms=("direct", "direct-again", "tinc")).results())
    text = said(alone, "TCP goodput")
    assert text.startswith("tinc: ") and "best" not in text and "tie" not in text


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        (
            (0.33, 0.39),
            "different from direct if this comparison were the only one, but not shown once all of the study's are corrected for",
        ),
        ((0.33, 1.10), "not shown to differ from direct"),
    ],
)
def test_an_interval_that_leaves_out_direct_is_not_said_to_show_nothing(interval: tuple[float, float], told: str):
    found = judge(replace(TIED, arms=("direct", "direct-again", "tinc"), blocks=3).results())
    cells = []
    for cell in found.cells:
        if (pair := cell.against_direct) is not None and (cell.arm, cell.metric.name) == ("tinc", "goodput"):
            pair = replace(pair, estimate=0.36, interval=Interval(*interval, "student"))
            cell = replace(cell, against_direct=pair, verdict="undecided")
        cells.append(cell)
    assert told in said(replace(found, cells=tuple(cells)), "TCP goodput")


def test_what_bound_it_is_said_and_what_bound_direct_and_the_multiple_of_the_anchor():
    found = analysed(study(noise=0.0), direct=FULL, direct_again=FULL, nebula=BUSY, anchor_chacha20=BUSY)
    text = said(found, "TCP goodput")
    assert (
        text
        == "nebula is best, ahead of tinc: 180 Mbit/s, 30.0 % ≠ of direct's 600 Mbit/s, 0.60× [0.60–0.60] anchor-chacha20; bound by the sender's core, while direct is bound by the link. "
        "Next: tinc 20.0 %. Compared with each other, nebula is 1.50× [1.50–1.50] tinc."
    )


def test_an_arm_that_failed_has_no_place_and_says_so():
    broken = judge(replace(TIED, fails=tuple(("tinc", "tcp", block) for block in range(1, 6))).results())
    assert said(broken, "TCP goodput").endswith("Not ranked: tinc (failed).")


def test_each_condition_has_its_own_answer():
    two = replace(TIED, profiles=(PROFILE, replace(PROFILE, name="slow", title="a slow link")), workloads=(TCP, PING))
    found = answers(judge(two.results()))
    assert [one.title for one in found] == [PROFILE.title, "a slow link"]
    assert all(len(one.answers) == 2 for one in found)


@pytest.mark.parametrize(
    "study",
    [
        replace(TIED, tcp={"direct-again": 0.8}),
        replace(TIED, blocks=1),
        replace(TIED, arms=TIED.arms[2:], same_as={}),
        replace(TIED, stop_after=0),
    ],
)
def test_where_nothing_may_be_ranked_no_arm_is_named_first_and_it_is_said_why(study: Study):
    analysis = judge(study.results())
    assert unranked(analysis) == analysis.same.explanation != ""
    found = [one for condition in answers(analysis) for one in condition.answers]
    assert all(not one.first and one.text.startswith("not ranked; estimates against direct") for one in found)
    assert bool(found) == any(cell.against_direct and cell.spread for cell in analysis.cells)


def test_estimates_that_may_not_be_ranked_are_in_order_and_many_are_counted():
    unlike = judge(replace(TIED, tcp={**TIED.tcp, "direct-again": 0.8}).results())
    text = said(unlike, "TCP goodput")
    assert text.index("nebula 6") < text.index("yggdrasil 4") < text.index("3")
    assert text.endswith(" and 1 more.")


def test_an_arm_in_front_that_often_fails_says_so():
    fails = tuple(("nebula", "tcp", block) for block in (1, 2))
    few = replace(TIED, arms=("direct", "direct-again", "nebula", "tinc"), blocks=8, fails=fails)
    assert " Nebula is unreliable" in said(judge(few.results()), "TCP goodput")


def test_the_offered_load_that_held_arms_back_is_said():
    held = judge(replace(TIED, workloads=(UDP,)).results())
    assert "limited by the offered load" in said(held, UDP.metrics[0].title)


def test_two_workloads_with_one_metric_say_which_is_meant():
    again = replace(TCP, name="tcp-again")
    (condition,) = answers(judge(replace(TIED, workloads=(TCP, again)).results()))
    assert [one.title for one in condition.answers] == ["TCP goodput (tcp)", "TCP goodput (tcp-again)"]
