"""Drivers that a cascade can use: several tunnels on one node do not meet, and networks behind a node are reached through it."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import PurePosixPath

import pytest

from tunnelmark import registry
from tunnelmark.model.steps import Daemon
from tunnelmark.vpns.base import Deployment, Mesh, MeshNode

BEHIND = (IPv4Network("10.60.1.0/24"), IPv4Network("10.60.2.0/24"))
LEFT = MeshNode("v1", IPv4Address("10.50.1.2"), PurePosixPath("/run/x/leg3"), IPv4Interface("10.60.3.1/24"), 1, BEHIND)
RIGHT = MeshNode("v2", IPv4Address("10.50.1.3"), PurePosixPath("/run/x/leg3"), IPv4Interface("10.60.3.2/24"))
ARMS = ("wireguard-go", "wireguard", "openvpn", "openvpn-tcp")


def deployed(arm: str, *hosts: MeshNode) -> Deployment:
    driver, options = registry.arm(arm)
    return driver.deploy(Mesh(hosts, PurePosixPath("/run/x/staging")), options)


def words(deployment: Deployment, node: str) -> str:
    files = [file.content for file in deployment.files if file.node == node]
    steps = [repr(step) for phase in deployment.phases for step in phase if step.node == node]
    return "\n".join([*files, *steps])


@pytest.mark.parametrize("arm", ARMS)
def test_the_second_tunnel_of_a_node_has_an_interface_and_a_port_of_its_own(arm: str):
    first = deployed(arm, replace(LEFT, instance=0), RIGHT)
    second = deployed(arm, LEFT, RIGHT)
    one, other = first.overlays["v1"].interface, second.overlays["v1"].interface
    assert other == one.removesuffix("0") + "1"
    assert one not in words(second, "v1").replace("/run/x", "")
    assert second.overlays["v2"].interface == one


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("order", [(LEFT, RIGHT), (replace(RIGHT, behind=BEHIND), replace(LEFT, behind=()))])
def test_networks_behind_a_node_are_allowed_from_it(arm: str, order: tuple[MeshNode, MeshNode]):
    """WireGuard's peer is allowed them; OpenVPN's server knows which client has them, and a client sends everything to it."""
    made = deployed(arm, *order)
    behind = next(host for host in order if host.behind)
    (other,) = (host for host in order if host is not behind)
    if arm.startswith("wireguard"):
        assert "10.60.1.0/24, 10.60.2.0/24" in words(made, other.name)
    elif behind is order[1]:
        assert "iroute 10.60.1.0 255.255.255.0" in words(made, other.name)


def test_drivers_that_say_so_are_these():
    said = {name for name, driver in registry.vpns().items() if driver.cascades}
    assert said == {"openvpn", "wireguard", "wireguard-go"}


def test_one_tunnel_is_as_it_was():
    daemon = next(
        step for phase in deployed("wireguard-go", RIGHT, LEFT).phases for step in phase if isinstance(step, Daemon)
    )
    assert daemon.argv == ("wireguard-go", "-f", "wg0")


@pytest.mark.parametrize("arm", ARMS)
def test_a_tunnel_inside_another_has_the_mtu_that_it_is_given(arm: str):
    driver, options = registry.arm(arm)
    made = driver.deploy(Mesh((RIGHT, LEFT), PurePosixPath("/run/x/staging"), mtu=1234), options)
    for node in ("v1", "v2"):
        words_of = words(made, node)
        assert "tun-mtu 1234" in words_of or "'mtu', '1234'" in words_of
    assert "1234" not in words(deployed(arm, RIGHT, LEFT), "v1")


@pytest.mark.parametrize(
    ("arm", "least"), [("wireguard-go", 60), ("wireguard", 60), ("openvpn", 52), ("openvpn-tcp", 0)]
)
def test_a_driver_says_what_a_tunnel_adds_to_a_packet(arm: str, least: int):
    driver, options = registry.arm(arm)
    assert driver.overhead is not None
    assert driver.overhead(options) == least
