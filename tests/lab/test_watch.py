"""Collectors on real labs: what they say agrees with what is known, and nothing of them is left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.account_rounds import disagreements
from support.accounting import busy
from support.host import Host, left_within
from support.labs import PAIR, UNSHAPED
from tunnelmark import registry
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.linux import cgroups, packet_sizes
from tunnelmark.plan.model import Profile
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors
from tunnelmark.run.deploy import RunningDeployment, deploy
from tunnelmark.run.observed import observed

pytestmark = pytest.mark.root

PINGS, SIZE = 200, 1000
PACKET = SIZE + 28  # ICMP and IPv4 headers


async def watched(
    lab: Lab, tunnel: RunningDeployment, raw: Path, names: tuple[str, ...], work: list[str], node: str = "a"
) -> tuple[dict[str, float], dict[str, str]]:
    """Values and notes of what these collectors saw while a program ran on a node."""
    watching = Collection(observed(lab, tunnel, "a", "b", raw), [collectors()[name] for name in names])
    await watching.begin()
    done = await lab.nodes[node].run(work, timeout=30)
    samples = await watching.end()
    assert done.code == 0, done.stderr
    return {sample.metric: sample.value for sample in samples if sample.time is None}, watching.notes


def on(arm: str, raw: Path, body: Any, profile: Profile = UNSHAPED) -> Any:
    """The result of `body(lab, tunnel)` over a VPN between two nodes."""
    driver, options = registry.arm(arm)

    async def run() -> Any:
        async with (
            LabClient() as labs,
            labs.lab(PAIR, profile) as lab,
            deploy(lab, driver, options, logs=raw, ready_timeout=20) as tunnel,
        ):
            return await body(lab, tunnel)

    return asyncio.run(run())


def ping(tunnel: RunningDeployment) -> list[str]:
    return ["ping", "-q", "-n", "-i0.005", f"-c{PINGS}", f"-s{SIZE}", str(tunnel.address["b"])]


def test_packets_outside_are_those_that_were_sent(tmp_path: Path):
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        return await watched(lab, tunnel, tmp_path, ("wire",), ping(tunnel))

    values, notes = on("direct", tmp_path, body)
    assert values["wire_bytes_per_byte"] == 1.0
    assert values["wire_packets_per_packet"] == 1.0
    assert values["wire_size_source"] == pytest.approx(PACKET, rel=0.02)  # neighbours ask and answer now and then
    assert values["wire_to_1518"] == pytest.approx(100, abs=2)
    assert values["wire_fragments_source"] == 0
    assert notes == {}


def test_a_vpns_own_headers_are_outside(tmp_path: Path):
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        return await watched(lab, tunnel, tmp_path, ("wire", "memory", "switches", "cpu"), ping(tunnel))

    values, _ = on("wireguard-go", tmp_path, body)
    # WireGuard pads to 16 bytes and adds 32, and stands in UDP and IPv4: 1,028 become 1,040 + 60.
    assert values["wire_bytes_per_byte"] == pytest.approx((1040 + 60) / PACKET, rel=0.01)
    assert values["wire_packets_per_packet"] == pytest.approx(1, rel=0.03)
    assert 0.5 < values["memory_rest_source"] <= values["memory_load_source"] <= values["memory_rss_source"] < 200
    assert values["switches_per_packet_source"] > 0.1
    assert 0 < values["cpu_source"] < 1000


def test_what_is_done_for_each_packet_is_for_each_on_the_wire_where_cards_split(tmp_path: Path):
    """This build hands over 64 datagrams at once: counted so, it would seem to do a multiple of what it does for each packet."""

    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 10)
        work = ["iperf3", "-t2", "-c", str(tunnel.address["b"])]
        seen = await watched(lab, tunnel, tmp_path, ("wire", "switches"), work)
        await server.stop()
        return seen

    values, _ = on("wireguard-go-2026", tmp_path, body, replace(UNSHAPED, card="offloads"))
    packets = values["wire_packets_source"] + values["wire_packets_target"]
    for end in ("source", "target"):
        assert values[f"switches_per_packet_{end}"] == pytest.approx(values[f"switches_{end}"] / packets, rel=0.1)


def test_fragments_are_seen(tmp_path: Path):
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        argv = ["ping", "-q", "-n", "-i0.01", "-c50", "-s4000", str(tunnel.address["b"])]  # three fragments each
        return await watched(lab, tunnel, tmp_path, ("wire",), argv)

    values, _ = on("direct", tmp_path, body)
    assert values["wire_fragments_source"] == pytest.approx(100, abs=5)
    assert values["wire_reassembled_source"] * 3 == pytest.approx(values["wire_packets_source"], rel=0.1)


def test_what_a_program_of_the_workload_used_is_the_generator_s_also_once_it_has_ended(tmp_path: Path):
    """The agent that started it has waited for it by then, so that its CPU is among the agent's children's."""
    burn = "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"

    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        argv = ["python3", "-I", "-S", "-c", burn]
        return await watched(lab, tunnel, tmp_path, ("cpu", "daemons"), argv, "b")

    values, notes = on("wireguard-go", tmp_path, body)
    assert values["cpu_generator_target"] > 0.9 * values["cpu_user_target"]
    assert values["cpu_generator_target"] > 10 * values["cpu_daemons_target"]
    assert "cpu_daemons_target" not in notes


def test_cpu_is_charged_to_the_node_that_works(tmp_path: Path):
    burn = "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"
    seconds: dict[str, float] = {}

    async def body(lab: Lab, tunnel: RunningDeployment) -> dict[str, float]:
        group = lab.group("b")
        assert group is not None
        found, _ = await watched(lab, tunnel, tmp_path, ("cpu",), ["python3", "-I", "-S", "-c", burn], "b")
        seconds["b"] = cgroups.used(group).total
        return found

    values = on("direct", tmp_path, body)
    assert values["cpu_user_target"] > 10 * values["cpu_user_source"]
    # Threads of the kernel on the node's core are the machine's, too: what they take for others is in the figure, and told apart.
    parts = ("user", "kernel", "ksoftirqd", "workers", "unbilled")
    assert values["cpu_target"] == pytest.approx(sum(values.get(f"cpu_{part}_target", 0.0) for part in parts), rel=0.01)
    assert seconds["b"] > 1


@pytest.mark.proof("what nodes, links, command and kernel use adds up to what the machine does, within five per cent")
def test_the_parts_of_a_busy_lab_are_the_whole_machine(tmp_path: Path):
    """Nodes, links, command, ksoftirqd and others together, against the kernel's own total, within five per cent."""

    async def once() -> Any:
        driver, options = registry.arm("wireguard-go")
        async with (
            LabClient() as labs,
            labs.lab(PAIR, UNSHAPED) as lab,
            deploy(lab, driver, options, logs=tmp_path, ready_timeout=20) as tunnel,
        ):
            return await busy(labs, lab, str(tunnel.address["b"]), 2)

    rounds = [asyncio.run(once()) for _ in range(3)]
    for account in rounds:
        print("\n".join(account.lines()))
    assert disagreements(rounds) == {}


def test_tcp_is_sampled_without_charging_the_node(tmp_path: Path):
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
        argv = ["iperf3", "-t2", "-b50M", "-c", str(tunnel.address["b"])]
        found = await watched(lab, tunnel, tmp_path, ("tcp",), argv)
        await server.wait()
        return found

    values, notes = on("direct", tmp_path, body)
    assert values["tcp_cwnd"] > 10
    assert 0 < values["tcp_rtt"] < 50
    assert 0 <= values["tcp_retransmits"] < 50  # of 8,600: on a busy machine a queue may overflow
    assert values["tcp_reordering"] == 0
    assert notes == {"tcp_own": "the VPN uses no TCP itself"}


def test_where_the_kernel_refuses_to_count_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(numbers: int) -> bytes:
        return b"\x95" + bytes(7)  # it ends without a result, which the kernel's verifier refuses

    monkeypatch.setattr(packet_sizes, "program", broken)

    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        return await watched(lab, tunnel, tmp_path, ("wire",), ping(tunnel))

    values, notes = on("direct", tmp_path, body)
    assert values["wire_bytes_per_byte"] == 1.0, "what needs no BPF is told all the same"
    assert "wire_to_128" not in values
    assert "refused to count packets" in notes["wire_to_128"]


def test_system_calls_are_counted_or_the_reason_is_told(tmp_path: Path):
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[dict[str, float], dict[str, str]]:
        return await watched(lab, tunnel, tmp_path, ("syscalls",), ping(tunnel))

    values, notes = on("openvpn", tmp_path, body)
    if "syscalls_source" not in values:
        assert notes.get("syscalls") or notes.get("syscalls_source"), "nothing was seen, and nobody says why"
    else:
        assert 1 <= values["syscalls_per_packet_source"] < 20  # at least one to read or to write each packet


def test_nothing_of_a_watched_lab_is_left(tmp_path: Path):
    before = Host.now()

    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        await watched(lab, tunnel, tmp_path, ("cpu", "memory", "switches", "wire", "tcp", "syscalls"), ping(tunnel))

    on("wireguard-go", tmp_path, body)
    assert left_within(before) == {}
