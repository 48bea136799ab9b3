"""What the files of fastd, n2n, strongSwan, Quincy and EdgeVPN must say, where a mistake would fail far away or in silence."""

from __future__ import annotations

import re
import tomllib
from base64 import b64decode, b64encode
from itertools import combinations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tunnelmark.model.steps import Command, Daemon
from unit.vpns.test_drivers import deployed, mesh, steps
from unit.vpns.test_each import file, order


def public(private: str) -> str:
    key = X25519PrivateKey.from_private_bytes(b64decode(private)).public_key()
    return b64encode(key.public_bytes_raw()).decode()


def test_fastd_names_an_address_on_one_side_of_each_pair_only() -> None:
    deployment = deployed("fastd", 4)
    dialled = set()
    for host in mesh(4).hosts:
        peers = re.findall(r'peer "(\S+)" \{(.*)\}', file(deployment, host.name, "fastd.conf"))
        assert [name for name, _ in peers] == [other.name for other in mesh(4).others(host)]
        dialled |= {(host.name, name) for name, block in peers if "remote" in block}
    pairs = combinations([host.name for host in mesh(4).hosts], 2)
    assert dialled == {(later, earlier) for earlier, later in pairs}
    assert order(deployment) == [[host.name] for host in mesh(4).hosts], "whoever is dialled listens already"


def test_fastd_without_protection_is_said_to_send_plaintext() -> None:
    assert deployed("fastd").encrypted
    assert not deployed("fastd-null").encrypted
    assert 'method "null";' in file(deployed("fastd-null"), "node-2", "fastd.conf")


def test_fastd_gives_its_secret_to_its_own_node_only() -> None:
    for one in deployed("fastd", 3).files:
        assert (one.from_staging == f"{one.node}.secret") == one.from_staging.endswith(".secret")


def test_n2n_edges_have_addresses_of_their_own_and_stay_in_the_foreground() -> None:
    deployment = deployed("n2n", 3)
    edges = [step for step in steps(deployment) if isinstance(step, Daemon) and step.name == "edge"]
    assert [edge.node for edge in edges] == [host.name for host in mesh(3).hosts]
    assert len({edge.argv[edge.argv.index("-m") + 1] for edge in edges}) == 3
    for edge in edges:
        assert "-f" not in edge.argv
        assert "-k" not in edge.argv, "the key would stand in a command line"
        assert file(deployment, edge.node, "key") not in " ".join(edge.argv)


def test_strongswan_has_a_connection_for_each_peer_and_one_secret() -> None:
    deployment = deployed("strongswan", 3)
    found = set()
    for host in mesh(3).hosts:
        config = file(deployment, host.name, "swanctl.conf")
        assert f"local_ts = {host.overlay.ip}/32" in config
        assert re.findall(r"remote_ts = (\S+)", config) == [f"{peer.overlay.ip}/32" for peer in mesh(3).others(host)]
        assert re.findall(r"remote_addrs = (\S+)", config) == [str(peer.underlay) for peer in mesh(3).others(host)]
        found.add(re.search(r'secret = "(\S+)"', config)[1])  # type: ignore[index]
    assert len(found) == 1
    assert found.isdisjoint(
        set(re.findall(r'secret = "(\S+)"', file(deployed("strongswan"), "node-1", "swanctl.conf")))
    )


@pytest.mark.parametrize(
    ("arm", "proposal"),
    [("strongswan", ""), ("strongswan-aes256gcm", "aes256gcm16"), ("strongswan-chacha20", "chacha20poly1305")],
)
def test_strongswan_proposes_what_the_arm_says_and_nothing_as_shipped(arm: str, proposal: str) -> None:
    wanted = [proposal, proposal] if proposal else []
    assert re.findall(r"esp_proposals = (\S+)", file(deployed(arm), "node-2", "swanctl.conf")) == wanted


def test_strongswan_joins_each_pair_once_and_both_ways_after_a_restart() -> None:
    *_, earlier, later = deployed("strongswan", 3).phases
    first = [(step.node, step.argv[-1]) for step in earlier if isinstance(step, Command)]
    again = [(step.node, step.argv[-1]) for step in later if isinstance(step, Command)]
    assert first == [("node-2", "node-1"), ("node-3", "node-1"), ("node-3", "node-2")]
    assert sorted(again) == sorted((peer, node) for node, peer in first)


def test_quincy_knows_its_clients_by_their_keys_and_they_know_it() -> None:
    deployment = deployed("quincy", 3)
    server = tomllib.loads(file(deployment, "node-1", "quincy.toml"))
    users = tomllib.loads(file(deployment, "node-1", "users.toml"))["users"]
    assert server["isolate_clients"] is False
    assert sorted(users) == ["node-2", "node-3"]
    for node, user in users.items():
        client = tomllib.loads(file(deployment, node, "quincy.toml"))
        assert user["authorized_keys"] == [public(client["protocol"]["private_key"])]
        assert client["protocol"]["server_public_key"] == public(server["protocol"]["private_key"])
        assert client["network"]["interface_name"] == "quincy0"


def test_edgevpn_nodes_share_one_configuration() -> None:
    deployment = deployed("edgevpn", 3)
    assert {one.from_staging for one in deployment.files} == {"edgevpn.yaml"}
    homes = {step.env["HOME"] for step in steps(deployment) if isinstance(step, Daemon)}
    assert len(homes) == 3
