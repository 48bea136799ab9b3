"""A switch of thirty nodes: each reaches each, and what is sent to all reaches all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.host import queue_drops
from support.labs import UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.run.deploy import prepare

pytestmark = pytest.mark.root

LAN = load_topology("lan-30", Files((PACKAGED,)))


def unheard(snmp: str) -> int:
    """Datagrams to all that found no socket (IgnoredMulti of /proc/net/snmp)."""
    names, values = (line.split() for line in snmp.splitlines() if line.startswith("Udp:"))
    return int(dict(zip(names, values, strict=True))["IgnoredMulti"])


def test_what_is_sent_to_all_reaches_each_once() -> None:
    """Ten at a time, so that the queue of a core that comes late has room; what it dropped for other labs is known."""
    sent, at_once = 100, 10

    async def body(lab: Lab) -> list[int]:
        send = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1); "
        send += f"[s.sendto(b'x', ('10.50.0.255', 9)) for _ in range({at_once})]"
        others = [node for name, node in lab.nodes.items() if name != "n16"]
        missing = [sent] * len(others)
        for due in range(at_once, sent + 1, at_once):
            done = await lab.nodes["n16"].run(["python3", "-I", "-c", send])
            assert done.code == 0, done.stderr
            async with asyncio.timeout(30):  # a receiver's kernel thread may have to wait for a core
                while any(missing := [due - unheard(await node.read("/proc/net/snmp")) for node in others]):
                    if 0 < sum(missing) <= queue_drops() - dropped:
                        break
                    await asyncio.sleep(0.02)
        return missing

    dropped = queue_drops()
    missing = in_lab(body, LAN)
    assert min(missing) >= 0 and sum(missing) <= queue_drops() - dropped


def test_a_vpn_of_thirty_nodes_answers(tmp_path: Path) -> None:
    driver, options = registry.arm("wireguard-go")

    async def run() -> set[str]:
        async with LabClient() as labs, labs.lab(LAN, UNSHAPED) as lab:
            tunnel = prepare(lab, driver, options, tmp_path)
            await tunnel.start()
            await tunnel.answer(60)
            return set(tunnel.first_packet)

    answered = asyncio.run(run())
    assert {f"n{number}>n1" for number in range(2, 31)} <= answered
    assert {f"n{number}>n{number + 1}" for number in range(1, 30)} <= answered
