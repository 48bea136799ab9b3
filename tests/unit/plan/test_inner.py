"""The network on top of a VPN: of a study, of an arm, and of the arm that another is the same as."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelmark.errors import PlanError
from tunnelmark.plan.model import InnerNetwork
from unit.plan.test_sysctls import loaded

OF_ALL = "inner = { vxlan = true, mtu = 1230 }\n"


def test_an_arm_has_that_of_its_study_or_its_own(tmp_path: Path):
    own = '[[arm]]\nname = "other"\nvpn = "tinc"\ninner = { vxlan = true }\n'
    arms = {arm.name: arm.inner for arm in loaded(tmp_path, "", own).arms}
    assert arms.pop("other") == InnerNetwork()
    assert set(arms.values()) == {None}


def test_that_of_a_study_is_that_of_all_its_arms(tmp_path: Path):
    assert {arm.inner for arm in loaded(tmp_path, OF_ALL).arms} == {InnerNetwork(1230)}


def test_it_is_a_vxlan_or_a_geneve(tmp_path: Path):
    study = loaded(tmp_path, "inner = { geneve = true, mtu = 1230 }\n")
    assert {arm.inner for arm in study.arms} == {InnerNetwork(1230, kind="geneve")}


@pytest.mark.parametrize(
    "value",
    ["{ vxlan = false }", "{ vxlan = true, geneve = true }", "{ mtu = 1230 }", "{ vxlan = true, mtu = 100 }", "true"],
)
def test_what_is_none_is_refused(tmp_path: Path, value: str):
    with pytest.raises(PlanError, match="inner"):
        loaded(tmp_path, "", f'[[arm]]\nname = "other"\nvpn = "tinc"\ninner = {value}\n')


def test_ipv6_has_room_or_is_refused(tmp_path: Path):
    assert {arm.inner for arm in loaded(tmp_path, "inner = { vxlan = true, mtu = 1280, ipv6 = true }\n").arms} == {
        InnerNetwork(1280, ipv6=True)
    }
    with pytest.raises(PlanError) as raised:
        loaded(tmp_path, "inner = { vxlan = true, mtu = 1230, ipv6 = true }\n")
    assert raised.value.hint == "should have an MTU of 1280 bytes or more, which IPv6 asks for"


def test_in_words_it_says_its_mtu_and_that_it_is_of_ipv6():
    assert (str(InnerNetwork()), str(InnerNetwork(1230))) == ("VXLAN", "VXLAN, MTU 1230")
    assert str(InnerNetwork(1400, ipv6=True)) == "VXLAN, MTU 1400, IPv6"
    assert str(InnerNetwork(kind="geneve")) == "Geneve"
