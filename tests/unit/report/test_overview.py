"""A page begins with the answer, which says what it rests on and what the numbers do not show."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tunnelmark import registry
from tunnelmark.analyse import judge
from tunnelmark.cli import main
from tunnelmark.report import html, overview
from unit.builders import PING, TCP, UDP, Study
from unit.conditions import STUDY, analysed

CLEAR = Study(
    arms=("direct", "direct-again", "tinc", "nebula"),
    workloads=(TCP,),
    tcp={"tinc": 0.5, "nebula": 0.8},
    noise=0.01,
    blocks=8,
)


@pytest.mark.parametrize("blocks", [1, 8])
def test_it_says_what_it_rests_on(blocks):
    said = overview.rests_on(judge(replace(CLEAR, blocks=blocks).results()))
    assert said[0] == ("One block." if blocks == 1 else "8 blocks, each with every arm in a new order.")
    assert any("good" in one for one in said)
    assert any("Brackets are 95 %" in one for one in said) == (blocks == 8)


def test_the_answer_leads_the_page():
    text = html.render(judge(CLEAR.results()))
    assert text.index("In short: which one?") < text.index("What was found</h2>")
    assert "<strong>nebula</strong> is best, ahead of tinc: " in text


def test_it_says_what_the_numbers_do_not_show():
    said = overview.not_shown(analysed(STUDY, {}))
    assert "Other links than these 2, other traffic than tcp, and what comes after more than 3 s." in said
    assert "TCP from the last node to the first." in said
    both = replace(TCP, options={"flows": "both", "congestion_control": "cubic"})
    said = overview.not_shown(judge(replace(CLEAR, workloads=(both,)).results()))
    assert "TCP with another congestion control than CUBIC." in said


def test_it_says_that_a_ping_met_no_other_traffic():
    said = overview.not_shown(judge(Study(workloads=(PING,)).results()))
    assert "What other traffic does to ping: meanwhile the path carried nothing else." in said
    assert "to ping" not in " ".join(overview.not_shown(analysed(STUDY, {})))


def test_it_says_that_tcp_takes_disorder_otherwise_between_hosts_of_one_machine():
    near = replace(CLEAR.profiles[0], name="netem", impaired=True, undelayed=True)
    told = "Two machines: netem lets some packets overtake others without any delay"
    assert told in " ".join(overview.not_shown(judge(replace(CLEAR, profiles=(near,)).results())))
    assert "Two machines" not in " ".join(overview.not_shown(judge(CLEAR.results())))
    hosts = replace(CLEAR, profiles=(near,), environment={"hosts": {"a": {}, "b": {}}})
    assert "Two machines" not in " ".join(overview.not_shown(judge(hosts.results())))


def test_it_says_that_no_link_lost_packets_where_none_was_made_to():
    told = "A link that loses or delays packets: none here was made to"
    said = " ".join(overview.not_shown(judge(CLEAR.results())))
    assert told in said
    (command,) = re.findall("`tunnelmark (compare [^`]*)`", said)
    # As it was read: a command that a report names has to be one that there is.
    assert main([*command.split(), "--dry-run"]) == 0
    for unlike in (
        replace(CLEAR, profiles=(*CLEAR.profiles, replace(CLEAR.profiles[0], name="lossy", impaired=True))),
        replace(CLEAR, environment={"hosts": {"a": {}, "b": {}}}),
    ):
        assert told not in " ".join(overview.not_shown(judge(unlike.results())))


def test_it_says_which_versions_were_measured_where_that_is_known():
    known = {"vpns": {"tinc": {"version": "1.0.36"}, "nebula": {"version": "1.6.1"}, "direct": {"version": "6.1"}}}
    said = overview.not_shown(judge(replace(CLEAR, environment=known).results()))
    assert "Other versions than tinc 1.0.36 and nebula 1.6.1." in said


@pytest.mark.parametrize(
    ("vpns", "told"),
    [
        ({"tinc": "wireguard-go"}, ["The kernel's WireGuard: wireguard-go is WireGuard in user space."]),
        ({"tinc": "wireguard-go", "nebula": "wireguard"}, []),
        ({}, []),
    ],
)
def test_it_says_that_the_kernels_wireguard_is_another_thing(vpns: dict[str, str], told: list[str]) -> None:
    said = overview.not_shown(judge(replace(CLEAR, vpns=vpns).results()))
    assert [one for one in said if "WireGuard" in one] == told


def test_every_wireguard_in_user_space_is_known_as_one() -> None:
    found = {name for name, driver in registry.vpns().items() if driver.title.startswith("WireGuard (")}
    assert found == {*overview.USER_SPACE_WIREGUARD, overview.KERNEL_WIREGUARD}


def test_the_first_table_of_arms_says_what_each_is_and_in_which_version() -> None:
    results = replace(CLEAR, environment={"vpns": {"tinc": {"version": "1.0.36"}, "nebula": None}}).results()
    arms = tuple(replace(arm, title="Nebula") if arm.name == "nebula" else arm for arm in results.plan.arms)
    arms = tuple(replace(arm, title="WireGuard (x)") if arm.name == "tinc" else arm for arm in arms)
    page = html.render(judge(replace(results, plan=replace(results.plan, arms=arms))))
    assert page.count('<th scope="row">tinc<span class="small">WireGuard (x) 1.0.36</span></th>') == 1
    assert '<th scope="row">nebula</th>' in page and 'direct<span class="small">' not in page
    own = {"vpns": {"tinc": {"version": "1"}, "tinc (new)": {"version": "2"}}}
    analysis = judge(
        replace(CLEAR, arms=("direct", "new"), same_as={}, vpns={"new": "tinc"}, environment=own).results()
    )
    assert [overview.described(analysis, arm) for arm in analysis.results.plan.arms] == ["", "2"]


def test_direct_alone_has_no_answer() -> None:
    assert "In short" not in html.render(judge(Study(arms=("direct",), same_as={}).results()))


def test_where_nothing_may_be_ranked_the_page_gives_estimates_and_no_order_of_merit() -> None:
    text = html.render(judge(replace(CLEAR, tcp={"tinc": 0.5, "direct-again": 0.7}).results()))
    assert "not ranked; estimates against direct, the most favourable first: nebula" in text
    assert "is best" not in text


def test_a_link_without_a_rate_is_said_to_show_what_the_machine_carries() -> None:
    free = replace(CLEAR.profiles[0], name="wifi-bad", rate=None, impaired=True)
    said = " ".join(overview.not_shown(judge(replace(CLEAR, profiles=(free,)).results())))
    assert "wifi-bad limits no rate: direct's " in said and "`--profile wifi-bad+fast-ethernet` limits it." in said
    for profile in (replace(free, impaired=False), replace(free, rate=100_000_000)):
        assert "no rate" not in " ".join(overview.not_shown(judge(replace(CLEAR, profiles=(profile,)).results())))


@pytest.mark.parametrize(("lost", "said"), [(60.0, True), (2.0, False)])
def test_floods_of_which_direct_loses_much_show_little_of_a_vpn(lost: float, said: bool) -> None:
    study = replace(CLEAR, workloads=(TCP, UDP), loss={"direct": lost, "tinc": 70.0}, noise=0.001)
    found = [each for each in overview.not_shown(judge(study.results())) if "flood" in each]
    assert bool(found) == said
    assert all(f"direct itself loses 60 % over {study.profiles[0].name}" in each for each in found)


def test_the_head_of_a_page_says_of_what_kinds_its_arms_are() -> None:
    found = judge(replace(CLEAR, arms=("direct", "direct-again", "nebula", "tinc")).results())
    assert overview.arms(found) == "4 arms (2 with a VPN, the bare link, 1 second name)"


def test_a_share_that_is_not_of_lost_datagrams_is_not_said_to_be_lost() -> None:
    """As it was read: "direct itself loses 100 %", which was the share of bytes that came on the direct path."""
    came = replace(UDP.metrics[1], name="path_direct", primary=False)
    udp = replace(UDP, metrics=(UDP.metrics[0], came))
    results = replace(CLEAR, workloads=(TCP, UDP), noise=0.001).results()
    rows = [
        replace(
            row,
            samples=tuple(
                replace(s, metric="path_direct", value=100.0) if s.metric == "loss" else s for s in row.samples
            ),
        )
        for row in results.trials
    ]
    plan = replace(results.plan, workloads=(TCP, udp))
    said = overview.not_shown(judge(replace(results, plan=plan, trials=tuple(rows))))
    assert not [each for each in said if "flood" in each]
