"""What the anchor's files must say, where a mistake would measure another tunnel than the one that is named."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from tunnelmark import registry
from tunnelmark.model.steps import Command
from tunnelmark.plan.compose import YARDSTICK
from tunnelmark.plan.study_arms import ANCHOR
from unit.vpns.test_arms import six
from unit.vpns.test_drivers import deployed, mesh, steps
from unit.vpns.test_each import file


@pytest.mark.parametrize("arm", ["anchor", "anchor-chacha20"])
def test_every_node_knows_every_other_by_its_addresses(arm: str) -> None:
    for host in mesh(4).hosts:
        config = json.loads(file(deployed(arm, 4), host.name, "anchor.json"))
        assert config["listen"] == f"{host.underlay}:4700"
        found = {(peer["overlay"], peer["endpoint"]) for peer in config["peers"]}
        assert found == {(str(other.overlay.ip), f"{other.underlay}:4700") for other in mesh(4).others(host)}
        assert len({config["number"], *(peer["number"] for peer in config["peers"])}) == 4


def test_what_one_sends_with_the_other_receives_with_and_no_two_directions_share_a_key() -> None:
    deployment, hosts = deployed("anchor-chacha20", 3), mesh(3).hosts
    configs = {host.name: json.loads(file(deployment, host.name, "anchor.json")) for host in hosts}
    number = {name: config["number"] for name, config in configs.items()}

    def key(node: str, other: str, way: str) -> str:
        return next(str(peer[way]) for peer in configs[node]["peers"] if peer["number"] == number[other])

    pairs = list(permutations(configs, 2))
    assert all(key(one, other, "send") == key(other, one, "receive") for one, other in pairs)
    assert len({key(one, other, "send") for one, other in pairs}) == len(pairs)
    assert all(config["cipher"] == "chacha20-poly1305" for config in configs.values())


def test_without_a_cipher_it_is_said_to_send_plaintext_and_has_no_keys() -> None:
    assert deployed("anchor-chacha20").encrypted
    assert not deployed("anchor").encrypted
    assert all("send" not in peer for peer in json.loads(file(deployed("anchor"), "node-1", "anchor.json"))["peers"])


def test_both_anchors_have_the_same_mtu() -> None:
    ups = [
        {step.argv for step in steps(deployed(arm)) if isinstance(step, Command) and "mtu" in step.argv}
        for arm in ("anchor", "anchor-chacha20")
    ]
    assert ups[0] == ups[1] == {("ip", "link", "set", "anchor0", "mtu", "1420", "up")}


def test_an_endpoint_of_ipv6_stands_in_brackets() -> None:
    driver, options = registry.arms()["anchor"]
    deployment = driver.deploy(six(2), driver.options(**options))
    assert json.loads(file(deployment, "node-1", "anchor.json"))["listen"] == "[fd50::1]:4700"


def test_the_yardstick_of_a_comparison_is_an_arm_of_the_anchor() -> None:
    assert registry.arms()[YARDSTICK][0].name == ANCHOR
