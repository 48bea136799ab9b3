"""NetBird: its servers believe each other, the kernel is left alone, and the relay is forced in its own arm only."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from tunnelmark.model.steps import Command, CommandSucceeds, Daemon
from tunnelmark.registry import parts
from tunnelmark.vpns.base import Deployment
from unit.vpns.test_drivers import deployed, mesh, steps


def file(deployment: Deployment, name: str) -> tuple[str, str]:
    return next((one.node, one.content) for one in deployment.files if one.path.name == name)


def raw(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_the_token_is_signed_by_the_key_that_the_management_looks_up() -> None:
    deployment = deployed("netbird")
    config = json.loads(file(deployment, "management.json")[1])["HttpConfig"]
    (key,) = json.loads(file(deployment, "jwks.json")[1])["keys"]
    head, claims, signature = file(deployment, "token")[1].split(".")
    assert json.loads(raw(head))["kid"] == key["kid"]
    said = json.loads(raw(claims))
    assert said["iss"] == config["AuthIssuer"]
    assert said["aud"] == config["AuthAudience"]
    assert config["AuthKeysLocation"] == f"{said['iss']}/jwks.json"
    x, y, r, s = (
        int.from_bytes(part) for part in (raw(key["x"]), raw(key["y"]), raw(signature)[:32], raw(signature)[32:])
    )
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(encode_dss_signature(r, s), f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_management_and_relay_share_a_secret_and_an_address(size: int) -> None:
    deployment = deployed("netbird", size)
    told = json.loads(file(deployment, "management.json")[1])["Relay"]
    assert file(deployment, "secret") == (mesh(size).relay.name, told["Secret"])
    assert told["Addresses"] == [f"rels://{mesh(size).relay.underlay}:443"]
    assert told["Secret"] not in repr(deployment)
    assert [step.node for step in steps(deployment) if isinstance(step, Daemon) and step.name == "relay"] == [
        mesh(size).relay.name
    ]


@pytest.mark.parametrize("arm", ["netbird", "netbird-relay", "netbird-turn"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_stun_and_turn_are_by_coturn_on_the_node_of_the_relay(arm: str, size: int) -> None:
    deployment, relay = deployed(arm, size), mesh(size).relay
    told = json.loads(file(deployment, "management.json")[1])
    assert [one["URI"] for one in told["Stuns"]] == [f"stun:{relay.underlay}:3478"]
    (turn,) = told["TURNConfig"]["Turns"]
    assert turn["URI"] == f"turn:{relay.underlay}:3478"
    node, config = file(deployment, "turnserver.conf")
    assert node == relay.name
    assert f"\nuser={turn['Username']}:{turn['Password']}\n" in config
    assert turn["Password"] not in repr(deployment)
    assert [step.node for step in steps(deployment) if isinstance(step, Daemon) and step.name == "coturn"] == [node]


@pytest.mark.parametrize(
    ("arm", "forced"),
    [("netbird", None), ("netbird-relay", "NB_FORCE_RELAY"), ("netbird-turn", "NB_ICE_FORCE_RELAY_CONN")],
)
def test_a_relay_is_forced_in_its_own_arm_only_and_the_kernel_in_none(arm: str, forced: str | None) -> None:
    deployment = deployed(arm, 4)
    nodes = [step for step in steps(deployment) if isinstance(step, Daemon) and step.name == "netbird"]
    assert len(nodes) == 4
    for step in nodes:
        assert step.env["NB_WG_KERNEL_DISABLED"] == "true", "it would load a module"
        assert [name for name, value in step.env.items() if "FORCE" in name and value == "true"] == (
            [forced] * bool(forced)
        )
    assert deployment.relayed is bool(forced)
    assert bool(deployment.converged) is not bool(forced)


@pytest.mark.parametrize(("arm", "relayed"), [("netbird-kernel", False), ("netbird-kernel-turn", True)])
def test_the_kernels_wireguard_is_asked_for_required_and_checked(arm: str, relayed: bool) -> None:
    assert parts()[arm].kernel == ("wireguard",)
    deployment = deployed(arm, 3)
    assert all("NB_WG_KERNEL_DISABLED" not in one.env for one in steps(deployment) if isinstance(one, Daemon))
    asked = [" ".join(one.argv) for one in deployment.converged if isinstance(one, CommandSucceeds)]
    assert sum("Interface type: Kernel" in line for line in asked) == 3, "it falls back to user space without a word"
    assert deployment.relayed is relayed


def test_over_turn_no_client_knows_a_relay_of_netbird() -> None:
    """It would be taken in place of TURN: worker_ice.go asks no TURN server where both ends know such a relay."""
    deployment = deployed("netbird-turn")
    assert "Relay" not in json.loads(file(deployment, "management.json")[1])
    assert not any(isinstance(step, Daemon) and step.name == "relay" for step in steps(deployment))
    assert all(one.path.name != "secret" for one in deployment.files)


@pytest.mark.parametrize("arm", ["netbird", "netbird-relay", "netbird-turn"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_clients_find_all_but_stun_and_turn_at_443_over_tls(arm: str, size: int) -> None:
    deployment, hub, relay = deployed(arm, size), mesh(size).hub, mesh(size).relay
    told = json.loads(file(deployment, "management.json")[1])
    assert told["Signal"] == {"Proto": "https", "URI": f"{hub.underlay}:443"}
    for up in (step for step in steps(deployment) if isinstance(step, Command) and "up" in step.argv):
        assert up.argv[up.argv.index("-m") + 1] == f"https://{hub.underlay}:443"
    passed_on = {one.node: one.content for one in deployment.files if one.path.name == "Caddyfile"}
    assert set(passed_on) == {
        step.node for step in steps(deployment) if isinstance(step, Daemon) and step.name == "caddy"
    }
    with_relay = [relay.name] * (arm != "netbird-turn")
    assert set(passed_on) == {hub.name, *with_relay}
    for path in ("/management.ManagementService/", "/signalexchange.SignalExchange/"):
        assert [node for node, text in passed_on.items() if f"reverse_proxy {path}* h2c://" in text] == [hub.name]
    assert [node for node, text in passed_on.items() if "reverse_proxy /relay* " in text] == with_relay


@pytest.mark.parametrize("size", [2, 4])
def test_clients_trust_the_certificate_of_these_servers(size: int) -> None:
    deployment, whole = deployed("netbird", size), mesh(size)
    trusted = {one.node: one.content for one in deployment.files if one.path.name == "server.crt"}
    assert set(trusted) == {host.name for host in whole.hosts}
    (pem,) = set(trusted.values())
    names = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert set(names.value.get_values_for_type(x509.IPAddress)) == {whole.hub.underlay, whole.relay.underlay}
    for step in steps(deployment):
        if isinstance(step, Daemon) and step.name == "netbird":
            (host,) = (host for host in whole.hosts if host.name == step.node)
            assert step.env["SSL_CERT_FILE"] == host.path("server.crt")
