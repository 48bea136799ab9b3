"""A VXLAN or a Geneve on top of an overlay, as commands."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from tunnelmark.errors import SetupFailed
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


def test_addresses_of_ipv6_are_there_at_once_and_the_others_are_not():
    made = [" ".join(step.argv) for step in commands("b", FOUR, InnerNetwork(1400, ipv6=True), 1420)]
    assert "ip address add fd61::2/64 dev vxlan0 nodad" in made
    assert not any("10.61." in line for line in made)


def test_an_overlay_that_has_no_room_for_ipv6_inside_is_refused():
    with pytest.raises(SetupFailed, match="MTU of 1300 leaves 1250 bytes inside a VXLAN, and IPv6 asks for 1280"):
        commands("b", FOUR, InnerNetwork(ipv6=True), 1300)


def geneve(overlay: dict, node: str, *, ipv6: bool = False) -> list[str]:
    inner = InnerNetwork(1400, ipv6, "geneve")
    return [" ".join(step.argv) for step in commands(node, overlay, inner, 1500)]


def test_a_geneve_says_of_each_other_node_where_it_is_and_what_its_card_is_called():
    made = geneve(FOUR, "b")
    assert made[0].startswith("ip link add geneve0 mtu 1400 address 02:61:00:00:00:02 type geneve external")
    for place, node in ((1, "a"), (3, "c")):
        inside = f"10.61.0.{place}"
        assert f"ip neighbour add {inside} dev geneve0 lladdr 02:61:00:00:00:0{place} nud permanent" in made
        assert f"ip route add {inside} encap ip id 1 dst {FOUR[node]} dev geneve0" in made
    assert not any("10.61.0.2 " in line for line in made)


def test_a_geneve_over_ipv6_has_checksums():
    assert "ip route add 10.61.0.2 encap ip6 id 1 dst fd00::2 csum dev geneve0" in geneve(SIX, "a")


def test_a_geneve_carries_ipv6_over_either():
    assert "ip route add fd61::2 encap ip id 1 dst 10.60.0.2 dev geneve0" in geneve(FOUR, "a", ipv6=True)
    assert "ip address add fd61::1/64 dev geneve0 nodad" in geneve(FOUR, "a", ipv6=True)
