"""Cards that split and merge: nodes hand over super-packets and get packets that were merged, and the link has wire packets.

What decides on packets (loss, order, a queue's drops) decides on each wire packet, as with cards that do neither.
"""

from __future__ import annotations

import asyncio
import textwrap
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from support.beginnings import listening
from support.labs import in_lab, shaped
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.impairments import Direction, Pattern
from tunnelmark.plan.model import Profile
from tunnelmark.units import Duration

pytestmark = pytest.mark.root

FRAME = 1514
PORT = 9000

# Each datagram carries its number; a super-packet of UDP is made of some of them (UDP_SEGMENT, udp(7)).
SENDER = f"""
import socket, sys, time
address, packets, in_one, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if in_one > 1:
    sock.setsockopt(socket.IPPROTO_UDP, 103, 1200)
for first in range(0, packets, in_one):
    sock.sendto(b"".join(n.to_bytes(4, "big").ljust(1200) for n in range(first, first + in_one)), (address, {PORT}))
    time.sleep(pause)
"""
RECEIVER = f"""
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
sock.bind(("0.0.0.0", {PORT}))
sock.settimeout(60)
while (packet := sock.recv(2000)) != b"end":
    print(int.from_bytes(packet[:4], "big"), len(packet), flush=True)
"""


def card(profile: Profile, which: str = "offloads") -> Profile:
    return replace(profile, card=which)  # type: ignore[arg-type]


async def arrived(lab: Lab, folder: Path, packets: int, in_one: int, pause: float) -> list[tuple[int, int]]:
    """Numbers and lengths of the datagrams that b got from a, in the order of their arrival."""
    out = folder / f"arrived.{in_one}"
    receiver = await lab.nodes["b"].spawn(["python3", "-c", textwrap.dedent(RECEIVER)], stdout=out)
    await lab.nodes["b"].until({"kind": "udp-port", "port": PORT}, 20)
    sender = ["python3", "-c", textwrap.dedent(SENDER), str(lab.address("b"))]
    done = await lab.nodes["a"].run([*sender, str(packets), str(in_one), str(pause)], timeout=60)
    assert done.code == 0, done.stderr
    end = f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'end', ('{lab.address('b')}', {PORT}))"
    while receiver.exit is None:  # the link may lose it
        await lab.nodes["a"].run(["python3", "-c", end])
        await asyncio.sleep(0.05)
    return [tuple(map(int, line.split())) for line in out.read_text().splitlines()]  # type: ignore[misc]


async def captured(lab: Lab, folder: Path) -> dict[str, list[int]]:
    """Frame lengths of 1,000 packets of a TCP stream as they leave a, as the link hands them to b, and as b gets them.

    What an AF_XDP socket sends passes no capture, so without offloads nobody looks at the link; b gets what is there.
    """
    places = {"handed over": ("a", "eth0", "out"), "merged": ("b", "eth0", "in")}
    if lab.profile.card == "offloads":
        places["on the link"] = ("middle", "b.0", "out")
    running = {}
    for name, (node, interface, way) in places.items():
        argv = ["tcpdump", "-B", "32768", "-i", interface, "-Q", way, "-nn", "-e", "-l", "-c", "1000", "tcp"]
        host = lab.middle if node == "middle" else lab.nodes[node]
        running[name] = await host.spawn(argv, stdout=folder / name, stderr=folder / f"{name}.said")
    for name, tcpdump in running.items():
        await listening(tcpdump, folder / f"{name}.said")
    server = await lab.nodes["b"].spawn(["iperf3", "-s"])
    await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 20)
    client = await lab.nodes["a"].spawn(["iperf3", "-c", str(lab.address("b")), "-t60"])
    for tcpdump in running.values():
        await tcpdump.wait()
    await client.stop()
    await server.stop()
    return {
        name: [
            int(line.split(", length ")[1].split(":")[0])
            for line in (folder / name).read_text().splitlines()
            if ", length " in line
        ]
        for name in places
    }


@pytest.mark.parametrize("emulated", [False, True], ids=["shaped", "emulated"])
@pytest.mark.parametrize("which", ["offloads", "none"])
def test_the_link_has_wire_packets_whatever_the_nodes_hand_over(which: str, emulated: bool, tmp_path: Path) -> None:
    way = Direction(delay=Duration(0.001))
    profile = Profile("made", "T", "S", way, way) if emulated else shaped("1 Gbit/s", "512 KiB")
    seen = in_lab(lambda lab: captured(lab, tmp_path), profile=card(profile, which))
    if which == "none":
        assert max(seen["handed over"]) <= FRAME
        assert max(seen["merged"]) <= FRAME
    else:
        assert max(seen["on the link"]) <= FRAME
        assert max(seen["handed over"]) > 10 * FRAME
        assert max(seen["merged"]) > 2 * FRAME


@pytest.mark.parametrize("in_one", [1, 10])
def test_loss_and_order_are_those_of_wire_packets(in_one: int, tmp_path: Path) -> None:
    """The same recorded loss hits every 15th packet, whether they are handed over one by one or ten at a time."""
    profile = Profile("made", "T", "S", Direction(loss=Pattern("0" * 14 + "1"), delay=Duration(0.002)))

    async def body(lab: Lab) -> list[tuple[int, int]]:
        return await arrived(lab, tmp_path, 300, in_one, 0.002)

    numbers = [number for number, _ in in_lab(body, profile=card(profile))]
    assert numbers == sorted(numbers)
    missing = sorted(set(range(300)) - set(numbers))
    assert 18 <= len(missing) <= 20  # another packet of the node's may take the place of one
    assert all(after - before >= 13 for before, after in pairwise(missing))


def test_a_queue_drops_wire_packets(tmp_path: Path) -> None:
    """Of a super-packet that is longer than the queue its first packets arrive, and no others: bucket and queue hold so many."""
    profile = shaped("1 Mbit/s", "12 kB")

    async def body(lab: Lab) -> list[tuple[int, int]]:
        return await arrived(lab, tmp_path, 40, 40, 0)

    found = in_lab(body, profile=card(profile))
    assert [number for number, _ in found] == list(range(len(found)))
    assert {length for _, length in found} == {1200}
    assert 9 <= len(found) <= 13  # 12,000 bytes of queue and a bucket of 3,200; 1,242 bytes a frame
