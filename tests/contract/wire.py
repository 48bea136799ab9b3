"""What the contract suites see on the wire, and the TCP that they send: tcpdump on the middle node, iperf3 on the others."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Process
from tunnelmark.run.deploy import RunningDeployment

CAUGHT = 10.0  # seconds that a capture may be behind

TCPDUMP = ("tcpdump", "-i", "any", "-n", "-s2048", "-B16384", "-U", "--immediate-mode", "-Z", "root", "-w", "-")
"""A capture of whole wire packets to standard output.

With -s0 its buffer has eight places, and a burst loses what is ninth. -Z root: it would become a user that may not
write here.
"""


async def capture(lab: Lab, condition: str, file: Path, *options: str) -> Process:
    """A tcpdump on the middle node into a file, once it listens. -Q in: a packet passes two ports of that node."""
    said = file.with_suffix(".txt")
    tcpdump = await lab.middle.spawn([*TCPDUMP, "-Q", "in", *options, condition], stdout=file, stderr=said)
    deadline = time.monotonic() + CAUGHT
    while "listening" not in said.read_text():
        assert time.monotonic() < deadline, said.read_text()
        await asyncio.sleep(0.01)
    return tcpdump


def packets(content: bytes) -> Iterator[tuple[bytes, int]]:
    """What is kept of each packet of a capture, and its length on the wire (pcap-savefile(5): 24 bytes, then 16 before each)."""
    place = 24
    while place + 16 <= len(content):
        _, _, kept, length = struct.unpack_from("=IIII", content, place)
        place += 16 + kept
        if place <= len(content):  # else it is still being written
            yield content[place - kept : place], length


async def send(lab: Lab, tunnel: RunningDeployment, source: str, target: str, size: int) -> dict[str, Any]:
    """Send so many bytes of TCP over the overlay; what iperf3 says of it."""
    server = await lab.nodes[target].spawn(["iperf3", "-s", "-1"])
    await lab.nodes[target].until({"kind": "tcp-port", "port": 5201}, 5)
    argv = ["iperf3", "-J", "-n", str(size), "-c", str(tunnel.address[target])]
    done = await lab.nodes[source].run(argv, timeout=20)
    await server.wait()
    result: dict[str, Any] = json.loads(done.stdout)
    return result
