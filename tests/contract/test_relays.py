"""Which way traffic takes: arms that say that they are relayed go through the relay's node, their VPN's others do not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from contract import wire
from contract.lab_of_three import READY, NamedArm, Together, installed
from tunnelmark import registry
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Process
from tunnelmark.run.deploy import mesh_of
from unit.vpns.test_drivers import deployed

pytestmark = [
    pytest.mark.root,
    pytest.mark.proof(
        "arms that say they are relayed send everything through the relay, and their VPN's others nothing"
    ),
]

Run = Callable[[Any], Any]

SENT = 4_000_000  # bytes of TCP each way
CONTROL = 0.01  # of what was sent: what two nodes may say to each other beside it (a lighthouse, a control server)
LOOKING = 20  # seconds of pings in which a VPN may find a better path than the one that it begins with

ARMS = [NamedArm(name, driver, options) for name, (driver, options) in registry.arms().items()]
RELAYED = [arm for arm in ARMS if deployed(arm.name).relayed]
WITH_RELAY = {arm.driver.name for arm in RELAYED}
DIRECT = [arm for arm in ARMS if arm.name in WITH_RELAY and arm not in RELAYED]
BARE = next(arm for arm in ARMS if arm.name == "direct")


@dataclass(frozen=True, slots=True)
class Seen:
    """Bytes on the wire between each two nodes, both directions together, and the bytes of TCP that arrived."""

    between: Mapping[frozenset[str], int]
    arrived: int


@pytest.mark.slow
@pytest.mark.parametrize("arm", RELAYED, ids=lambda arm: str(arm.name))
def test_a_relayed_arm_goes_through_the_relay_only(arm: NamedArm, together: Together, run: Run, tmp_path: Path) -> None:
    relay, one, other, seen = run(traffic(arm, together, tmp_path))
    assert seen.between[frozenset({one, relay})] >= seen.arrived
    assert seen.between[frozenset({relay, other})] >= seen.arrived
    assert seen.between[frozenset({one, other})] <= CONTROL * seen.arrived, "some of it goes directly"


@pytest.mark.slow
@pytest.mark.parametrize("arm", [BARE, *DIRECT], ids=lambda arm: str(arm.name))
def test_an_arm_that_is_not_relayed_goes_directly(arm: NamedArm, together: Together, run: Run, tmp_path: Path) -> None:
    relay, one, other, seen = run(traffic(arm, together, tmp_path))
    assert seen.between[frozenset({one, other})] >= seen.arrived
    for end in (one, other):
        assert seen.between[frozenset({end, relay})] <= CONTROL * seen.arrived, "some of it goes through the relay"


async def traffic(arm: NamedArm, together: Together, folder: Path) -> tuple[str, str, str, Seen]:
    """Send between the two nodes beside the relay's, once no better path is to be expected: relay, both, what was seen."""
    installed(arm.part)
    async with together(arm.driver, **arm.options) as (lab, tunnel):
        mesh = mesh_of(lab)
        relay = mesh.relay.name
        one, other = (host.name for host in mesh.others(mesh.relay))
        await tunnel.wait_converged(READY + arm.driver.convergence_time)
        pings = ["ping", "-n", "-q", "-i0.2", f"-w{LOOKING}", str(tunnel.address[other])]
        assert (await lab.nodes[one].run(pings, timeout=2 * LOOKING)).code == 0
        captures = {frozenset(pair): await capture(lab, pair, folder) for pair in combinations(lab.nodes, 2)}
        sent = [await wire.send(lab, tunnel, *ends, SENT) for ends in ((one, other), (other, one))]
        arrived = [int(result["end"]["sum_received"]["bytes"]) for result in sent]
        await caught({pair: file for pair, (_, file) in captures.items()}, one, other, sum(arrived))
        for tcpdump, _ in captures.values():
            await tcpdump.stop()
        return relay, one, other, Seen({pair: wire_bytes(file) for pair, (_, file) in captures.items()}, sum(arrived))


async def capture(lab: Lab, pair: tuple[str, str], folder: Path) -> tuple[Process, Path]:
    """A tcpdump on the middle node of all IP packets between two nodes' underlay addresses, and its file."""
    four, six = ([str(address(node)) for node in pair] for address in (lab.address, lab.address6))
    condition = " or ".join(f"(host {a} and host {b})" for a, b in (four, six))
    file = folder / f"{'-'.join(pair)}.pcap"
    return await wire.capture(lab, condition, file, "-s64"), file


async def caught(files: Mapping[frozenset[str], Path], one: str, other: str, arrived: int) -> None:
    """Wait until the captures hold what arrived, whichever way it went."""
    deadline = time.monotonic() + wire.CAUGHT
    while sum(wire_bytes(file) for pair, file in files.items() if one in pair) < arrived:
        assert time.monotonic() < deadline, f"{one} and {other} received more than was seen on the wire"
        await asyncio.sleep(0.1)


def wire_bytes(file: Path) -> int:
    """The sum of the packets' lengths in a capture."""
    return sum(length for _, length in wire.packets(file.read_bytes()))
