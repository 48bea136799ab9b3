"""A bottleneck that is put into a lab on purpose is the one that is named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from support.labs import PAIR, UNSHAPED, shaped
from tunnelmark import registry
from tunnelmark.analyse.bottleneck import of_trial
from tunnelmark.analyse.model import Bottleneck
from tunnelmark.cli.measurement_lock import alone
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.linux import cgroups
from tunnelmark.plan.files import PACKAGED, Files
from tunnelmark.plan.impairments import Chance, Direction
from tunnelmark.plan.load import load_topology
from tunnelmark.plan.model import InnerNetwork, Profile, Topology
from tunnelmark.record.results import MetricInfo, SampleRow, TrialRow, WorkloadInfo
from tunnelmark.run import interference
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors
from tunnelmark.run.deploy import RunningDeployment, deploy
from tunnelmark.run.observed import observed
from tunnelmark.units import Duration, Rate, Share, Size

pytestmark = pytest.mark.root

FILES = Files((PACKAGED,))
SECONDS = 3
LOAD = 5_000_000  # bit/s, which any machine carries
HEADERS = 20 + 8  # bytes, IPv4 and UDP
GOODPUT = MetricInfo("goodput", "bit/s", "goodput", "higher", "ratio", True)
TCP = WorkloadInfo("tcp", "tcp", "TCP", {}, (GOODPUT,), SECONDS, 0.0)
UDP = WorkloadInfo("udp", "udp", "UDP", {}, (GOODPUT,), SECONDS, 0.0, offered=LOAD)

Prepare = Callable[[Lab, RunningDeployment], Awaitable[None]]


@pytest.fixture(scope="module", autouse=True)
def nobody_else_measures() -> Iterator[None]:
    """An emulator that another run floods has real-time priority, and leaves a node that shares its core no time for seconds."""
    with alone(Console(stderr=True), "the tests of what bounds a trial"):
        yield


async def nothing(lab: Lab, tunnel: RunningDeployment) -> None:
    """Leave the lab as it is."""


def watched(
    raw: Path,
    arm: str,
    *client: str,
    profile: Profile = UNSHAPED,
    topology: Topology = PAIR,
    options: Mapping[str, object] | None = None,
    prepare: Prepare = nothing,
    inner: InnerNetwork | None = None,
    use: WorkloadInfo = TCP,
    bytes_: int | None = None,
) -> TrialRow:
    """A stream of iperf3 over an arm, of `SECONDS` or of so many bytes, with what its nodes counted meanwhile."""
    a, b = topology.nodes[0], topology.nodes[-1]
    driver, usual = registry.arm(arm)
    chosen = driver.options.model_validate(usual.model_dump() | dict(options or {}))

    async def run() -> TrialRow:
        async with (
            LabClient() as labs,
            labs.lab(topology, profile) as lab,
            deploy(lab, driver, chosen, logs=raw, ready_timeout=20, inner=inner) as tunnel,
        ):
            server = await lab.nodes[b].spawn(["iperf3", "-s", "-1"])
            await lab.nodes[b].until({"kind": "tcp-port", "port": 5201}, 10)
            watching = Collection(observed(lab, tunnel, a, b, raw), [collectors()["limits"]])
            await prepare(lab, tunnel)
            before = interference.glance(lab.cpu_seconds())
            await watching.begin()
            amount = f"-n{bytes_}" if bytes_ else f"-t{SECONDS}"
            argv = ["iperf3", "-J", amount, "-c", str(tunnel.address[b]), *client]
            done = await lab.nodes[a].run(argv, timeout=60)
            after = interference.glance(lab.cpu_seconds())
            await watching.end()
            await server.stop()
            assert done.code == 0, done.stdout
            assert watching.limits, watching.notes
            end = json.loads(done.stdout)["end"]
            received = end.get("sum_received", end.get("sum", {}))["bytes"]
            if bytes_:  # iperf3 leaves unread what waits in its socket when it hears that all was sent
                received = watching.limits["got_target"] * (watching.limits["got_size_target"] - HEADERS)
            # By the time for which it was offered: iperf3's own seconds go on until it gets its core again.
            arrived = received * 8 / SECONDS
            return TrialRow(
                *("001.x.p.pair.tcp", 0, 1, arm, "p", "pair", use.name, "a>b", "ok", 0.0, {}),
                samples=(SampleRow("goodput", "bit/s", arrived),),
                host=interference.between(before, after),
                limits=watching.limits,
            )

    return asyncio.run(run())


def bound(
    raw: Path,
    arm: str,
    *client: str,
    profile: Profile = UNSHAPED,
    options: Mapping[str, object] | None = None,
    prepare: Prepare = nothing,
    inner: InnerNetwork | None = None,
    use: WorkloadInfo = TCP,
    bytes_: int | None = None,
) -> Bottleneck:
    """What bound a stream of iperf3 over an arm."""
    row = watched(
        raw, arm, *client, profile=profile, options=options, prepare=prepare, inner=inner, use=use, bytes_=bytes_
    )
    found = of_trial(row, use, profile.rate)
    print(found, row.host, {name: value for name, value in row.limits.items() if value})
    assert found is not None
    return found


def emulated(**way: object) -> Profile:
    both = Direction(**way)  # type: ignore[arg-type]
    return Profile("emulated", "T", "S", both, both)


def test_a_full_link(tmp_path: Path) -> None:
    assert bound(tmp_path, "direct", profile=shaped("20 Mbit/s")).what == "link"


@pytest.mark.parametrize("topology", ["pair", "chain-1"])
def test_what_leaves_a_card_that_splits_is_counted_in_wire_packets(tmp_path: Path, topology: str) -> None:
    """Counted as super-packets, a full link has some 96 % of its rate, and a core that it shares with others seems to bind it."""
    profile = replace(shaped("100 Mbit/s"), card="offloads")
    row = watched(tmp_path, "direct", profile=profile, topology=load_topology(topology, FILES))
    arrived = row.samples[0].value * SECONDS / 8
    assert row.limits["out_source"] >= arrived / 1448


def test_what_the_first_link_of_a_chain_has_no_room_for_is_lost_by_the_one_that_sent_it(tmp_path: Path) -> None:
    chain = load_topology("chain-1", FILES)
    row = watched(tmp_path, "direct", "-u", "-b30M", "-l1000", profile=shaped("5 Mbit/s", "9 kB"), topology=chain)
    assert row.limits["drop_link_source"] >= 100
    assert row.limits["drop_link_target"] == 0


def test_the_load_that_is_offered(tmp_path: Path) -> None:
    """In bytes: what iperf3 has not sent at the end of its seconds, since it had no core, it does not send any more."""
    bytes_ = LOAD * SECONDS // 8
    assert bound(tmp_path, "anchor", "-u", f"-b{LOAD}", "-l1000", use=UDP, bytes_=bytes_).what == "load"


def test_a_generator_that_has_nothing_to_send(tmp_path: Path) -> None:
    assert bound(tmp_path, "anchor", f"-b{LOAD}").what == "generator"


def test_a_window(tmp_path: Path) -> None:
    """Some ten packets a round trip of 40 ms."""
    assert bound(tmp_path, "direct", "-w16K", profile=emulated(delay=Duration(0.02))).what == "window"


def test_loss_that_the_profile_asks_for(tmp_path: Path) -> None:
    found = bound(tmp_path, "direct", profile=emulated(delay=Duration(0.01), loss=Chance(Share(0.02))))
    assert (found.what, found.place) == ("loss", "the link, as its profile says")


def test_a_queue_of_the_link_that_is_too_short(tmp_path: Path) -> None:
    """Room for six packets where a round trip holds 140: the link is never full, and its queue overflows."""
    profile = emulated(delay=Duration(0.02), rate=Rate.parse("40 Mbit/s"), queue=Size.parse("9 kB"))
    found = bound(tmp_path, "direct", profile=profile)
    assert (found.what, found.place) == ("loss", "the link's queue")


def test_a_receive_buffer_of_the_vpn_that_is_too_small(tmp_path: Path) -> None:
    found = bound(tmp_path, "anchor", options={"receive_buffer": 1}, profile=shaped("1 Gbit/s"))
    assert (found.what, found.place) == ("loss", "the VPN's receive buffer")


@pytest.mark.parametrize("inner", [None, InnerNetwork()], ids=["workload-in-the-vpn", "workload-in-a-vxlan-on-it"])
def test_a_queue_of_the_tunnel_interface_that_is_too_short(tmp_path: Path, inner: InnerNetwork | None) -> None:
    """With a delay, so that what the queue drops is what holds the stream down, and no core, however busy the machine."""

    async def shorten(lab: Lab, tunnel: RunningDeployment) -> None:
        shown = await lab.nodes["a"].run(["ip", "-o", "link", "show", "type", "tun"])
        (name,) = (line.split(": ")[1] for line in shown.stdout.splitlines())
        done = await lab.nodes["a"].run(["ip", "link", "set", name, "txqueuelen", "2"])
        assert done.code == 0, done.stderr

    found = bound(tmp_path, "anchor", profile=emulated(delay=Duration(0.01)), prepare=shorten, inner=inner)
    assert (found.what, found.place) == ("loss", "the sender's tunnel interface")


@pytest.mark.parametrize(("node", "what"), [("a", "sender's core"), ("b", "receiver's core")])
def test_a_core_that_a_quota_makes_small(tmp_path: Path, node: str, what: str) -> None:
    async def slow(lab: Lab, tunnel: RunningDeployment) -> None:
        top, group = cgroups.find().cpu, lab.group(node)
        assert group is not None
        if top is None:
            pytest.skip("no CPU controller to set a quota with")
        leaf = top / group.parent.name / group.name
        if (leaf / "cpu.cfs_quota_us").exists():
            (leaf / "cpu.cfs_quota_us").write_text("2000")  # of 100,000: a fiftieth of a core
        elif (leaf / "cpu.max").exists():
            (leaf / "cpu.max").write_text("2000 100000")
        else:
            pytest.skip("the node's group has no quota here")

    assert bound(tmp_path, "direct", prepare=slow).what == what


def test_a_vpn_that_can_go_as_fast_as_the_machine_is_bound_by_the_processor(tmp_path: Path) -> None:
    """A core that the sender always wants, also while other work has it; by TCP the two ends would wait for each other."""
    assert bound(tmp_path, "anchor-chacha20", "-u", "-b0", "-l1000").what == "sender's core"


@pytest.mark.proof("TCP over a VPN that can go as fast as the machine is bound by the processor")
def test_tcp_over_a_fast_vpn_is_bound_by_the_processor(tmp_path: Path) -> None:
    """A core without rest, or, where programs take turns on it, a buffer that one came to too late; next to other work its ends wait for each other."""
    assert bound(tmp_path, "anchor-chacha20").processor
