"""An arm may run programs of its own: two builds of one VPN are two arms that differ in nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunnelmark.errors import PlanError, UnknownName, UsageError
from tunnelmark.plan.compose import two_builds
from tunnelmark.plan.composed_workloads import ComposedWorkload, counted
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Arm, Study
from tunnelmark.units import Rate
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS

KNOWN = replace(CATALOGUE, programs={"tinc": frozenset({"tincd", "tinc"})})
OLD, NEW = "/opt/old/tincd", "/opt/new/tincd"


def study(arm: str) -> Study:
    return parse_study(f"{STUDY}{ARMS}\n[[arm]]\n{arm}{WORKLOADS}", "mine.toml", FILES, KNOWN)


def composed(vpn: str = "tinc", **more: object) -> Study:
    text = two_builds(
        vpn,
        {"tincd": OLD},
        {"tincd": NEW},
        FILES,
        KNOWN,
        labels=("1.0", 'git:"main"'),
        profiles=("unshaped",),
        **more,  # type: ignore[arg-type]
    )
    return parse_study(text, "ab", FILES, KNOWN)


def test_a_program_is_named_with_its_path():
    arms = study(f'name = "mine"\nvpn = "tinc"\nprograms = {{ tincd = "{OLD}" }}\n').arms
    assert arms[-1] == Arm("mine", "tinc", programs={"tincd": OLD})


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ('{ tincdd = "/opt/tincdd" }', "no program called 'tincdd'"),
        ('{ tincd = "/opt/other" }', "does not end"),
        ('{ tincd = "opt/tincd" }', "is not a whole path"),
    ],
)
def test_a_program_that_would_not_be_found_is_refused(programs: str, said: str):
    with pytest.raises(PlanError) as refused:
        study(f'name = "tinc"\nprograms = {programs}\n')
    assert said.replace("does not end", "is not a whole path that ends in tincd") in str(refused.value)


def test_two_builds_differ_in_their_programs_alone_and_the_old_one_is_there_twice():
    direct, old, new, again = composed().arms
    assert direct == Arm("direct", "direct")
    assert old == Arm("old", "tinc", programs={"tincd": OLD}, title="1.0")
    assert new == replace(old, name="new", programs={"tincd": NEW}, title='git:"main"')
    assert again == replace(old, name="old-again", same_as="old")


def test_two_builds_are_measured_by_tcp_unless_something_else_is_asked_for():
    assert [use.name for use in composed().workloads] == ["tcp"]
    assert [use.name for use in composed(workloads=[ComposedWorkload("ping"), ComposedWorkload("udp")]).workloads] == [
        "ping",
        "udp",
    ]


def test_by_counted_time_a_datagram_is_sent_each_millisecond():
    (use,) = composed(workloads=counted(())).workloads
    assert (use.name, 1000 * 8 * 1200 / Rate.parse(str(use.options["rate"]))) == ("udp", 1)


def test_other_traffic_may_be_named_for_counted_time_and_is_as_it_is_elsewhere():
    uses = composed(workloads=counted(("tcp", "udp"))).workloads
    assert [(use.name, "rate" in use.options) for use in uses] == [("tcp", False), ("udp", True)]


def test_what_has_no_builds_or_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="the bare link has no builds"):
        composed("direct")
    with pytest.raises(UnknownName):
        composed("tunc")
