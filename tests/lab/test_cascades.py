"""VPNs on a chain: a tunnel on each link in series, tunnels nested in each other, and one from end to end through hosts that forward."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from support.beginnings import listening
from support.labs import UNSHAPED
from support.trials import measured, unless_spoilt
from tunnelmark import registry
from tunnelmark.errors import SetupFailed
from tunnelmark.host import kernel_features
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.model import path_looks
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_study, load_topology
from tunnelmark.plan.model import Cascade
from tunnelmark.plan.order import order
from tunnelmark.run import measurement
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors
from tunnelmark.run.deploy import RunningDeployment, deploy
from tunnelmark.run.observed import observed

pytestmark = pytest.mark.root

FILES = Files((PACKAGED,))
PINGS, SIZE, LOOKED_AT = 60, 1000, 5
LONG = f"greater {SIZE}"
"""pcap-filter(7): the pings in whatever carries them, and neither acknowledgements nor what a VPN says of itself."""

CARRIED = re.compile(r"^IP ([\d.]+)\.\d+ > ([\d.]+)\.\d+: (?:UDP, length|tcp) (\d+)", re.MULTILINE)
"""A packet of UDP or TCP, as tcpdump prints it: who sent it to whom, and its payload in bytes."""

LEAST = 50
"""Bytes that any of these VPNs adds to a packet, over IPv4: OpenVPN's 52 over UDP are the fewest."""

SENT = 3_000_000  # bytes of TCP from end to end: enough for what a gigabyte costs (`cpu.LEAST`)
ARMS = ("wireguard-go", "wireguard", "openvpn", "openvpn-tcp")


@dataclass(frozen=True)
class Seen:
    """What a ping's answer said, and who sent what to whom on each link, in packets of how many bytes of payload at least."""

    ttl: int
    legs: tuple[tuple[set[tuple[str, str]], int], ...]
    addresses: Mapping[str, tuple[str, ...]]  # of each node, from the left to the right
    fragments: int  # that nodes have made of packets as large as the overlay's interface takes
    largest: bool  # whether those arrived
    watched: Mapping[str, float]


@asynccontextmanager
async def chained(
    hops: int, arm: str, cascade: Cascade | None, raw: Path
) -> AsyncIterator[tuple[Lab, RunningDeployment]]:
    driver, options = registry.arm(arm)
    if missing := [name for name in driver.kernel if kernel_features.found()[name]]:
        pytest.skip(f"this kernel has no {', '.join(missing)}")
    async with (
        LabClient() as labs,
        labs.lab(load_topology(f"chain-{hops}", FILES), UNSHAPED) as lab,
        deploy(lab, driver, options, logs=raw, ready_timeout=60, cascade=cascade) as tunnel,
    ):
        yield lab, tunnel


def seen(hops: int, arm: str, cascade: Cascade | None, raw: Path) -> Seen:
    async def run() -> Seen:
        async with chained(hops, arm, cascade, raw) as (lab, tunnel):
            nodes, target = list(lab.nodes), str(tunnel.address["r2"])
            legs = await looked_at(lab, target, raw)
            ping = ["ping", "-n", "-c1", "-w20", target]
            ttl = re.search(r"ttl=(\d+)", (await lab.nodes["r1"].run(ping, timeout=30)).stdout)
            assert ttl is not None
            before = await fragments(lab)
            mtu = int(await lab.nodes["r1"].read(f"/sys/class/net/{tunnel.interface['r1']}/mtu"))
            full = ["ping", "-n", "-q", "-M", "do", "-c3", "-i0.05", "-W10", f"-s{mtu - 28}", target]
            largest = (await lab.nodes["r1"].run(full, timeout=60)).code == 0
            made = await fragments(lab) - before
            ways = zip(["", *nodes], nodes, [*nodes[1:], ""], strict=False)
            towards = {
                node: tuple(str(lab.address_towards(node, other)) for other in (left, right) if other)
                for left, node, right in ways
            }
            return Seen(int(ttl[1]), legs, towards, made, largest, await watched(lab, tunnel, raw))

    return asyncio.run(run())


async def looked_at(lab: Lab, target: str, raw: Path) -> tuple[tuple[set[tuple[str, str]], int], ...]:
    """The first packets that carry pings from r1 to r2, on each link, where they reach the node to its right."""
    captures = []
    for node in list(lab.nodes)[1:]:
        argv = ["tcpdump", "-i", "eth0", "-Q", "in", "-nn", "-q", "-t", "-l", "-c", str(LOOKED_AT), LONG]
        out, said = raw / f"{node}.seen", raw / f"{node}.said"
        captures.append((await lab.nodes[node].spawn(argv, stdout=out, stderr=said), out, said))
    for process, _, said in captures:
        await listening(process, said)
    argv = ["ping", "-n", "-q", "-i0.02", f"-c{PINGS}", f"-s{SIZE}", target]
    assert (await lab.nodes["r1"].run(argv, timeout=60)).code == 0
    found = []
    for process, out, _ in captures:
        await asyncio.wait_for(process.wait(), 30)
        packets = CARRIED.findall(out.read_text())
        assert len(packets) == LOOKED_AT, out.read_text()
        found.append(({(a, b) for a, b, _ in packets}, min(int(size) for *_, size in packets)))
    return tuple(found)


async def fragments(lab: Lab) -> int:
    """How many all nodes have made up to now."""
    total = 0
    for node in lab.nodes.values():
        names, values = (line.split() for line in (await node.read("/proc/net/snmp")).splitlines() if line[:3] == "Ip:")
        total += int(values[names.index("FragCreates")])
    return total


async def watched(lab: Lab, tunnel: RunningDeployment, raw: Path) -> Mapping[str, float]:
    """What the collectors of path and CPU say of some TCP from end to end; WorkloadFailed if it went another way than an arm should."""
    server = await lab.nodes["r2"].spawn(["iperf3", "-s", "-1"])
    await lab.nodes["r2"].until({"kind": "tcp-port", "port": 5201}, 20)
    watching = Collection(observed(lab, tunnel, "r1", "r2", raw), [collectors()["path"], collectors()["cpu"]])
    await watching.begin()
    done = await lab.nodes["r1"].run(["iperf3", "-n", str(SENT), "-c", str(tunnel.address["r2"])], timeout=120)
    samples = await watching.end()
    assert done.code == 0, done.stdout
    await server.wait()
    measurement.check_path(lab, tunnel, samples)
    return {each.metric: each.value for each in samples if each.time is None}


def check_watched(made: Seen, *, programs: bool = True) -> None:
    """The path is that of a direct arm, and the hosts between cost something: on shared cores what their kernels do is in no one's account."""
    assert made.watched[path_looks.DIRECT] > 99
    assert made.watched[path_looks.RELAYED] < 1
    assert made.watched["cpu_per_gb_others"] > 0 or not programs


@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("arm", ARMS)
def test_in_series_each_link_has_a_tunnel_of_its_own(hops: int, arm: str, tmp_path: Path) -> None:
    """On each link its own two nodes send to each other; the hosts between open and forward, so the TTL falls by their number."""
    made = seen(hops, arm, "series", tmp_path)
    nodes = list(made.addresses)
    for (pairs, _), left, right in zip(made.legs, nodes, nodes[1:], strict=False):
        assert pairs == {(made.addresses[left][-1], made.addresses[right][0])}
    assert made.ttl == 64 - hops
    assert made.largest
    check_watched(made, programs=arm != "wireguard")


@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("arm", ARMS)
def test_nested_tunnels_carry_each_other_and_each_host_opens_one(hops: int, arm: str, tmp_path: Path) -> None:
    """On each link the sender is the first node, at its address in the tunnel that has just been opened, and there is a tunnel less."""
    made = seen(hops, arm, "nested", tmp_path)
    nodes = list(made.addresses)
    sizes = [size for _, size in made.legs]
    for number, (pairs, _) in enumerate(made.legs):
        sender = f"10.60.{number}.2" if number else made.addresses["r1"][0]
        assert pairs == {(sender, made.addresses[nodes[number + 1]][0])}
    if arm != "openvpn-tcp":  # a stream is cut as its kernel likes
        assert all(before - after >= LEAST for before, after in pairwise(sizes)), sizes
    assert made.ttl == 64, "the innermost tunnel is one from end to end"
    assert made.largest
    assert made.fragments == 0, "each tunnel has room for the one inside"
    check_watched(made, programs=arm != "wireguard")


@pytest.mark.parametrize("arm", ARMS)
def test_without_a_cascade_a_vpn_is_on_the_ends_and_the_hosts_forward_what_they_cannot_read(
    arm: str, tmp_path: Path
) -> None:
    made = seen(3, arm, None, tmp_path)
    ends = made.addresses["r1"][0], made.addresses["r2"][0]
    assert [pairs for pairs, _ in made.legs] == [{ends}] * 4
    assert made.ttl == 64
    check_watched(made, programs=False)


def test_without_a_vpn_the_hosts_forward(tmp_path: Path) -> None:
    async def run() -> str:
        async with chained(3, "direct", None, tmp_path) as (lab, tunnel):
            return (
                await lab.nodes["r1"].run(["ping", "-n", "-c1", "-w20", str(tunnel.address["r2"])], timeout=30)
            ).stdout

    assert "ttl=61" in asyncio.run(run())


@pytest.mark.parametrize(("arm", "least"), [("wireguard-go", 1.04), ("wireguard-go-nested", 1.08)])
def test_a_trial_has_the_tunnels_of_its_arm(arm: str, least: float, tmp_path: Path) -> None:
    """Of the packaged study: what the sender's link carries is more by what its tunnels add, 60 bytes of 1,420 or 120 of 1,380."""
    plan = order(load_study("cascade", FILES, registry.catalogue(), smoke=True))
    trial = next(t for t in plan.trials if t.id == f"001.{arm}.gigabit.chain-1.tcp")
    attempt, _ = measured(plan, trial, tmp_path)
    unless_spoilt(attempt)
    assert attempt.outcome == "ok", attempt.failure
    values = {sample.metric: sample.value for sample in attempt.samples if sample.time is None}
    assert least < values["wire_bytes_per_byte"] < least + 0.03
    assert values[path_looks.DIRECT] > 99


@pytest.mark.parametrize("arm", ["direct", "tinc"])
def test_a_driver_that_has_no_cascades_says_so(arm: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with chained(1, arm, "series", tmp_path):
            pass

    with pytest.raises(SetupFailed, match="no driver for a cascade"):
        asyncio.run(run())


# A client of OpenVPN looks for a server that crashed after two minutes only (`keepalive 10 120`).
@pytest.mark.parametrize(
    ("arm", "node"),
    [*(("wireguard-go", node) for node in ("r1", "v1", "r2")), ("openvpn", "r1"), ("openvpn-tcp", "r1")],
)
def test_nested_tunnels_come_back_after_a_crash(arm: str, node: str, tmp_path: Path) -> None:
    """All tunnels of a node are started again, each inside the one before."""

    async def run() -> None:
        async with chained(1, arm, "nested", tmp_path) as (_, tunnel):
            await tunnel.restart(node)
            await tunnel.answer(60)

    asyncio.run(run())
