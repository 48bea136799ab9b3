"""The lab sees from the underlay which way a VPN's traffic takes, and refuses a trial whose arm went another way than it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contract.lab_of_three import installed
from support.labs import TRIO, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.errors import WorkloadFailed
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.model import path_looks
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.plan.model import Topology
from tunnelmark.run import measurement
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors, traffic_path
from tunnelmark.run.deploy import deploy
from tunnelmark.run.observed import observed

pytestmark = pytest.mark.root

FILES = Files((PACKAGED,))
PINGS = ("ping", "-q", "-n", "-i0.01", "-c200", "-s1000")


def seen(arm: str, raw: Path, topology: Topology = TRIO, **options: Any) -> tuple[Mapping[str, float], str]:
    """What the collector saw of pings from the first node to the last, and what is said of an arm that went astray."""
    driver, own = registry.arm(arm)
    own = own.model_copy(update=options)
    installed(driver.part(own))

    async def run() -> tuple[Mapping[str, float], str]:
        async with (
            LabClient() as labs,
            labs.lab(topology, UNSHAPED) as lab,
            deploy(lab, driver, own, logs=raw, ready_timeout=30 + driver.startup_time) as tunnel,
        ):
            await tunnel.wait_converged(60)
            source, target = topology.nodes[0], topology.nodes[-1]
            watching = Collection(observed(lab, tunnel, source, target, raw), [collectors()["path"]])
            await watching.begin()
            done = await lab.nodes[source].run([*PINGS, str(tunnel.address[target])], timeout=60)
            samples = await watching.end()
            assert done.code == 0, done.stdout
            said = ""
            tunnel.relayed = not tunnel.relayed  # as if the arm were called otherwise
            try:
                measurement.check_path(lab, tunnel, samples)
            except WorkloadFailed as error:
                said = error.message
            tunnel.relayed = not tunnel.relayed
            measurement.check_path(lab, tunnel, samples)
            return {each.metric: each.value for each in samples if each.time is None}, said

    return asyncio.run(run())


def test_a_vpn_goes_directly(tmp_path: Path) -> None:
    values, said = seen("nebula", tmp_path)
    assert values[path_looks.DIRECT] > 99
    assert values[path_looks.RELAYED] < 1
    assert values[traffic_path.TCP] == 0
    assert values[traffic_path.SOON] < 30
    assert "went directly, and the arm is a relayed one" in said


def test_through_a_relay_nothing_goes_directly(tmp_path: Path) -> None:
    values, said = seen("nebula-relay", tmp_path)
    assert values[path_looks.RELAYED] > 99
    assert values[path_looks.DIRECT] < 1
    assert traffic_path.SOON not in values
    assert "went through a third node, and the arm is a direct one" in said


def test_tcp_is_told_from_udp(tmp_path: Path) -> None:
    values, _ = seen("tinc-tcp", tmp_path)
    assert values[traffic_path.TCP] > 95
    assert values[path_looks.DIRECT] > 99


def test_behind_two_routers_a_vpn_that_opens_the_way_goes_directly(tmp_path: Path) -> None:
    """It sends towards the other's router, and so does the other: each router then takes the other's packets for answers."""
    values, _ = seen("nebula", tmp_path, load_topology("behind-nat", FILES), punch=True)
    assert values[path_looks.DIRECT] > 99


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["easytier", "netbird"])
def test_behind_two_routers_a_vpn_that_asks_stun_servers_finds_the_lab_s(arm: str, tmp_path: Path) -> None:
    values, _ = seen(arm, tmp_path, load_topology("behind-nat", FILES))
    assert values[path_looks.DIRECT] > 99


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "+symmetric"])
def test_turn_relays_over_udp_behind_any_translation(kind: str, tmp_path: Path) -> None:
    values, said = seen("netbird-turn", tmp_path, load_topology(f"behind-nat{kind}", FILES))
    assert values[path_looks.RELAYED] > 99
    assert values[traffic_path.TCP] < 1
    assert not said, "where routers filter, a direct arm takes the way that it finds"


@pytest.mark.parametrize("early", [False, True])
def test_two_nodes_behind_routers_reach_each_other_once_both_have_sent(early: bool) -> None:
    """Also where the first packet of one is there too early: what a router drops must not take the port (RFC 5128, section 3.3)."""
    script = (
        "import socket, sys, time\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.bind((sys.argv[1], 4000)); s.settimeout(0.05)\n"
        "end, met = time.monotonic() + 20, 0\n"
        "time.sleep(float(sys.argv[3]))\n"
        "while met < 5 and time.monotonic() < end:\n"
        "    s.sendto(b'x', (sys.argv[2], 4000))\n"
        "    try: met += len(s.recv(9))\n"
        "    except TimeoutError: pass\n"
        "for _ in range(20): s.sendto(b'x', (sys.argv[2], 4000))\n"
        "print(met)\n"
    )

    async def body(lab: Lab) -> list[str]:
        outside = {name: str(address) for address, name in lab.owners.items() if str(address).startswith("10.50.0.")}

        async def send(node: str, other: str, wait: float) -> str:
            argv = ["python3", "-I", "-c", script, str(lab.address(node)), outside[other], str(wait)]
            return (await lab.nodes[node].run(argv, timeout=60)).stdout.strip()

        return [*await asyncio.gather(send("a", "rb", 0.3 if early else 0.0), send("b", "ra", 0.0))]

    assert in_lab(body, load_topology("behind-nat", FILES)) == ["5", "5"]
