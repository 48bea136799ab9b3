"""Faults of the underlay and of whole nodes: what vanishes during them, what is left after them, and how a VPN comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.asking import answered, answering, passes
from support.beginnings import begun
from support.events import READY, connected, with_vpn
from support.labs import TRIO, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.errors import WorkloadFailed
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.load import load_topology
from tunnelmark.plan.model import InnerNetwork, Topology
from tunnelmark.plan.routers import KINDS
from tunnelmark.run import rebinding
from tunnelmark.run.deploy import FOLDER, RunningDeployment, prepare
from tunnelmark.run.events import happen
from tunnelmark.workloads.base import ANSWERED, EVERY_NODE, Event, EventKind

pytestmark = pytest.mark.root

BACK = pytest.mark.proof(
    "each VPN is back after reboots, partitions and cuts, and the way that it takes meanwhile is seen"
)
"""For all but one VPN of each fault: `make test` shows that the fault is done and undone, `make proof` what all make of it."""

HUB = Topology("hub", "T", TRIO.nodes, TRIO.links, hub="b")
BEHIND_NAT = load_topology("behind-nat", Files((PACKAGED,)))
LONG = 600.0  # seconds: an event that is to come then does not come in a test


async def while_it_lasts(lab: Lab, tunnel: RunningDeployment, event: Event, folder: Path) -> asyncio.Task[None]:
    """An event has been done, and what ends it is far away."""
    doing = asyncio.create_task(happen(lab, tunnel, [event, Event(LONG, "restart", "a")], folder / "events"))
    file = folder / "events"
    await begun(doing, lambda: file.exists() and event.kind in file.read_text())
    return doing


async def tables(lab: Lab) -> list[str]:
    return [(await node.run(["nft", "list", "tables"])).stdout.strip() for node in lab.nodes.values()]


def test_a_partition_keeps_a_node_from_all_others_and_ends_with_the_trial_that_is_stopped_in_it(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        doing = await while_it_lasts(lab, tunnel, Event(0.0, "partition", "b"), tmp_path)
        assert not await passes(lab, "a", "b")
        assert not await passes(lab, "b", "a")
        assert not await passes(lab, "c", "b", tcp=True)
        assert await passes(lab, "a", "c")
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
        assert await tables(lab) == ["", "", ""]
        assert await passes(lab, "a", "b")
        assert await passes(lab, "b", "a")

    with_vpn("direct", tmp_path, body, TRIO)


@pytest.mark.parametrize("kind", ["partition", "udp-cut", "udp-blocked", "link-down", "power-off"])
def test_what_is_stopped_while_it_begins_leaves_links_whole(kind: str, tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        for number, seconds in enumerate((0.001, 0.005, 0.01, 0.02, 0.05)):
            event = Event(0.0, kind, "b")  # type: ignore[arg-type]
            doing = asyncio.create_task(happen(lab, tunnel, [event], tmp_path / f"events{number}"))
            await asyncio.sleep(seconds)
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)
            assert await tables(lab) == ["", ""]
            assert await passes(lab, "a", "b")

    with_vpn("direct", tmp_path, body)


def test_an_error_in_the_middle_heals_what_was_cut(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        events = [Event(0.0, "partition", "b"), Event(0.1, "start", "no such node"), Event(LONG, "partition-heal", "b")]

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("in the middle")

        tunnel.begin_again = fail  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="in the middle"):
            await happen(lab, tunnel, events, tmp_path / "events")
        assert await tables(lab) == ["", ""]
        assert await passes(lab, "a", "b")

    with_vpn("direct", tmp_path, body)


@pytest.mark.parametrize(("kind", "reaches_relay"), [("udp-cut", True), ("udp-blocked", False)])
def test_without_udp_a_node_reaches_others_by_tcp_and_the_relay_by_both_unless_all_is_blocked(
    kind: EventKind, reaches_relay: bool, tmp_path: Path
) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        doing = await while_it_lasts(lab, tunnel, Event(0.0, kind, "c"), tmp_path)
        assert not await passes(lab, "a", "c")
        assert not await passes(lab, "c", "a")
        assert await passes(lab, "a", "c", tcp=True)
        assert await passes(lab, "b", "c", tcp=True)
        assert await passes(lab, "b", "c") is reaches_relay
        assert await passes(lab, "c", "b") is reaches_relay
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
        assert await passes(lab, "a", "c")

    with_vpn("direct", tmp_path, body, HUB)


def test_a_host_without_power_says_nothing_and_forgets_all_but_its_files(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        node = lab.nodes["b"]

        async def shown() -> str:
            words = "ip -o -4 address show dev eth0; ip route; ip rule; ip -6 rule; nft list tables; ls /sys/class/net"
            return (await node.run(["sh", "-c", words])).stdout

        before = await shown()
        for words in (
            "ip tuntap add left0 mode tun",
            "ip rule add pref 100 lookup 52",
            "nft add table inet left",
            f"touch {FOLDER}/state",
        ):
            assert (await node.run(words.split())).code == 0, words
        assert await shown() != before
        doing = await while_it_lasts(lab, tunnel, Event(0.0, "power-off", "b"), tmp_path)
        assert "state DOWN" in (await node.run(["ip", "link", "show", "dev", "eth0"])).stdout
        assert (await node.run(["pidof", "nebula"])).code != 0
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
        assert (await node.run(["ls", f"{FOLDER}/state"])).code == 0
        without_tunnel = "\n".join(line for line in before.splitlines() if tunnel.interface["b"] not in line)
        assert sorted((await shown()).splitlines()) == sorted(without_tunnel.splitlines())

    with_vpn("nebula", tmp_path, body)


@pytest.mark.parametrize(
    ("arm", "node"),
    [
        ("wireguard-go", "source"),
        pytest.param("direct", "target", marks=BACK),
        pytest.param("tinc", "target", marks=BACK),
        pytest.param("nebula", "all", marks=BACK),
    ],
)
def test_a_vpn_comes_back_after_a_reboot(arm: str, node: str, tmp_path: Path) -> None:
    values, events = connected(arm, tmp_path, event="reboot", node=node, outage="0.4 s")
    answered = [
        one for one in events if one["kind"] == ANSWERED
    ]  # a node may be back while the last step of another goes on
    off, on = (one for one in events if one not in answered)
    assert (off["kind"], on["kind"]) == ("power-off", "power-on")
    assert off["node"] == {"source": "a", "target": "b", "all": EVERY_NODE}[node]
    assert on["begun"] - off["begun"] >= 0.4 - 0.001
    assert values["lost"] > 0
    assert (
        values["back"] >= on["begun"] - off["begun"]
    )  # what was on its way as the link went may make the gap shorter, and back not
    assert sorted(one["node"] for one in answered) == (["a", "b"] if node == "all" else [])
    for one in answered:
        assert on["begun"] < one["ended"]
        assert values["node_back_first"] <= one["ended"] - off["begun"] <= values["node_back_last"]


@BACK
def test_the_overlay_s_inner_network_is_there_again_after_a_reboot(tmp_path: Path) -> None:
    driver, options = registry.arm("nebula")

    async def run() -> str:
        async with LabClient() as labs, labs.lab(TRIO, UNSHAPED) as lab:
            tunnel = prepare(lab, driver, options, tmp_path, inner=InnerNetwork(1230))
            await tunnel.start()
            await tunnel.answer(READY)
            events = [Event(0.0, "power-off", "c"), Event(0.1, "power-on", "c")]
            await tunnel.unless_dead(happen(lab, tunnel, events, tmp_path / "events"))
            return await answered(lab.nodes["a"], tunnel.address["c"], 4 * READY)

    assert " 1 received" in asyncio.run(run())


@pytest.mark.parametrize(
    "arm", ["nebula", *(pytest.param(arm, marks=BACK) for arm in ("direct", "wireguard-go", "tinc"))]
)
def test_a_vpn_comes_back_after_a_partition(arm: str, tmp_path: Path) -> None:
    values, (cut, heal) = connected(arm, tmp_path, event="partition", outage="0.4 s")
    assert (cut["kind"], heal["kind"]) == ("partition", "partition-heal")
    assert values["back"] >= heal["begun"] - cut["begun"]
    assert values["lost"] > 0


@pytest.mark.parametrize(("arm", "stops"), [("nebula", True), pytest.param("openvpn-tcp", False, marks=BACK)])
def test_udp_that_is_cut_stops_who_needs_it(arm: str, stops: bool, tmp_path: Path) -> None:
    values, (cut, heal) = connected(arm, tmp_path, event="udp-cut", outage="0.6 s")
    if stops:
        assert values["back"] >= heal["begun"] - cut["begun"]
    else:
        assert values["lost"] <= values["queue_drops"]


@BACK
@pytest.mark.slow
def test_who_loses_udp_to_all_but_the_relay_is_seen_to_go_through_it(tmp_path: Path) -> None:
    values, (cut, heal) = connected("easytier", tmp_path, HUB, watched=True, event="udp-cut", outage="60 s")
    assert values["relayed_before"] == pytest.approx(0, abs=10)
    assert 0 < values["relay_after"] < heal["begun"] - cut["begun"]
    assert values["back"] < heal["begun"] - cut["begun"]  # the relay carried it while the cut lasted
    assert values["relayed_during"] > 10


def test_daemons_stay_dead_for_the_outage(tmp_path: Path) -> None:
    values, (stop, start) = connected("nebula", tmp_path, event="restart", outage="0.5 s")
    assert (stop["kind"], start["kind"]) == ("stop", "start")
    assert values["back"] >= start["begun"] - stop["begun"]


@BACK
@pytest.mark.slow
def test_a_relay_that_is_down_takes_its_path_along(tmp_path: Path) -> None:
    values, (stop, start) = connected("nebula-relay", tmp_path, HUB, event="restart", node="relay", outage="0.5 s")
    assert stop["node"] == start["node"] == "b"
    assert values["back"] >= start["begun"] - stop["begun"]


def test_a_relay_that_is_down_is_nothing_to_a_direct_path(tmp_path: Path) -> None:
    values, _ = connected("direct", tmp_path, HUB, event="reboot", node="relay", outage="0.3 s")
    assert values["lost"] <= values["queue_drops"]


async def outside_ports(lab: Lab, source: str, target: str, times: int = 1) -> list[int]:
    """By which ports a socket of a node behind a router reaches another node."""
    asked = {"udp/5303"}
    return [(await answering(lab, source, target, asked, asked, own_port=40123))["udp/5303"] for _ in range(times)]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_router_that_forgets_its_mappings_takes_other_ports(kind: str) -> None:
    async def body(lab: Lab) -> list[list[int]]:
        seen = []
        routers = rebinding.routers_of(lab, "a")
        assert [router.name for router in routers] == ["ra"]
        for draw in range(3):
            if draw:
                await rebinding.rebind(lab, routers, draw)
                owners = (await lab.routers["ra"].run(["nft", "list", "map", "ip", "translation", "owner"])).stdout
                assert "elements" not in owners
            seen.append(await outside_ports(lab, "a", "s", 2))
        return seen

    ports = in_lab(body, BEHIND_NAT.of_kinds([kind]))
    assert len({port for pair in ports for port in pair}) == 3  # one in each life
    assert all(first == second for first, second in ports)


@BACK
@pytest.mark.parametrize("arm", ["direct", "nebula-punch"])
def test_a_vpn_finds_its_way_after_its_router_forgot_its_mappings(arm: str, tmp_path: Path) -> None:
    topology = BEHIND_NAT.open if arm == "direct" else BEHIND_NAT
    values, (event,) = connected(arm, tmp_path, topology, event="nat-rebinding", node="source")
    assert event["kind"] == "nat-rebinding"
    assert (values["lost"] <= values["queue_drops"]) or arm != "direct"


def test_a_node_behind_no_translation_has_no_mapping_to_forget(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFailed, match="no router translates the address of b on pair"):
        connected("wireguard-go", tmp_path, event="nat-rebinding")
