"""Links carry what they should: the rate, wire packets, CUBIC, and counters that tell the truth."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from support.beginnings import listening
from support.labs import UNSHAPED, in_lab, shaped
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.link_spec import Shaper
from tunnelmark.lab.settings_record import facts
from tunnelmark.plan.model import Profile

pytestmark = pytest.mark.root

AS_STATED = pytest.mark.proof("a shaped link carries its rate and holds its queue")


async def iperf3(lab: Lab, *options: str) -> dict:
    """One iperf3 run from a to b; the client's report."""
    server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
    await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
    done = await lab.nodes["a"].run(["iperf3", "-J", "-c", str(lab.address("b")), *options], timeout=20)
    report = json.loads(done.stdout)
    assert "error" not in report, report["error"]
    await server.wait()
    return report


def on_ethernet(profile: Profile) -> Profile:
    """The profile with what a frame takes on the wire beside what stands in memory."""
    return replace(profile, forward=replace(profile.forward, overhead=24), back=replace(profile.back, overhead=24))


@pytest.mark.parametrize("overhead", [0, 24])
def test_a_link_carries_no_more_than_its_rate(overhead: int):
    """However late the shaper is served, what it lets through in a second is the rate and what its bucket holds."""
    profile = shaped("100 Mbit/s", "64 KiB")
    if overhead:
        profile = on_ethernet(profile)

    async def body(lab: Lab) -> tuple[float, dict]:
        before, begun = (await lab.link_counters())[0]["b"], time.monotonic()
        await iperf3(lab, "-n10M")
        return time.monotonic() - begun, {
            key: value - before[key]
            for key, value in (await lab.link_counters())[0]["b"].items()
            if key in ("bytes", "packets")
        }

    seconds, sent = in_lab(body, profile=profile)
    rate, queue = profile.forward.rate, profile.forward.queue
    assert rate is not None and queue is not None
    assert sent["packets"] > 100
    assert 8 * (sent["bytes"] + overhead * sent["packets"] - Shaper(rate, queue).burst) <= rate * seconds


@AS_STATED
@pytest.mark.parametrize("rate", ["10 Mbit/s", "100 Mbit/s"])
def test_tcp_gets_the_shaped_rate_less_its_headers(rate: str):
    profile = shaped(rate, "64 KiB")
    report = in_lab(lambda lab: iperf3(lab, "-t2"), profile=profile)
    assert profile.rate is not None
    # 1448 bytes of payload in 1514 on the wire; a second of 10 Mbit/s may begin with a full queue.
    assert 0.90 < report["end"]["sum_received"]["bits_per_second"] / profile.rate < 0.97


@AS_STATED
def test_tcp_gets_what_ethernet_leaves_it():
    profile = on_ethernet(shaped("100 Mbit/s", "64 KiB"))
    report = in_lab(lambda lab: iperf3(lab, "-t3", "-O1"), profile=profile)
    # 1448 bytes of payload in 1538 on the wire: 94.15 Mbit/s.
    assert report["end"]["sum_received"]["bits_per_second"] == pytest.approx(94.15e6, rel=0.01)


@AS_STATED
def test_the_queue_is_as_long_as_stated():
    """UDP at twice the rate keeps the queue full: 125,000 bytes at 10 Mbit/s are 100 ms."""

    async def body(lab: Lab) -> float:
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
        flood = await lab.nodes["a"].spawn(["iperf3", "-u", "-b20M", "-t3", "-c", str(lab.address("b"))])
        await asyncio.sleep(1)
        done = await lab.nodes["a"].run(["ping", "-n", "-q", "-c20", "-i0.03", str(lab.address("b"))], timeout=60)
        await flood.stop()
        await server.stop()
        return float(done.stdout.rpartition("=")[2].split("/")[1])

    # Each answered ping waited in a queue that held all but its own place; the way back was empty.
    assert 90 < in_lab(body, profile=shaped("10 Mbit/s", "125 kB")) < 105


def test_wire_packets_reach_the_middle_node_not_super_packets(tmp_path: Path):
    captured = tmp_path / "captured"

    async def body(lab: Lab) -> tuple[dict, int]:
        said = tmp_path / "said"
        with captured.open("wb") as out:
            # Room for all of it: the middle node has one core, which may be the receiver's too.
            argv = ["tcpdump", "-B", "32768", "-i", "a.0", "-nn", "-e", "-l", "-c", "3000"]
            tcpdump = await lab.middle.spawn(argv, stdout=out, stderr=said)
            await listening(tcpdump, said)
            report = await iperf3(lab, "-n10M")
            await tcpdump.wait()  # it has 3,000 of some 7,000 packets, however late it reads them
        return (await lab.link_counters())[0], int(report["end"]["sum_received"]["bytes"])

    counters, received = in_lab(body)
    lengths = [
        int(line.split(", length ")[1].split(":")[0])
        for line in captured.read_text().splitlines()
        if ", length " in line
    ]
    assert len(lengths) > 1000
    assert max(lengths) <= 1514
    sent = counters["b"]
    assert (
        sent["bytes"] > received > 1e6
    )  # a server on a busy machine closes before it has read all that the client sent
    assert sent["bytes"] / sent["packets"] < 1515


@pytest.mark.parametrize("card", ["none", "offloads"])
def test_a_link_counts_frames_with_their_ethernet_headers(card: Literal["none", "offloads"]):
    """A node's card that merges is polled, and such an interface counts packets without the header."""

    async def body(lab: Lab) -> dict[str, int]:
        await iperf3(lab, "-n10M")
        return (await lab.link_counters())[0]["b"]

    sent = in_lab(body, profile=replace(shaped("100 Mbit/s"), card=card))
    assert 1500 < sent["bytes"] / sent["packets"] <= 1514


def test_every_tcp_socket_uses_cubic_whatever_the_host_does():
    async def body(lab: Lab) -> list[str]:
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
        client = await lab.nodes["a"].spawn(["iperf3", "-t60", "-c", str(lab.address("b"))])
        async with asyncio.timeout(30):
            shown = [await established(lab, name) for name in ("a", "b")]
        await client.stop()
        await server.stop()
        return shown

    async def established(lab: Lab, node: str) -> str:
        """What `ss` says of a node's control and data connection, once both are there."""
        while True:
            sockets = (await lab.nodes[node].run(["ss", "-tinH", "state", "established"])).stdout
            if sockets.count(":5201") >= 2:
                return sockets
            await asyncio.sleep(0.05)

    for sockets in in_lab(body, profile=shaped("100 Mbit/s")):
        assert sockets.count("cubic") >= 2
        assert "bbr" not in sockets
        assert "reno" not in sockets


def test_the_record_says_what_the_lab_set():
    found = in_lab(facts, profile=shaped("100 Mbit/s"))
    assert found["offloads"]["tx-tcp-segmentation"] == "off"
    assert found["offloads"]["tx-udp-segmentation"] == "off"
    assert found["offloads"]["generic-receive-offload"] == "on"
    assert found["sysctls"]["net.ipv6.conf.all.accept_dad"] == "0"
    assert "51820-" in found["sysctls"]["net.ipv4.ip_local_reserved_ports"]
    assert found["shaper"]["shaped"].startswith("tbf rate 100 Mbit/s")


def test_an_ipv6_address_can_be_bound_as_soon_as_it_is_there():
    """A tentative one refuses bind(), and stays so until a kernel worker has run: seen on busy machines."""

    async def body(lab: Lab) -> str:
        return (await lab.nodes["a"].run(["ip", "-6", "-o", "address", "show", "scope", "global"])).stdout

    (address,) = in_lab(body, ipv6=True).splitlines()
    assert "nodad" in address


def test_an_unshaped_link_has_no_shaper():
    async def body(lab: Lab) -> str:
        done = await lab.middle.run(["tc", "qdisc", "show"])
        assert done.code == 0 and "qdisc" in done.stdout, done.stderr
        return done.stdout

    assert "tbf" not in in_lab(body, profile=UNSHAPED)
    assert "rate 100Mbit" in in_lab(body, profile=shaped("100 Mbit/s"))


def test_end_hosts_carry_no_shaper():
    async def body(lab: Lab) -> str:
        done = await lab.nodes["a"].run(["tc", "qdisc", "show"])
        assert done.code == 0 and "qdisc" in done.stdout, done.stderr
        return done.stdout

    assert "tbf" not in in_lab(body, profile=shaped("100 Mbit/s"))
