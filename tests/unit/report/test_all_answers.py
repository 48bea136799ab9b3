"""Over all answers together: which VPNs no other is shown to beat, and where each of the others is beaten."""

from __future__ import annotations

from dataclasses import replace

from tunnelmark.analyse import judge
from tunnelmark.report import all_answers, html
from unit.builders import PING, TCP, Study

STUDY = Study(
    arms=("direct", "direct-again", "tinc", "nebula", "openvpn"),
    workloads=(PING, TCP),
    tcp={"tinc": 0.5, "nebula": 0.8, "openvpn": 0.5},
    noise=0.01,
    blocks=8,
)


def _said(study: Study) -> str:
    found = all_answers.together(judge(study.results()))
    return "" if found is None else f"{found.title}: {found.first}{found.text}"


def test_the_vpn_that_no_other_beats_is_named_first_and_the_others_with_where_they_are_beaten():
    assert _said(STUDY) == (
        "both answers together: nebula is not shown to be beaten in any of them; beaten in TCP goodput: tinc and openvpn."
    )


def test_where_each_is_beaten_in_something_it_depends_on_what_counts():
    either = replace(STUDY, rtt={"nebula": 2.0})
    assert _said(either) == (
        "both answers together: each VPN is beaten in at least one of them, so it depends on what counts; "
        "beaten in TCP goodput: tinc and openvpn; in round-trip time, median: nebula."
    )


def test_an_unreliable_vpn_is_not_named_first():
    failing = replace(STUDY, fails=(("nebula", "tcp", 1), ("nebula", "tcp", 2)))
    said = _said(failing)
    assert said.startswith("both answers together: only nebula, of which 14/16 trials succeeded, is not shown to be")


def test_nothing_is_said_where_no_vpn_is_shown_to_be_ahead_or_one_answer_says_it_all():
    assert _said(replace(STUDY, tcp={})) == ""
    assert _said(replace(STUDY, workloads=(TCP,))) == ""


def test_answers_name_what_people_do_whose_traffic_is_like_the_workload_s():
    uses = (PING, replace(TCP, serves="downloads and backups"))
    text = html.render(judge(replace(STUDY, workloads=uses).results()))
    assert "TCP goodput, as for downloads and backups:" in text and "Round-trip time, median:" in text


def test_an_arm_that_most_answers_beat_is_counted_and_the_page_says_it_before_the_answers():
    profiles = tuple(replace(STUDY.profiles[0], name=name, title=name) for name in ("lan", "wifi", "dsl"))
    text = html.render(judge(replace(STUDY, profiles=profiles).results()))
    assert "beaten in 3 of 6: tinc and openvpn." in text
    assert text.index("All 6 answers together") < text.index("The arm with the most favourable estimate")
