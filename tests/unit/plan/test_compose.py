"""A comparison is asked for in a few words and is a study like any other."""

import pytest

from tunnelmark import registry
from tunnelmark.errors import UnknownName, UsageError
from tunnelmark.plan.compose import comparison, traversal
from tunnelmark.plan.load import parse_study
from tunnelmark.plan.model import Arm
from unit.plan.studies import CATALOGUE, FILES


def test_it_holds_the_bare_link_and_the_first_vpn_twice():
    text = comparison(["tinc", "nebula"], FILES, CATALOGUE, profiles=["vdsl"], workloads=["tcp"], blocks=3, seed=9)
    study = parse_study(text, "compare", FILES, CATALOGUE)
    assert study.arms == (
        Arm("direct", "direct"),
        Arm("direct-again", "direct", same_as="direct"),
        Arm("anchor-chacha20", "anchor"),
        Arm("tinc", "tinc"),
        Arm("nebula", "nebula"),
        Arm("tinc-again", "tinc", same_as="tinc"),
    )
    assert [profile.name for profile in study.profiles] == ["vdsl"]
    assert [use.name for use in study.workloads] == ["tcp"]
    assert (study.blocks, study.seed) == (3, 9)


def test_each_profile_is_a_condition_and_stands_once():
    profiles = ["wifi-good+gigabit", "vdsl", "wifi-good+gigabit"]
    study = parse_study(comparison(["tinc"], FILES, CATALOGUE, profiles=profiles), "compare", FILES, CATALOGUE)
    assert [profile.name for profile in study.profiles] == ["wifi-good+gigabit", "vdsl"]


@pytest.mark.parametrize(
    ("profiles", "rate"),
    [
        (["gigabit"], None),
        (["unshaped"], None),
        (["unshaped", "vdsl"], None),  # of which there is no share that both have
        (["fast-ethernet"], "50 %"),
        (["wifi-bad+fast-ethernet", "gigabit"], "50 %"),
    ],
)
def test_slow_links_are_offered_half_of_what_they_carry(profiles: list[str], rate: str | None):
    text = comparison(["tinc"], FILES, CATALOGUE, profiles=profiles, workloads=["tcp", "udp"])
    (tcp, udp) = parse_study(text, "compare", FILES, CATALOGUE).workloads
    assert (tcp.options, udp.options.get("rate")) == ({}, rate)


def test_nodes_have_one_core_or_as_many_as_are_asked_for():
    usual, asked = comparison(["tinc"], FILES, CATALOGUE), comparison(["tinc"], FILES, CATALOGUE, cores=3)
    assert [parse_study(text, "compare", FILES, CATALOGUE).cores for text in (usual, asked)] == [1, 3]


def test_names_that_stand_twice_count_once():
    text = comparison(["tinc", "direct", "tinc"], FILES, CATALOGUE)
    assert [arm.name for arm in parse_study(text, "compare", FILES, CATALOGUE).arms] == [
        *("direct", "direct-again", "anchor-chacha20", "tinc", "tinc-again"),
    ]


@pytest.mark.parametrize(
    ("vpns", "anchor", "expected"),
    [
        (["tinc"], False, ["tinc", "tinc-again"]),
        (["tinc", "anchor"], True, ["tinc", "anchor", "tinc-again"]),
        (["anchor-chacha20", "tinc"], True, ["anchor-chacha20", "tinc", "tinc-again"]),
        (["anchor"], True, ["anchor"]),
    ],
)
def test_the_anchor_can_be_left_out_and_one_that_is_named_is_enough(vpns, anchor, expected):
    text = comparison(vpns, FILES, CATALOGUE, anchor=anchor)
    assert [arm.name for arm in parse_study(text, "compare", FILES, CATALOGUE).arms][2:] == expected


@pytest.mark.parametrize(
    ("vpns", "others", "hint"),
    [
        (["tink"], {}, "did you mean tinc?"),
        (["tinc"], {"profiles": ["gigabyte"]}, "did you mean gigabit?"),
        (["tinc"], {"topology": "pear"}, "did you mean pair?"),
        (["tinc"], {"workloads": ["tpc"]}, "did you mean tcp?"),
    ],
)
def test_unknown_names_give_the_nearest(vpns, others, hint):
    with pytest.raises(UnknownName) as caught:
        comparison(vpns, FILES, CATALOGUE, **others)
    assert hint in caught.value.hint


@pytest.mark.parametrize(("vpns", "workloads"), [([], ["ping"]), (["direct"], ["ping"]), (["tinc"], [])])
def test_there_must_be_something_to_compare(vpns, workloads):
    with pytest.raises(UsageError):
        comparison(vpns, FILES, CATALOGUE, workloads=workloads)


def test_paths_are_sought_over_joined_profiles_too():
    catalogue = registry.catalogue()
    text = traversal(["tinc"], FILES, catalogue, kinds=["full-cone"], profile="wifi-good+gigabit")
    study = parse_study(text, "traversal", FILES, catalogue)
    assert [profile.name for profile in study.profiles] == ["wifi-good+gigabit"]
    assert [topology.name for topology in study.topologies] == ["behind-nat+full-cone"]
    with pytest.raises(UnknownName, match="gigabyte"):
        traversal(["tinc"], FILES, catalogue, profile="wifi-good+gigabyte")
