"""Every VPN that says so over an underlay of IPv6: it answers everywhere, keeps its secrets, and sends IPv6 only."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from contract import wire
from contract.lab_of_three import NODES, Together, installed
from tunnelmark import registry
from tunnelmark.lab.labs import Lab
from tunnelmark.run.deploy import RunningDeployment
from tunnelmark.vpns.base import Driver

pytestmark = pytest.mark.root

Run = Callable[[Any], Any]

DRIVERS = [driver for driver in registry.vpns().values() if driver.ipv6]
PAIRS = tuple(permutations(NODES, 2))
PINGS = 10  # from each node to each other; an answer goes back for each
LARGE = 900  # bytes of a ping: larger than what a VPN says for itself, smaller than every overlay's MTU
IPV6 = 0x86DD  # EtherType (RFC 2464)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: str(driver.name))
def test_a_vpn_answers_over_ipv6_and_sends_nothing_else(
    driver: Driver, together: Together, run: Run, tmp_path: Path
) -> None:
    installed(registry.vpn_part(driver))
    capture, marker = tmp_path / "wire.pcap", secrets.token_hex(8).encode()  # 16 bytes, as long as ping's pattern

    async def check() -> bool:
        async with together(driver, ipv6=True) as (lab, tunnel):
            tcpdump = await wire.capture(lab, "ip or ip6", capture, "-y", "LINUX_SLL2")
            for source, target in PAIRS:
                await ping(lab, tunnel, source, target, marker)
            deadline = time.monotonic() + wire.CAUGHT
            while len(large(capture)) < 2 * PINGS * len(PAIRS):
                assert time.monotonic() < deadline, (
                    f"what was answered was not seen on the wire: {len(large(capture))} of {2 * PINGS * len(PAIRS)} large packets"
                )
                await asyncio.sleep(0.1)
            await tcpdump.stop()
            return tunnel.encrypted

    encrypted = run(check())
    assert set(large(capture)) == {IPV6}
    assert (marker in capture.read_bytes()) is not encrypted


async def ping(lab: Lab, tunnel: RunningDeployment, source: str, target: str, marker: bytes) -> None:
    size = ["-s", str(LARGE), "-p", marker.hex()]
    # With -w it goes on until so many are answered: a busy machine may lose one in a socket's buffer.
    argv = ["ping", "-n", "-q", f"-c{PINGS}", "-i0.02", "-w20", *size, str(tunnel.address[target])]
    done = await lab.nodes[source].run(argv, timeout=30)
    answered = re.search(r" (\d+) received", done.stdout)
    assert answered is not None and int(answered[1]) >= PINGS, f"{source}>{target}: {done.stdout}"


def large(capture: Path) -> list[int]:
    """The EtherType of every large packet of a capture (LINKTYPE_LINUX_SLL2 begins with it)."""
    found = wire.packets(capture.read_bytes())
    return [int.from_bytes(kept[:2], "big") for kept, length in found if length > LARGE]
