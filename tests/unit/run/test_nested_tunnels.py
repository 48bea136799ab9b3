"""Nested tunnels: who they join, through which addresses, and what room is left in each."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest

from tunnelmark.errors import SetupFailed
from tunnelmark.lab.addressing import specs_of
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.underlay import Underlay
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.plan.model import Profile, Topology
from tunnelmark.run.cascades import nested_in

CHAIN = load_topology("chain-3", Files((PACKAGED,)))


class Chain(Underlay):
    """What a cascade asks of a lab."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(specs_of(topology, Profile("bare", "bare", "test")))
        self.topology = topology
        self.nodes = dict.fromkeys(topology.nodes)


def lab(topology: Topology = CHAIN) -> Lab:
    return cast(Lab, Chain(topology))


def test_the_first_node_dials_each_other_one_from_its_address_in_the_tunnel_before():
    tunnels = nested_in(lab(), 60)
    assert [[host.name for host in tunnel.hosts] for tunnel in tunnels] == [
        ["v1", "r1"],
        ["v2", "r1"],
        ["v3", "r1"],
        ["r2", "r1"],
    ]
    clients = [tunnel.hosts[1] for tunnel in tunnels]
    assert [client.instance for client in clients] == [0, 1, 2, 3]
    assert clients[0].underlay == lab().address("r1")
    assert [inner.underlay for inner in clients[1:]] == [outer.overlay.ip for outer in clients[:-1]]


def test_through_a_tunnel_nothing_is_reached_but_the_end_of_the_next_one():
    tunnels = nested_in(lab(), 60)
    for outer, inner in pairwise(tunnels):
        (behind,) = outer.hub.behind
        assert [*behind] == [inner.hub.underlay]
    assert tunnels[-1].hub.behind == ()


def test_each_tunnel_takes_its_overhead_from_the_one_around_it():
    assert [tunnel.mtu for tunnel in nested_in(lab(), 60)] == [1440, 1380, 1320, 1260]
    assert [tunnel.mtu for tunnel in nested_in(lab(), 0)] == [1500] * 4


def test_a_link_further_on_may_have_the_least_room():
    links = [replace(link, mtu=9000 if link.name != "leg3" else 1400) for link in CHAIN.links]
    assert [tunnel.mtu for tunnel in nested_in(lab(replace(CHAIN, links=tuple(links))), 60)] == [8940, 8880, 1340, 1280]


@pytest.mark.parametrize(("asked", "innermost"), [(1200, 1200), (1400, 1260), (None, 1260)])
def test_what_is_asked_for_is_the_innermost_s_as_far_as_it_fits(asked: int | None, innermost: int):
    assert [tunnel.mtu for tunnel in nested_in(lab(), 60, asked)] == [1440, 1380, 1320, innermost]


def test_too_many_leave_no_room():
    with pytest.raises(SetupFailed, match="4 nested tunnels leave 300 bytes") as raised:
        nested_in(lab(), 300)
    assert "shorter chain" in raised.value.hint
