"""ZeroTier: nodes are kept to the way that their arm is called by, and only the proxy's arm needs the proxy."""

from __future__ import annotations

import json

import pytest

from tunnelmark import registry
from tunnelmark.model.steps import Command, Daemon, TcpPort, UdpPort
from tunnelmark.vpns.base import Deployment
from unit.vpns.test_drivers import deployed, mesh, steps


def settings(deployment: Deployment) -> dict[str, dict[str, dict[str, object]]]:
    """The local.conf of each node, by its name."""
    return {file.node: json.loads(file.content) for file in deployment.files if file.path.name == "local.conf"}


def test_as_shipped_nothing_is_forbidden_or_forced() -> None:
    assert all(said == {"physical": {}, "settings": {}} for said in settings(deployed("zerotier", 3)).values())


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_but_the_root_send_by_the_proxy_alone_and_bind_no_udp_port(size: int) -> None:
    deployment, relay = deployed("zerotier-tcp-proxy", size), mesh(size).relay
    said = settings(deployment)
    assert said.pop(relay.name)["settings"] == {}
    proxy = {"tcpFallbackRelay": f"{relay.underlay}/443", "forceTcpRelay": True}
    assert [one["settings"] for one in said.values()] == [proxy] * (size - 1)
    ready = {
        step.node: step.ready for step in steps(deployment) if isinstance(step, Daemon) and step.name != "tcp-proxy"
    }
    assert ready.pop(relay.name) == UdpPort(9993)
    assert set(ready.values()) == {TcpPort(9993)}
    assert deployment.relayed


def test_the_proxy_is_at_the_root_before_any_daemon_asks_for_it() -> None:
    deployment, relay = deployed("zerotier-tcp-proxy", 3), mesh(3).relay
    order = [[step.name for step in phase if isinstance(step, Daemon)] for phase in deployment.phases]
    assert next(names for names in order if names) == ["tcp-proxy"]
    assert [step.node for step in steps(deployment) if isinstance(step, Daemon) and step.name == "tcp-proxy"] == [
        relay.name
    ]


def test_only_the_arm_of_the_proxy_needs_its_program() -> None:
    parts = registry.parts()
    needs = {name: "tcp-proxy" in parts[name].programs for name in parts if name.startswith("zerotier")}
    assert {name for name, needed in needs.items() if needed} == {"zerotier-tcp-proxy", "zerotier-tcp-fallback"}
    assert needs.keys() >= {"zerotier", "zerotier-relay"}


def test_nodes_that_may_fall_back_use_udp_and_know_the_root_by_an_address_of_the_internet() -> None:
    deployment, relay = deployed("zerotier-tcp-fallback", 3), mesh(3).relay
    said = settings(deployment)
    assert said.pop(relay.name)["settings"] == {}
    assert [one["settings"] for one in said.values()] == [{"tcpFallbackRelay": f"{relay.underlay}/443"}] * 2
    translated = {
        step.node: step.argv[1] for step in steps(deployment) if isinstance(step, Command) and step.argv[0] == "nft"
    }
    assert translated.keys() == said.keys()
    assert all(f"dnat to {relay.underlay}" in rule for rule in translated.values())
    assert not deployment.relayed
