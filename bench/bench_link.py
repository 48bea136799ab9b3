"""What the bare link gives: its rate to one TCP stream, its rate on the wire, and the time it adds to a ping."""

from __future__ import annotations

import asyncio
import json
import statistics
import time

import pytest

from support.labs import UNSHAPED, in_lab, shaped
from tunnelmark.lab.labs import Lab

ROUNDS = 7
SHARE = 0.95  # of the shaped rate, for one TCP stream; headers alone take 4.4 %
ADDED_MS = 0.050  # to the round trip of two plain namespaces joined by one veth


async def _tcp(lab: Lab) -> tuple[float, float]:
    """Goodput at the receiver and rate on the wire, both in bit/s, of two seconds of one stream."""
    server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
    await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
    client = asyncio.ensure_future(
        lab.nodes["a"].run(["iperf3", "-J", "-t3", "-i0.1", "-c", str(lab.address("b"))], timeout=20)
    )
    await asyncio.sleep(0.5)
    before, began = (await lab.link_counters())[0]["b"]["bytes"], time.monotonic()
    await asyncio.sleep(2)
    after, ended = (await lab.link_counters())[0]["b"]["bytes"], time.monotonic()
    report = json.loads((await client).stdout)
    await server.wait()
    return report["end"]["sum_received"]["bits_per_second"], 8 * (after - before) / (ended - began)


async def _ping(lab: Lab, source: list[str], address: str) -> float:
    """Median round trip in ms of 200 pings, 10 ms apart."""
    done = await lab.nodes["a"].run([*source, "ping", "-n", "-i0.01", "-c200", address], timeout=20)
    times = [float(line.partition("time=")[2].split()[0]) for line in done.stdout.splitlines() if "time=" in line]
    assert len(times) == 200
    return statistics.median(times)


@pytest.mark.root
@pytest.mark.parametrize("rate", ["10 Mbit/s", "100 Mbit/s", "1 Gbit/s"])
def test_direct_fills_the_shaped_rate(rate: str) -> None:
    profile = shaped(rate, {"10 Mbit/s": "64 KiB", "100 Mbit/s": "256 KiB"}.get(rate, "512 KiB"))
    assert profile.rate is not None
    rounds = [in_lab(_tcp, profile=profile) for _ in range(3 if rate != "1 Gbit/s" else ROUNDS)]
    goodput, on_wire = (statistics.median(values) / profile.rate for values in zip(*rounds, strict=True))
    print(f"\n{rate}: goodput {100 * goodput:.2f} %, on the wire {100 * on_wire:.2f} % of the shaped rate (medians)")
    assert goodput >= SHARE
    assert 0.99 <= on_wire <= 1.005


@pytest.mark.root
def test_a_ping_over_the_lab_takes_little_longer_than_over_one_veth() -> None:
    """Both in the same lab, turn by turn: through the middle node, and over a veth between two plain namespaces."""

    async def body(lab: Lab) -> list[tuple[float, float]]:
        make = (
            "mkdir -p /run/netns; ip netns add x; ip netns add y; ip link add vx netns x type veth peer name vy netns y;"
            "ip -n x addr add 10.99.0.1/24 dev vx; ip -n y addr add 10.99.0.2/24 dev vy;"
            "ip -n x link set vx up; ip -n y link set vy up"
        )
        done = await lab.nodes["a"].run(["sh", "-c", make])
        assert done.code == 0, done.stderr
        return [
            (
                await _ping(lab, [], str(lab.address("b"))),
                await _ping(lab, ["ip", "netns", "exec", "x"], "10.99.0.2"),
            )
            for _ in range(ROUNDS)
        ]

    for profile in (UNSHAPED, shaped("1 Gbit/s", "512 KiB")):
        rounds = in_lab(body, profile=profile)
        added = statistics.median(through - plain for through, plain in rounds)
        through, plain = (statistics.median(values) for values in zip(*rounds, strict=True))
        print(
            f"\n{profile.title}: lab {1e3 * through:.0f} us, one veth {1e3 * plain:.0f} us, added {1e3 * added:.0f} us (medians)"
        )
        assert added <= ADDED_MS
