"""Between which nodes of a topology the traffic runs: by default from the first to the last, or as its name says."""

from __future__ import annotations

import pytest

from tunnelmark.errors import PlanError
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology, parse_study
from tunnelmark.plan.order import order
from unit.plan.studies import ARMS, CATALOGUE, FILES, STUDY, WORKLOADS

ALL = Files((PACKAGED,))


def test_a_topology_is_named_with_the_ends_of_its_traffic():
    made = load_topology("lan-3+b-to-c", ALL)
    assert (made.name, made.nodes) == ("lan-3+b-to-c", ("b", "a", "c"))
    assert [link.nodes for link in made.links] == [("b", "a", "c")], "forward is what leaves the first node of a link"
    assert made.title.endswith(", from b to c")
    assert load_topology("lan-3", ALL).nodes == ("a", "b", "c")


def test_ends_go_with_kinds_of_routers_and_leave_a_hub_as_it_is():
    made = load_topology("behind-nat+symmetric+b-to-a", ALL)
    assert (made.nodes[0], made.nodes[-1], made.hub) == ("b", "a", "s")
    assert {router.outside for router in made.routers} == {"internet"}


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("lan-3+b-to-d", "no node called 'd'", "two of a, b, c"),
        ("lan-3+b-to-b", "from a node to itself", "a-to-b"),
        ("chain-3+v1-to-r2", "is a chain", "a-to-b"),
    ],
)
def test_ends_that_cannot_be_are_refused(name: str, what: str, hint: str):
    with pytest.raises(PlanError) as raised:
        load_topology(name, ALL)
    assert what in raised.value.message
    assert hint in (raised.value.hint or "")


def test_a_study_measures_each_link_of_a_mesh_in_turn():
    text = STUDY.replace('"pair"', '"lan-3", "lan-3+a-to-b", "lan-3+b-to-c"') + ARMS + WORKLOADS
    plan = order(parse_study(text, "mine", FILES, CATALOGUE))
    assert {(trial.topology.nodes[0], trial.topology.nodes[-1]) for trial in plan.trials} == {
        ("a", "c"),
        ("a", "b"),
        ("b", "c"),
    }
    assert set(plan.study.inputs) == {"studies/mine.toml", "profiles/gigabit.toml", "topologies/lan-3.toml"}
