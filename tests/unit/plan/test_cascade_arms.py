"""Cascades in a study: which arms may be one, on which topologies, and what `compare` makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tunnelmark import registry
from tunnelmark.errors import PlanError
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.load import load_profile, load_study, parse_study
from tunnelmark.plan.model import Study
from tunnelmark.plan.topologies import parse_topology
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS, write

KNOWN = replace(CATALOGUE, cascades=frozenset({"wireguard-go", "openvpn"}), ipv6=frozenset({"wireguard-go"}))
CHAINED = STUDY.replace('"pair"', '"chain-1", "chain-3"')


def loaded(folder: Path, arm: str, study: str = CHAINED) -> Study:
    return load_study(write(folder, f"{study}{ARMS}\n[[arm]]\n{arm}\n{WORKLOADS}"), FILES, KNOWN)


@pytest.mark.parametrize("kind", ["series", "nested"])
def test_an_arm_says_how_its_tunnels_follow_each_other(tmp_path: Path, kind: str):
    again = '[[arm]]\nname = "again"\nsame_as = "mine"'
    study = loaded(tmp_path, f'name = "mine"\nvpn = "wireguard-go"\ncascade = "{kind}"\n{again}')
    assert {arm.name: arm.cascade for arm in study.arms} == {
        "direct": None,
        "direct-again": None,
        "mine": kind,
        "again": kind,
    }


def test_without_it_any_vpn_takes_part_from_end_to_end(tmp_path: Path):
    assert loaded(tmp_path, 'name = "nebula"').arms[-1].cascade is None


@pytest.mark.parametrize(
    ("arm", "what", "hint"),
    [
        ('name = "tinc"\ncascade = "series"', "tinc has no driver for a cascade", "openvpn or wireguard-go"),
        ('name = "other"\nvpn = "direct"\ncascade = "nested"', "no tunnels", "direct is routed"),
        ('name = "openvpn"\ncascade = "parallel"', "cascade", '"series"'),
        ('name = "openvpn"\ncascade = "nested"\nnormalised = true', "cannot be normalised", "leave `normalised` out"),
        ('name = "wireguard-go"\ncascade = "series"\nunderlay = "ipv6"', "IPv4 underlay", "leave `cascade`"),
        ('name = "bare"\nsame_as = "direct"\ncascade = "series"', "no tunnels", "direct is routed"),
    ],
)
def test_what_cannot_be_one_is_refused(tmp_path: Path, arm: str, what: str, hint: str):
    with pytest.raises(PlanError) as raised:
        loaded(tmp_path, arm)
    said = f"{raised.value.message} {raised.value.hint}"
    assert what in said
    assert hint in said
    assert "arm" in said


def test_an_arm_is_not_the_same_as_one_with_other_tunnels(tmp_path: Path):
    arms = 'name = "openvpn"\n[[arm]]\nname = "again"\nsame_as = "openvpn"\ncascade = "series"'
    with pytest.raises(PlanError, match="not the same"):
        loaded(tmp_path, arms)


@pytest.mark.parametrize("topology", ["pair", "lan-3", "behind-nat"])
def test_nodes_must_forward(tmp_path: Path, topology: str):
    study = STUDY.replace('"pair"', f'"chain-1", "{topology}"')
    with pytest.raises(PlanError) as raised:
        loaded(tmp_path, 'name = "openvpn"\ncascade = "series"', study)
    assert f"no node of {topology} forwards" in raised.value.message
    assert "chain-1 or chain-3" in f"{raised.value.message} {raised.value.hint}"


def test_a_node_that_forwards_is_no_hub():
    text = (
        '[topology]\ntitle = "t"\nnodes = ["a", "v", "b"]\nforwards = ["v"]\nhub = "v"\n'
        '[[link]]\nname = "one"\nnodes = ["a", "v"]\n[[link]]\nname = "two"\nnodes = ["v", "b"]\n'
    )
    with pytest.raises(PlanError, match="'v' only forwards"):
        parse_topology(text, "mine", "mine.toml", lambda name: load_profile(name, FILES))


def test_a_comparison_makes_each_vpn_one_and_leaves_the_yardstick_out():
    text = comparison(["openvpn", "wireguard-go"], FILES, KNOWN, topology="chain-3", cascade="nested")
    assert {arm.name: arm.cascade for arm in parse_study(text, "compare", FILES, KNOWN).arms} == {
        "direct": None,
        "direct-again": None,
        "openvpn": "nested",
        "wireguard-go": "nested",
        "openvpn-again": "nested",
    }


def test_a_comparison_on_other_links_says_what_a_cascade_needs():
    with pytest.raises(PlanError, match="no node of pair forwards"):
        parse_study(comparison(["openvpn"], FILES, KNOWN, cascade="series"), "compare", FILES, KNOWN)


def test_the_packaged_study_has_each_vpn_end_to_end_and_as_cascades():
    arms = load_study("cascade", FILES, registry.catalogue()).arms
    kinds = {(arm.vpn, arm.options.get("proto", "udp"), arm.cascade) for arm in arms}
    assert kinds == {
        ("direct", "udp", None),
        *(("wireguard-go", "udp", kind) for kind in (None, "series", "nested")),
        *(("openvpn", "udp", kind) for kind in (None, "series")),
    }
