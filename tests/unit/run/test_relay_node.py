"""The relay's node as a topology names it is the one that drivers are given."""

from ipaddress import IPv4Address
from types import SimpleNamespace
from typing import Any

import pytest

from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.run.deploy import mesh_of

FILES = Files((PACKAGED,))


@pytest.mark.parametrize(
    ("name", "relay"), [("pair", "a"), ("lan-3", "b"), ("behind-nat", "s"), ("lan-relay", "relay"), ("lan-9", "b")]
)
def test_is_the_same_for_all(name, relay):
    topology = load_topology(name, FILES)
    lab: Any = SimpleNamespace(
        topology=topology, nodes=dict.fromkeys(topology.nodes), address=lambda node: IPv4Address("10.50.0.1")
    )
    assert topology.relay == relay == mesh_of(lab).relay.name
