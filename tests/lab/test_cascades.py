"""A cascade: tunnels in series, through hosts that forward from one to the next."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.labs import UNSHAPED
from tunnelmark import registry
from tunnelmark.lab.client import LabClient
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.run.deploy import prepare

pytestmark = pytest.mark.root

FILES = Files((PACKAGED,))
COUNTED = "/sys/class/net/{}/statistics/rx_packets"
PINGS = 20


@pytest.mark.parametrize(("hops", "arm"), [(1, "openvpn"), (3, "wireguard-go"), (3, "openvpn"), (3, "openvpn-tcp")])
def test_each_leg_has_a_tunnel_of_its_own(hops: int, arm: str, tmp_path: Path) -> None:
    """A ping from end to end passes each tunnel once, each way: its TTL falls by the hosts between, and every tunnel's counters rise."""
    driver, options = registry.arm(arm)
    topology = load_topology(f"chain-{hops}", FILES)

    async def run() -> tuple[str, dict[str, int]]:
        async with LabClient() as labs, labs.lab(topology, UNSHAPED) as lab:
            tunnel = prepare(lab, driver, options, tmp_path)
            await tunnel.start()
            await tunnel.answer(60)

            async def passed() -> dict[str, int]:
                found = {}
                for name, node in lab.nodes.items():
                    devices = (await node.run(["ls", "/sys/class/net"])).stdout.split()
                    for device in devices:
                        if device not in ("lo", "sit0", "tunl0", "ip6tnl0") and not device.startswith("eth"):
                            found[f"{name} {device}"] = int(await node.read(COUNTED.format(device)))
                return found

            before = await passed()
            argv = ["ping", "-n", "-i0.02", f"-c{PINGS}", str(tunnel.address["r2"])]
            said = (await lab.nodes["r1"].run(argv, timeout=60)).stdout
            after = await passed()
            return said, {device: after[device] - count for device, count in before.items()}

    said, counts = asyncio.run(run())
    assert f" {PINGS} received" in said
    assert f"ttl={64 - hops}" in said
    assert len(counts) == 2 * (hops + 1), "each leg has two ends"
    assert all(count >= PINGS for count in counts.values()), counts


def test_without_a_vpn_the_hosts_forward(tmp_path: Path) -> None:
    driver, options = registry.arm("direct")

    async def run() -> str:
        async with LabClient() as labs, labs.lab(load_topology("chain-3", FILES), UNSHAPED) as lab:
            tunnel = prepare(lab, driver, options, tmp_path)
            await tunnel.start()
            await tunnel.answer(20)
            return (await lab.nodes["r1"].run(["ping", "-n", "-c1", str(tunnel.address["r2"])])).stdout

    assert "ttl=61" in asyncio.run(run())
