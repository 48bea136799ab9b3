"""What the arms of a VPN must say, where a mistake would measure another arm than the one that is named."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv6Address

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from tunnelmark.model.steps import Daemon, TcpPort, UdpPort
from tunnelmark.vpns import easytier, nebula, openvpn, tinc, vpncloud, yggdrasil
from tunnelmark.vpns.base import Converged, Deployment, Mesh
from unit.vpns.test_drivers import build, deployed, mesh
from unit.vpns.test_each import file, order

NODES = ("node-1", "node-2", "node-3")
RELAY, OTHERS = "node-2", ("node-1", "node-3")


def six(size: int = 3) -> Mesh:
    """The mesh of the tests over an underlay of IPv6."""
    return replace(
        mesh(size),
        hosts=tuple(replace(host, underlay=IPv6Address(f"fd50::{n}")) for n, host in enumerate(mesh(size).hosts, 1)),
    )


def configs(deployment: Deployment, name: str) -> dict[str, dict[str, object]]:
    return {node: json.loads(file(deployment, node, name)) for node in NODES}


def ready(deployment: Deployment) -> object:
    step = deployment.phases[0][0]
    return step.ready if isinstance(step, Daemon) else None


def test_a_further_build_has_a_recipe_of_its_own_and_the_same_programs() -> None:
    for usual, other in (("nebula", "nebula-1.10"), ("yggdrasil", "yggdrasil-0.5")):
        assert build(other).recipe == other != build(usual).recipe
        assert build(other).programs == build(usual).programs


@pytest.mark.parametrize("arm", ["nebula-relay", "nebula-1.10-relay"])
def test_nebula_nodes_accept_the_address_of_the_relay_only(arm: str) -> None:
    deployment = deployed(arm)
    config = configs(deployment, "config.yml")
    assert deployment.relayed
    assert order(deployment) == [[RELAY], list(OTHERS)]
    assert config[RELAY]["relay"] == {"am_relay": True}
    assert config[RELAY]["lighthouse"] == {"am_lighthouse": True, "hosts": []}
    for node in OTHERS:
        assert config[node]["relay"] == {"relays": ["10.60.0.2"]}
        assert config[node]["static_host_map"] == {"10.60.0.2": ["10.50.0.2:4242"]}
        allowed = {"0.0.0.0/0": False, "10.50.0.2/32": True}
        assert config[node]["lighthouse"] == {
            "am_lighthouse": False,
            "hosts": ["10.60.0.2"],
            "remote_allow_list": allowed,
        }


def test_nebula_as_shipped_says_nothing_of_relays() -> None:
    assert all("relay" not in config for config in configs(deployed("nebula"), "config.yml").values())


def test_nebula_writes_ipv6_addresses_as_it_reads_them() -> None:
    deployment = nebula.DRIVER.deploy(six(), nebula.NebulaOptions(relay=True))
    config = configs(deployment, "config.yml")["node-3"]
    assert config["static_host_map"] == {"10.60.0.2": ["[fd50::2]:4242"]}
    assert "'::/0': False, 'fd50::2/128': True" in str(config["lighthouse"])


def test_tinc_over_tcp_says_so_of_everybody_and_has_a_connection_for_each_pair() -> None:
    deployment = deployed("tinc-tcp", 4)
    for place, host in enumerate(mesh(4).hosts):
        config = file(deployment, host.name, "tinc.conf")
        assert [f"ConnectTo = node{other}" in config for other in range(4)] == [other < place for other in range(4)]
        assert all("TCPOnly = yes\n" in file(deployment, host.name, f"node{other}") for other in range(4))
    assert order(deployment) == [[host.name] for host in mesh(4).hosts]


def test_tinc_indirect_is_connected_with_the_relay_only() -> None:
    deployment = deployed("tinc-indirect")
    assert deployment.relayed
    assert order(deployment) == [[RELAY], list(OTHERS)]
    for node in OTHERS:
        lines = file(deployment, node, "tinc.conf").splitlines()
        assert [line for line in lines if line.startswith("ConnectTo")] == ["ConnectTo = node1"]
    assert "ConnectTo" not in file(deployment, RELAY, "tinc.conf")
    assert all("IndirectData = yes\n" in file(deployment, node, f"node{n}") for node in NODES for n in range(3))
    assert [one.count for one in deployment.converged if isinstance(one, Converged)] == [1, 2, 1]


@pytest.mark.parametrize("arm", ["tinc", "tinc-tcp", "tinc-indirect"])
def test_tinc_uses_the_kind_of_address_that_the_underlay_has(arm: str) -> None:
    options = tinc.TincOptions.model_validate(tinc.DRIVER.variants.get(arm, {}))
    assert "AddressFamily = ipv6\n" in file(tinc.DRIVER.deploy(six(), options), "node-1", "tinc.conf")
    assert "AddressFamily = ipv4\n" in file(deployed(arm), "node-1", "tinc.conf")


@pytest.mark.parametrize("size", [2, 9])
def test_the_root_of_yggdrasils_tree_is_the_hub(size: int) -> None:
    deployment = deployed("yggdrasil-0.5", size)
    keys = []
    for host in mesh(size).hosts:
        seed = bytes.fromhex(json.loads(file(deployment, host.name, "yggdrasil.conf"))["PrivateKey"])[:32]
        keys.append(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw())
    assert keys[0] == min(keys)


@pytest.mark.parametrize(
    ("arm", "scheme", "bound"),
    [
        ("yggdrasil", "tcp", TcpPort(9001)),
        ("yggdrasil-tls", "tls", TcpPort(9001)),
        ("yggdrasil-0.5-quic", "quic", UdpPort(9001)),
    ],
)
def test_yggdrasil_peers_over_what_the_arm_says(arm: str, scheme: str, bound: object) -> None:
    deployment = deployed(arm)
    config = configs(deployment, "yggdrasil.conf")
    assert config["node-1"]["Listen"] == config["node-3"]["Peers"] == [f"{scheme}://10.50.0.1:9001"]
    assert ready(deployment) == bound


def test_yggdrasil_0_4_has_no_quic() -> None:
    with pytest.raises(ValidationError, match=r"0\.4 has no QUIC"):
        yggdrasil.YggdrasilOptions(transport="quic")


@pytest.mark.parametrize("arm", ["vpncloud", *vpncloud.DRIVER.variants])
def test_vpncloud_uses_the_cipher_of_the_arm_and_chooses_as_shipped(arm: str) -> None:
    deployment = deployed(arm)
    cipher = vpncloud.DRIVER.variants.get(arm, {}).get("cipher")
    passwords = set()
    for config in configs(deployment, "vpncloud.yml").values():
        crypto = config["crypto"]
        assert isinstance(crypto, dict)
        assert crypto.get("algorithms") == (None if cipher is None else [cipher])
        passwords.add(crypto["password"])
    assert len(passwords) == 1
    assert passwords.isdisjoint({json.loads(file(deployed(arm), "node-1", "vpncloud.yml"))["crypto"]["password"]})
    assert deployment.encrypted == (arm != "vpncloud-plain")


def test_vpncloud_claims_addresses_with_tun_and_switches_with_tap() -> None:
    assert configs(deployed("vpncloud"), "vpncloud.yml")["node-2"]["claims"] == ["10.60.0.2/32"]
    assert "claims" not in configs(deployed("vpncloud-tap"), "vpncloud.yml")["node-2"]


def test_vpncloud_adds_the_port_to_an_ipv6_peer_itself() -> None:
    config = configs(vpncloud.DRIVER.deploy(six(), vpncloud.VpnCloudOptions()), "vpncloud.yml")
    assert config["node-3"]["peers"] == ["[fd50::1]", "[fd50::2]"]
    assert config["node-3"]["listen"] == "[fd50::3]:3210"


@pytest.mark.parametrize(
    ("arm", "cipher"),
    [("openvpn", "AES-256-GCM"), ("openvpn-chacha20", "CHACHA20-POLY1305"), ("openvpn-tcp", "AES-256-GCM")],
)
def test_openvpn_allows_one_cipher_on_both_sides(arm: str, cipher: str) -> None:
    for node in NODES:
        assert f"data-ciphers {cipher}\n" in file(deployed(arm), node, "openvpn.conf")


def test_openvpn_over_tcp_has_roles_and_waits_for_the_listener() -> None:
    deployment = deployed("openvpn-tcp")
    assert "proto tcp4-server\n" in file(deployment, "node-1", "openvpn.conf")
    assert "proto tcp4-client\n" in file(deployment, "node-2", "openvpn.conf")
    assert "explicit-exit-notify" not in file(deployment, "node-1", "openvpn.conf")
    assert "explicit-exit-notify 1\n" in file(deployed("openvpn"), "node-1", "openvpn.conf")
    assert ready(deployment) == TcpPort(1194)
    over_six = openvpn.DRIVER.deploy(six(), openvpn.OpenVpnOptions())
    assert all("proto udp6\n" in file(over_six, node, "openvpn.conf") for node in NODES)


@pytest.mark.parametrize(
    ("arm", "url"), [("easytier", "udp://10.50.0.1:11010"), ("easytier-wg", "wg://10.50.0.1:11011")]
)
def test_easytier_listens_and_dials_by_the_transport_of_the_arm(arm: str, url: str) -> None:
    config = configs(deployed(arm), "easytier.json")
    assert config["node-1"]["listeners"] == [url]
    assert config["node-3"]["peer"] == [{"uri": url}]
    assert all("disable_p2p" not in str(one["flags"]) for one in config.values())
    assert [one.count for one in deployed(arm).converged if isinstance(one, Converged)] == [2, 2, 2]


@pytest.mark.parametrize(("nodes", "address"), [(mesh(3), "10.50.0.1"), (six(), "[fd50::1]")])
def test_easytier_asks_the_hub_how_it_is_mapped_only_where_it_is(nodes: Mesh, address: str) -> None:
    options = easytier.EasyTierOptions()
    behind = easytier.DRIVER.deploy(replace(nodes, translated=True), options)
    keys = ("stun_servers", "tcp_stun_servers") if nodes == mesh(3) else ("stun_servers_v6",)
    for config in configs(behind, "easytier.json").values():
        asked = [f"{address}:3478", f"{address}:3479"]
        assert {key: config[key] for key in config if "stun" in key} == dict.fromkeys(keys, asked)
    text = file(behind, "node-1", "turnserver.conf")
    assert f"listening-ip={nodes.hub.underlay}\n" in text
    assert f"aux-server={address}:3479\n" in text
    assert "\nstun-only\n" in text
    without = easytier.DRIVER.deploy(nodes, options)
    assert order(without) == order(deployed("easytier"))
    assert "stun" not in "".join(one.content for one in without.files)


def test_easytier_is_relayed_by_the_relay_and_may_not_go_directly() -> None:
    deployment = deployed("easytier-relay")
    config = configs(deployment, "easytier.json")
    assert deployment.relayed
    assert all("'disable_p2p': True" in str(one["flags"]) for one in config.values())
    assert [config[node]["peer"] for node in OTHERS] == [[{"uri": "udp://10.50.0.2:11010"}]] * 2
    assert (
        easytier.DRIVER.deploy(six(), easytier.EasyTierOptions()).files[1].content.count("udp://[fd50::1]:11010") == 1
    )
