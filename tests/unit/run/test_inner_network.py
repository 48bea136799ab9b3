"""A VXLAN on top of an overlay, as commands."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from tunnelmark.plan.model import InnerNetwork
from tunnelmark.run.inner_network import addresses, commands

FOUR = {"a": ip_address("10.60.0.1"), "b": ip_address("10.60.0.2"), "c": ip_address("10.60.0.3")}
SIX = {"a": ip_address("fd00::1"), "b": ip_address("fd00::2")}


def lines(overlay: dict, node: str, mtu: int | None, below: int = 1420) -> list[str]:
    return [" ".join(step.argv) for step in commands(node, overlay, InnerNetwork(mtu), below)]


@pytest.mark.parametrize(("overlay", "stated", "mtu"), [(FOUR, None, 1370), (SIX, None, 1350), (FOUR, 1450, 1450)])
def test_its_mtu_is_stated_or_what_is_left(overlay: dict, stated: int | None, mtu: int):
    assert f"ip link add vxlan0 mtu {mtu} type vxlan" in lines(overlay, "a", stated)[0]


def test_frames_to_whom_is_not_known_yet_go_to_every_other_node():
    sent = [line for line in lines(FOUR, "b", None) if line.startswith("bridge")]
    assert [line.split()[-1] for line in sent] == ["10.60.0.1", "10.60.0.3"]


def test_each_node_has_an_address_of_its_own_in_it():
    inside = addresses(FOUR)
    assert len(set(inside.values())) == 3
    assert f"ip address add {inside['b']}/16 dev vxlan0" in lines(FOUR, "b", None)
