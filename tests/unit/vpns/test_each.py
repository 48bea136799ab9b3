"""What each VPN's own files must say, where a mistake would still let a ping through or fail far away."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import ValidationError

from tunnelmark.host.programs import part_version, with_own
from tunnelmark.model.steps import Command, Daemon
from tunnelmark.vpns import nebula, openvpn, tinc, wireguard_go, yggdrasil
from tunnelmark.vpns.base import Deployment, Driver
from unit.vpns.test_drivers import deployed, mesh


def file(deployment: Deployment, node: str, name: str) -> str:
    return next(one.content for one in deployment.files if one.node == node and one.path.name == name)


def order(deployment: Deployment) -> list[list[str]]:
    return [[step.node for step in phase if isinstance(step, Daemon)] for phase in deployment.phases]


@pytest.mark.parametrize("size", [2, 4])
def test_wireguard_peers_with_everybody_else_by_their_own_keys(size: int) -> None:
    deployment = deployed(wireguard_go.DRIVER.name, size)
    sections: dict[str, list[dict[str, str]]] = {}
    for host in mesh(size).hosts:
        blocks = file(deployment, host.name, "wg.conf").split("[Peer]\n")
        sections[host.name] = [
            dict(line.split(" = ") for line in block.splitlines() if " = " in line) for block in blocks
        ]
    public = {}
    for name, (own, *_) in sections.items():
        key = X25519PrivateKey.from_private_bytes(b64decode(own["PrivateKey"]))
        public[name] = key.public_key().public_bytes_raw()
    for host in mesh(size).hosts:
        peers = {peer["AllowedIPs"]: peer for peer in sections[host.name][1:]}
        assert len(peers) == size - 1
        for other in mesh(size).others(host):
            peer = peers[f"{other.overlay.ip}/32"]
            assert b64decode(peer["PublicKey"]) == public[other.name]
            assert peer["Endpoint"] == f"{other.underlay}:51820"


def test_wireguard_leaves_the_mtu_as_shipped_unless_told() -> None:
    driver = wireguard_go.DRIVER
    assert "mtu" not in repr(driver.deploy(mesh(2), driver.options()).phases)
    told = driver.deploy(mesh(2), wireguard_go.WireGuardOptions(mtu=1380))
    assert all(isinstance(step, Command) and "1380" in step.argv for step in told.phases[-1])


@pytest.mark.parametrize("options", [{"mtu": 100}, {"mtu": "1420"}, {"mtuu": 1420}])
def test_wireguard_refuses_options_that_make_no_sense(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        wireguard_go.WireGuardOptions.model_validate(options)


@pytest.mark.parametrize("driver", [tinc.DRIVER, openvpn.DRIVER, nebula.DRIVER, yggdrasil.DRIVER], ids=lambda d: d.name)
def test_spokes_start_once_the_hub_is_ready(driver: Driver) -> None:
    deployment = driver.deploy(mesh(4), driver.options())
    assert order(deployment) == [["node-1"], ["node-2", "node-3", "node-4"]]
    (hub,) = deployment.phases[0]
    assert isinstance(hub, Daemon)
    assert hub.ready is not None


def test_tinc_spokes_dial_the_hub_and_everybody_knows_everybody() -> None:
    deployment = deployed(tinc.DRIVER.name, 4)
    for place, host in enumerate(mesh(4).hosts):
        config = file(deployment, host.name, "tinc.conf")
        assert f"Name = node{place}\n" in config
        assert ("ConnectTo = node0" in config) == (place > 0)
        about = {one.path.name: one.content for one in deployment.files if one.path.parent == host.dir / "hosts"}
        assert sorted(about) == ["node0", "node1", "node2", "node3"]
        assert len(set(about.values())) == 4
        assert file(deployment, host.name, "rsa_key.priv").startswith("-----BEGIN RSA PRIVATE KEY-----")
    up = [one for one in deployment.files if one.path.name == "tinc-up"]
    assert all(one.mode == 0o700 for one in up)


def test_openvpn_pins_the_certificates_that_it_hands_out() -> None:
    deployment = deployed(openvpn.DRIVER.name, 3)
    prints = {}
    for host in mesh(3).hosts:
        config = file(deployment, host.name, "openvpn.conf")
        pem = config.partition("<cert>\n")[2].partition("</cert>")[0]
        certificate = x509.load_pem_x509_certificate(pem.encode())
        assert certificate.subject.rfc4514_string() == f"CN={host.name}"
        prints[host.name] = certificate.fingerprint(hashes.SHA256()).hex(":")
    server = file(deployment, "node-1", "openvpn.conf")
    pinned = server.partition("<peer-fingerprint>\n")[2].partition("</peer-fingerprint>")[0].split()
    assert pinned == [prints["node-2"], prints["node-3"]]
    for spoke in ("node-2", "node-3"):
        assert f"peer-fingerprint {prints['node-1']}\n" in file(deployment, spoke, "openvpn.conf")
    assert file(deployment, "node-1", "node-3") == "ifconfig-push 10.60.0.3 255.255.255.0\n"


@pytest.mark.parametrize(("size", "between_clients"), [(2, False), (3, True)])
def test_openvpn_joins_clients_where_there_is_more_than_one(size: int, between_clients: bool) -> None:
    assert (
        "client-to-client" in file(deployed(openvpn.DRIVER.name, size), "node-1", "openvpn.conf")
    ) == between_clients


def test_nebula_signs_every_node_and_only_the_hub_is_a_lighthouse() -> None:
    deployment = deployed(nebula.DRIVER.name, 3)
    assert deployment.staging[0][:2] == ("nebula-cert", "ca")
    for host, argv in zip(mesh(3).hosts, deployment.staging[1:], strict=True):
        assert argv[argv.index("-ip") + 1] == str(host.overlay)
        config = json.loads(file(deployment, host.name, "config.yml"))
        is_hub = host == mesh(3).hub
        assert config["lighthouse"]["am_lighthouse"] is is_hub
        assert config["static_host_map"] == ({} if is_hub else {"10.60.0.1": ["10.50.0.1:4242"]})
        taken = [one.from_staging for one in deployment.files if one.node == host.name and one.from_staging]
        assert taken == ["ca.crt", f"{host.name}.crt", f"{host.name}.key"]


def test_yggdrasil_keys_are_seed_and_public_key() -> None:
    deployment = deployed(yggdrasil.DRIVER.name, 3)
    for host in mesh(3).hosts:
        config = json.loads(file(deployment, host.name, "yggdrasil.conf"))
        both = bytes.fromhex(config["PrivateKey"])
        public = Ed25519PrivateKey.from_private_bytes(both[:32]).public_key().public_bytes_raw()
        assert both[32:] == public == bytes.fromhex(config["PublicKey"])
        is_hub = host == mesh(3).hub
        assert bool(config["Listen"]) == is_hub
        assert bool(config["Peers"]) != is_hub
        assert config["AdminListen"] == "none"


@pytest.mark.parametrize(("said", "version"), [("0.5.12", "0.5.12"), ("unknown", "unknown")])
def test_yggdrasil_s_version_is_that_of_the_program_that_runs(said: str, version: str, tmp_path: Path) -> None:
    program = tmp_path / "yggdrasil"
    program.write_text(f'#!/bin/sh\nprintf "Build name: yggdrasil\\nBuild version: {said}\\n"\n')
    program.chmod(0o755)
    part = yggdrasil.DRIVER.part(yggdrasil.DRIVER.options())
    assert part_version(with_own(part, {"yggdrasil": str(program)})) == version
