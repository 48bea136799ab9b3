"""VPNs on gateways in a study: which arms may be, on which topologies, and what `compare` makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import PlanError
from tunnelmark.plan.compose import comparison
from tunnelmark.plan.load import load_study, parse_study
from tunnelmark.plan.model import Study
from unit.plan.studies import ARMS, FILES, STUDY, WORKLOADS, write
from unit.plan.test_cascade_arms import KNOWN

SITES = STUDY.replace('"pair"', '"two-gateways"')


def loaded(folder: Path, arm: str, study: str = SITES) -> Study:
    return load_study(write(folder, f"{study}{ARMS}\n[[arm]]\n{arm}\n{WORKLOADS}"), FILES, KNOWN)


def test_an_arm_says_that_it_runs_on_gateways(tmp_path: Path):
    again = '[[arm]]\nname = "again"\nsame_as = "sites"'
    arms = loaded(tmp_path, f'name = "sites"\nvpn = "openvpn"\nbehind_gateways = true\n{again}').arms
    assert [arm.behind_gateways for arm in arms] == [False, False, True, True]


@pytest.mark.parametrize(
    ("arm", "what", "hint"),
    [
        ('name = "tinc"\nbehind_gateways = true', "tinc has no driver that leads to hosts", "openvpn or wireguard-go"),
        ('name = "other"\nvpn = "direct"\nbehind_gateways = true', "no gateways", "direct is routed"),
        ('name = "openvpn"\nbehind_gateways = true\ncascade = "series"', "no 'cascade'", "leave one out"),
        ('name = "openvpn"\nbehind_gateways = true\nnormalised = true', "no 'normalised'", "leave one out"),
        ('name = "openvpn"\nbehind_gateways = true\ninner = { vxlan = true }', "no 'inner'", "leave one out"),
        ('name = "wireguard-go"\nbehind_gateways = true\nunderlay = "ipv6"', "IPv4 underlay", "leave one"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, arm: str, what: str, hint: str):
    with pytest.raises(PlanError) as raised:
        loaded(tmp_path, arm)
    said = f"{raised.value.message} {raised.value.hint}"
    assert what in said
    assert hint in said


@pytest.mark.parametrize("topology", ["pair", "chain-1", "behind-nat"])
def test_two_nodes_must_forward(tmp_path: Path, topology: str):
    with pytest.raises(PlanError, match=f"{topology} has no two nodes that forward"):
        loaded(tmp_path, 'name = "openvpn"\nbehind_gateways = true', STUDY.replace('"pair"', f'"{topology}"'))


def test_compare_puts_each_vpn_on_the_gateways_and_leaves_the_yardstick_out():
    text = comparison(["openvpn", "wireguard-go"], FILES, KNOWN, topology="two-gateways", behind_gateways=True)
    study = parse_study(text, "compare", FILES, KNOWN)
    assert {arm.name: arm.behind_gateways for arm in study.arms} == {
        "direct": False,
        "direct-again": False,
        "openvpn": True,
        "wireguard-go": True,
        "openvpn-again": True,
    }
    assert study.title == "openvpn, wireguard-go between gateways and the bare link"
