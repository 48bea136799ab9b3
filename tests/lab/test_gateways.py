"""A VPN between two gateways, on real daemons: the hosts behind it send as ever, and only the gateways' link carries the tunnel."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from support.beginnings import listening
from support.labs import UNSHAPED
from support.trials import measured
from tunnelmark import registry
from tunnelmark.errors import SetupFailed
from tunnelmark.host import kernel_features
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.model import path_looks
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_study, load_topology
from tunnelmark.plan.order import order
from tunnelmark.run.deploy import RunningDeployment, deploy
from unit.study_text import study_text

pytestmark = pytest.mark.root

FILES = Files((PACKAGED,))
PAYLOAD, PINGS = "a1b2c3d4e5f60718", 10
ADDRESS = r"((?:\d+\.){3}\d+)(?:\.\d+)?"  # and a port
SHOWN = re.compile(rf"^IP {ADDRESS} > {ADDRESS}: ", re.MULTILINE)


async def crossing(lab: Lab, tunnel: RunningDeployment, node: str, raw: Path) -> tuple[set[tuple[str, str]], bytes]:
    """Who sends what to whom as it reaches a node while its first host pings the last one, and the packets themselves."""
    capture, said = raw / f"{node}.pcap", raw / f"{node}.said"
    argv = ["tcpdump", "-i", "eth0", "-Q", "in", "-nn", "-U", "-w", "-", "-c", str(PINGS), "greater", "500"]
    process = await lab.nodes[node].spawn(argv, stdout=capture, stderr=said)
    await listening(process, said)
    target = str(tunnel.address["h2"])
    ping = ["ping", "-n", "-q", "-i0.02", f"-c{2 * PINGS}", "-s1000", "-p", PAYLOAD, target]
    done = await lab.nodes["h1"].run(ping, timeout=60)
    assert done.code == 0, done.stdout
    await asyncio.wait_for(process.wait(), 30)
    shown = subprocess.run(["tcpdump", "-nn", "-q", "-t", "-r", capture], capture_output=True, text=True, check=True)
    return set(SHOWN.findall(shown.stdout)), capture.read_bytes()


@pytest.mark.parametrize("arm", ["wireguard-go", "wireguard", "openvpn", "openvpn-tcp"])
def test_hosts_behind_gateways_meet_through_the_tunnel_of_those(arm: str, tmp_path: Path) -> None:
    driver, options = registry.arm(arm)
    if missing := [name for name in driver.kernel if kernel_features.found()[name]]:
        pytest.skip(f"this kernel has no {', '.join(missing)}")

    async def run() -> None:
        async with (
            LabClient() as labs,
            labs.lab(load_topology("two-gateways", FILES), UNSHAPED) as lab,
            deploy(lab, driver, options, logs=tmp_path, ready_timeout=60, behind_gateways=True) as tunnel,
        ):
            assert [tunnel.interface[host] for host in ("h1", "h2")] == ["eth0", "eth0"]
            hosts = str(tunnel.address["h1"]), str(tunnel.address["h2"])
            gateways = str(lab.address_towards("g1", "g2")), str(lab.address_towards("g2", "g1"))
            for node, ends, plain in (("g1", hosts, True), ("g2", gateways, False), ("h2", hosts, True)):
                seen, packets = await crossing(lab, tunnel, node, tmp_path)
                assert seen == {ends}, node
                assert (bytes.fromhex(PAYLOAD) * 8 in packets) is plain
            ttl = await lab.nodes["h1"].run(["ping", "-n", "-c1", "-w20", hosts[1]], timeout=30)
            assert "ttl=62" in ttl.stdout, "two gateways forward"
            back = await lab.nodes["h2"].run(["ping", "-n", "-c1", "-w20", str(tunnel.address["g1"])], timeout=30)
            assert back.code == 0, "the tunnel's own addresses answer the hosts behind"

    asyncio.run(run())


def test_a_study_measures_it_next_to_the_bare_link_and_to_the_vpn_from_end_to_end(tmp_path: Path) -> None:
    text = study_text("wireguard-go", seconds=2.0).replace('["pair"]', '["two-gateways"]')
    (tmp_path / "sites.toml").write_text(
        text + '\n[[arm]]\nname = "between-gateways"\nvpn = "wireguard-go"\nbehind_gateways = true\n'
    )
    study = load_study(str(tmp_path / "sites.toml"), Files.standard(), registry.catalogue(), watch=("path",))
    plan = order(study)
    trial = next(one for one in plan.trials if one.arm.name == "between-gateways" and one.use.workload == "tcp")
    attempt, _ = measured(plan, trial, tmp_path)
    assert attempt.outcome == "ok", attempt.failure
    values = {sample.metric: sample.value for sample in attempt.samples if sample.time is None}
    assert values["goodput"] > 0
    assert values[path_looks.DIRECT] > 99


def test_a_vpn_that_cannot_lead_to_hosts_behind_a_node_and_a_lab_without_gateways_are_refused(tmp_path: Path) -> None:
    async def run(arm: str, topology: str) -> None:
        driver, options = registry.arm(arm)
        async with (
            LabClient() as labs,
            labs.lab(load_topology(topology, FILES), UNSHAPED) as lab,
            deploy(lab, driver, options, logs=tmp_path, ready_timeout=5, behind_gateways=True),
        ):
            pass

    with pytest.raises(SetupFailed, match="nebula has no driver for gateways"):
        asyncio.run(run("nebula", "two-gateways"))
    with pytest.raises(SetupFailed, match="chain-1 has no two nodes that forward"):
        asyncio.run(run("wireguard-go", "chain-1"))
