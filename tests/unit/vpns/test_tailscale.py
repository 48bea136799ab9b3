"""Tailscale: the relay that nodes trust is ours, stands where it should, and is forced in its own arm only."""

from __future__ import annotations

import json
from hashlib import sha256
from ipaddress import IPv4Address
from itertools import permutations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from tunnelmark.model.steps import Command, CommandSucceeds, Daemon
from tunnelmark.vpns.base import Deployment
from unit.vpns.test_drivers import deployed, mesh, steps


def file(deployment: Deployment, name: str) -> tuple[str, str]:
    return next((one.node, one.content) for one in deployment.files if one.path.name == name)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_nodes_know_one_relay_and_pin_its_certificate(size: int) -> None:
    relay = mesh(size).relay
    deployment = deployed("tailscale", size)
    place, pem = file(deployment, f"{relay.underlay}.crt")
    assert place == relay.name
    certificate = x509.load_pem_x509_certificate(pem.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.IPAddress)) == {relay.underlay, mesh(size).hub.underlay}
    key = load_pem_private_key(file(deployment, f"{relay.underlay}.key")[1].encode(), None)
    assert key.public_key() == certificate.public_key()
    hub, text = file(deployment, "derp.yaml")
    assert hub == mesh(size).hub.name
    region = json.loads(text.partition("900: ")[2])
    (node,) = region["nodes"]
    assert IPv4Address(node["ipv4"]) == relay.underlay
    assert node["certname"] == f"sha256-raw:{sha256(certificate.public_bytes(Encoding.DER)).hexdigest()}"


def test_nobody_is_told_of_the_makers_relays() -> None:
    config = json.loads(file(deployed("tailscale"), "headscale.yaml")[1])
    assert config["derp"]["urls"] == []


@pytest.mark.parametrize("size", [2, 3])
def test_control_server_and_relay_are_at_443_and_are_one_where_they_share_a_node(size: int) -> None:
    deployment, hub, relay = deployed("tailscale", size), mesh(size).hub, mesh(size).relay
    config = json.loads(file(deployment, "headscale.yaml")[1])
    assert (config["server_url"], config["listen_addr"]) == (f"https://{hub.underlay}", f"{hub.underlay}:443")
    assert config["derp"].get("server", {}).get("enabled", False) is (hub == relay)
    derpers = [step.node for step in steps(deployment) if isinstance(step, Daemon) and step.name == "derper"]
    assert derpers == ([] if hub == relay else [relay.name])
    for up in (step for step in steps(deployment) if isinstance(step, Command) and "up" in step.argv):
        assert f"--login-server={config['server_url']}" in up.argv


@pytest.mark.parametrize(
    ("arm", "size", "alone"),
    [("tailscale", 2, True), ("tailscale-derp", 2, False), ("tailscale", 3, True), ("tailscale-derp", 3, True)],
)
def test_the_control_server_counts_as_such_unless_it_carries_the_data_too(arm: str, size: int, alone: bool) -> None:
    daemons = [step for step in steps(deployed(arm, size)) if isinstance(step, Daemon)]
    assert [step.control for step in daemons if step.name == "headscale"] == [alone]


@pytest.mark.parametrize("size", [2, 3])
def test_nodes_trust_the_certificate_of_these_servers(size: int) -> None:
    deployment = deployed("tailscale", size)
    (pem,) = {one.content for one in deployment.files if one.path.suffix == ".crt"}
    assert "BEGIN CERTIFICATE" in pem
    for host in mesh(size).hosts:
        (daemon,) = (
            s for s in steps(deployment) if isinstance(s, Daemon) and (s.node, s.name) == (host.name, "tailscaled")
        )
        assert daemon.env["SSL_CERT_FILE"] == host.path("server.crt")


@pytest.mark.parametrize(("arm", "forced"), [("tailscale", False), ("tailscale-derp", True)])
def test_the_relay_is_forced_in_its_own_arm_only(arm: str, forced: bool) -> None:
    deployment = deployed(arm, 4)
    nodes = [step for step in steps(deployment) if isinstance(step, Daemon) and step.name == "tailscaled"]
    assert len(nodes) == 4
    assert all((step.env.get("TS_DEBUG_ALWAYS_USE_DERP") == "true") is forced for step in nodes)
    assert deployment.relayed is forced


def test_it_has_settled_when_every_node_reaches_every_other_directly() -> None:
    hosts = [host.name for host in mesh(4).hosts]
    asked = {(one.node, one.argv[-1]) for one in deployed("tailscale", 4).converged if isinstance(one, CommandSucceeds)}
    assert asked == set(permutations(hosts, 2))
    assert all(
        "--until-direct" in one.argv for one in deployed("tailscale").converged if isinstance(one, CommandSucceeds)
    )
