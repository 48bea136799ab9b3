"""Topologies with routers: what a file may say, and who reaches what by way of whom."""

from __future__ import annotations

import re

import pytest

from tunnelmark.errors import PlanError, TunnelmarkError
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_profile, load_topology
from tunnelmark.plan.model import Link, Topology
from tunnelmark.plan.routers import KINDS, Router, Service
from tunnelmark.plan.routes import further_ways, hops, reaches, routes, translators
from tunnelmark.plan.topologies import parse_topology

FILES = Files((PACKAGED,))

CHAIN = """
[topology]
title = "Two nodes, and two routers between them"
nodes = ["a", "b"]
[[router]]
name = "r1"
[[router]]
name = "r2"
{more}
[[link]]
name = "left"
nodes = ["a", "r1"]
profile = "unshaped"
[[link]]
name = "middle"
nodes = ["r1", "r2"]
[[link]]
name = "right"
nodes = ["r2", "b"]
"""


def parsed(text: str) -> Topology:
    return parse_topology(text, "chain", "chain.toml", lambda name: load_profile(name, FILES))


def fault(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parsed(text)
    return f"{caught.value} ({caught.value.hint})"


def test_each_node_knows_the_router_that_leads_on() -> None:
    chain = parsed(CHAIN.format(more=""))
    assert routes(chain, "a") == {"left": None, "middle": ("left", "r1"), "right": ("left", "r1")}
    assert routes(chain, "r1") == {"left": None, "middle": None, "right": ("middle", "r2")}
    assert routes(chain, "b") == {"right": None, "middle": ("right", "r2"), "left": ("right", "r2")}


def test_a_link_may_have_a_profile_of_its_own() -> None:
    left, middle, _ = parsed(CHAIN.format(more="")).links
    assert left.profile is not None
    assert left.profile.name == "unshaped"
    assert middle.profile is None


def test_probes_look_at_the_link_of_the_study() -> None:
    probed = parsed(CHAIN.format(more="")).probed
    assert (probed.name, probed.nodes, [link.name for link in probed.links]) == ("chain", ("r1", "r2"), ["middle"])


def test_nothing_leads_behind_a_router_that_translates() -> None:
    home = parsed(CHAIN.format(more='outside = "middle"\nnat = "symmetric"'))
    assert home.routers[1].nat == KINDS["symmetric"]
    assert not reaches(home, "a", "b")
    assert reaches(home, "b", "a")


@pytest.mark.parametrize("name", ["two-sites", "behind-nat"])
def test_packaged_ones_hold(name: str) -> None:
    topology = load_topology(name, FILES)
    assert topology.routers


def test_of_equally_long_ways_the_first_stated_is_taken() -> None:
    links = (Link("l", ("a", "r", "s")), Link("m", ("r", "s", "b")))
    assert routes(Topology("t", "T", ("a", "b"), links, (Router("s"), Router("r"))), "a") == {
        "l": None,
        "m": ("l", "s"),
    }


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('outside = "left"', "'r2' is on no link called 'left'"),
        ('nat = "symmetric"', "nat needs to know the side of the Internet"),
        ('nat = "symetric"', "'full-cone', 'address-restricted', 'port-restricted', 'symmetric'"),
        ('block = ["udp/0"]', "a port such as 'tcp/443'"),
        ('block = ["icmp/7"]', "a port such as 'tcp/443'"),
        ('[[router]]\nname = "r3"', "'r3' joins 0 links"),
        ('[[router]]\nname = "a"', "'a' is here a second time"),
    ],
)
def test_what_no_router_can_be_is_refused(more: str, words: str) -> None:
    assert words in fault(CHAIN.format(more=more))


def test_nodes_that_nothing_joins_are_refused() -> None:
    assert "'a' and 'b' are joined by no link and no router" in fault(
        CHAIN.format(more="").replace('nodes = ["r1", "r2"]', 'nodes = ["r1", "a"]')
        + '[[link]]\nname = "more"\nnodes = ["r2", "b"]\n'
    )


def test_the_profile_of_a_link_must_be_there() -> None:
    assert "unshapd" in fault(CHAIN.format(more="").replace('"unshaped"', '"unshapd"'))


@pytest.mark.parametrize("text", ["udp", "tcp/443", "icmp"])
def test_a_service_reads_as_it_is_written(text: str) -> None:
    assert str(Service.parse(text)) == text


class TestKinds:
    def test_joined_to_a_name_they_take_the_place_of_what_routers_do(self) -> None:
        found = load_topology("behind-nat+symmetric+udp-blocked", FILES)
        one, other = found.routers
        assert found.name == "behind-nat+symmetric+udp-blocked"
        assert (one.nat, one.block) == (KINDS["symmetric"], ())
        assert (other.nat, other.block) == (KINDS["port-restricted"], (Service("udp"),))

    def test_one_is_for_all_routers_with_an_outside(self) -> None:
        assert [router.nat for router in load_topology("behind-nat+no-nat", FILES).routers] == [None, None]

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("behind-nat+symetric", "there is no kind of router called 'symetric'"),
            ("pair+symmetric", "pair has 0 routers with an outside"),
            ("behind-nat+symmetric+no-nat+no-nat", "2 routers with an outside, and 3 kinds"),
        ],
    )
    def test_what_fits_no_router_is_refused(self, name: str, words: str) -> None:
        with pytest.raises(TunnelmarkError, match=re.escape(words)):
            load_topology(name, FILES)

    def test_without_them_all_nodes_reach_each_other(self) -> None:
        nat = load_topology("behind-nat", FILES)
        assert nat.filtered
        assert not nat.open.filtered
        assert reaches(nat.open, "a", "b")
        assert not reaches(nat, "a", "b")


def test_routers_that_translate_a_sender_are_known_to_whom_it_sends() -> None:
    nat = load_topology("behind-nat", FILES)
    assert translators(nat, "a", "b") == ["ra"]
    assert translators(nat, "s", "b") == []
    assert translators(nat.open, "a", "b") == []


def test_the_hub_must_be_a_node() -> None:
    assert load_topology("behind-nat", FILES).hub == "s"
    hub = CHAIN.format(more="").replace('nodes = ["a", "b"]', 'nodes = ["a", "b"]\nhub = "r1"', 1)
    assert "the topology has no node called 'r1'" in fault(hub)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (["a", "middle"], "'middle' is the laboratory's own node"),
        (["frankfurt-edge-1", "frankfurt-edge-2"], "have the same first 9 letters"),
    ],
)
def test_names_that_no_interface_can_have_are_refused(nodes: list[str], words: str) -> None:
    assert words in fault(f'[topology]\ntitle = "T"\nnodes = {nodes}\n[[link]]\nname = "l"\nnodes = "all"\n')


def test_nodes_may_be_counted() -> None:
    lan = load_topology("lan-100", FILES)
    assert (len(lan.nodes), lan.nodes[0], lan.nodes[-1]) == (100, "n1", "n100")
    assert lan.links[0].nodes == lan.nodes


@pytest.mark.parametrize("count", ["1", "201", "true"])
def test_as_many_as_no_link_has_are_refused(count: str) -> None:
    text = f'[topology]\ntitle = "T"\nnodes = {count}\n[[link]]\nname = "l"\nnodes = "all"\n'
    assert "from 2 to 200" in fault(text)


def test_the_links_between_the_ends_of_a_chain_are_known_by_whose_packets_they_carry():
    chain = load_topology("chain-3", FILES)
    assert [name for _, name in hops(chain, "r1", "r2")] == ["v1", "v2", "v3"]
    assert further_ways(chain, "r1", "r2") == {
        ("v1", "v2"): ["source"],
        ("v2", "v3"): ["source"],
        ("v3", "r2"): ["source"],
        ("v3", "v2"): ["target"],
        ("v2", "v1"): ["target"],
        ("v1", "r1"): ["target"],
    }
    assert further_ways(load_topology("pair", FILES), "a", "b") == {}
