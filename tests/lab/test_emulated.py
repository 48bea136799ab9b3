"""Emulated links in real labs do what their profile says, and are told when they do not.

What every change must pass is what a machine that stands still for a moment does not change: no packet is early, one of ten
is on time, and what the emulator decided is what the probes met. What it decides is tested in virtual time
(crates/emulator-core). How well probes as a whole meet a profile is for the proof.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import numpy as np
import pytest

from support.host import queue_drops
from support.labs import PAIR, TRIO, in_lab
from support.machine_stall import while_still
from tunnelmark.analyse.link.judge import judge, row_of
from tunnelmark.analyse.link.statistics import ProbeRow
from tunnelmark.errors import LabError, MissingPart
from tunnelmark.lab import emulator
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.model.observation import Observation
from tunnelmark.model.probe_plan import pace_of
from tunnelmark.plan.impairments import Blackout, Bursts, Chance, Direction, GilbertElliott, Jitter, Reordering
from tunnelmark.plan.model import Profile
from tunnelmark.record.link_check import LinkCheck, LinkLine
from tunnelmark.run.link_observation import observe
from tunnelmark.units import Duration, Rate, Share, Size

pytestmark = pytest.mark.root

AS_STATED = pytest.mark.proof("an emulated link does what its profile says, as probes meet it")

NOISE = ("delay_mean", "delay_p99", "delay_sd", "late", "distribution")
"""What other work on the machine moves; its own tests measure it on a quiet one."""


@pytest.fixture(autouse=True)
def built():
    try:
        emulator.program()
    except MissingPart as missing:
        pytest.skip(missing.hint)


def profile(way: Direction, back: Direction | None = None, **more) -> Profile:
    return Profile("made", "T", "S", way, way if back is None else back, **more)


def verify(made: Profile, raw: Path, count: int = 1500) -> LinkCheck:
    async def run(folder: Path) -> LinkCheck:
        async with LabClient() as labs:
            return judge(made, await observe(labs, PAIR, made, pace_of(made, count, 0.001), folder, seed=5), "alone")

    return while_still(lambda folder: asyncio.run(run(folder)), raw)


def outside(check: LinkCheck) -> list[LinkLine]:
    return [line for line in check.lines if line.ok is False and line.name not in NOISE]


def achieved(check: LinkCheck, way: str, name: str) -> float:
    found = next(line.achieved for line in check.lines if (line.way, line.name) == (way, name))
    assert found is not None
    return found


def met(made: Profile, raw: Path, count: int) -> tuple[dict[str, ProbeRow], dict[str, dict], int]:
    """The row of probes each way, what the emulator says of that way, and how many packets the machine's cores had no room for."""

    async def run() -> Observation:
        async with LabClient() as labs:
            return await observe(labs, PAIR, made, pace_of(made, count, 0.001), raw, seed=5)

    before = queue_drops()
    seen = asyncio.run(run())
    dropped = queue_drops() - before
    rows = {f"{flow.source}>{flow.target}": row_of(flow, seen.zero) for flow in (seen.forward, seen.back)}
    return rows, {each["name"].replace(" to ", ">"): each for each in seen.reports[0]["directions"]}, dropped


def test_no_packet_is_early_and_most_are_on_time(tmp_path: Path):
    delays = {"a>b": 0.02, "b>a": 0.005}
    made = profile(*(Direction(delay=Duration(delay)) for delay in delays.values()))
    rows, *_ = met(made, tmp_path, 1000)
    for way, asked in delays.items():
        delay = rows[way].delay
        assert np.nanmin(delay) >= asked
        assert np.nanquantile(delay, 0.1) < asked + 0.001


def test_jitter_lets_packets_through_without_delay_and_never_without_the_propagation(tmp_path: Path):
    jitter = Jitter(Duration(0.01), keep_order=False)
    way = Direction(delay=Duration(0.002), jitter=jitter, propagation=Duration(0.004))
    rows, *_ = met(profile(way, model="netem"), tmp_path, 1000)
    for row in rows.values():
        assert np.nanmin(row.delay) >= 0.004
        assert np.nanquantile(row.delay, 0.1) < 0.005  # 40 % have no other delay


def test_probes_meet_what_the_emulator_says_that_it_decided(tmp_path: Path):
    way = Direction(
        delay=Duration(0.005),
        loss=GilbertElliott(Share(0.02), Share(0.25)),
        duplication=Chance(Share(0.05)),
    )
    rows, said, elsewhere = met(profile(way), tmp_path, 1500)
    for name, row in rows.items():
        lost, copied = int(row.lost.sum()), int(row.duplicated.sum())
        # The emulator counts what is no probe as well: a few packets of neighbour discovery, mostly none.
        assert 40 < lost <= said[name]["dropped"]["loss"] + elsewhere
        assert said[name]["dropped"]["loss"] <= lost + 5
        assert 40 < copied <= said[name]["realised"]["duplicated"] <= copied + 5 + elsewhere


def test_processes_in_time_are_met_as_the_emulator_decides_them(tmp_path: Path):
    """Bursts last for many probes, a drawn cut is met in every period, and no packet is earlier than jitter makes it."""
    way = Direction(
        delay=Duration(0.02),
        jitter=Jitter(Duration(0.004), correlation_time=Duration(0.1)),
        loss=Bursts(Duration(0.05), Duration(0.2)),
        blackouts=(Blackout(None, Duration(0.1), Duration(0.5)),),
    )
    rows, said, elsewhere = met(profile(way), tmp_path, 1500)
    for name, row in rows.items():
        dropped = said[name]["dropped"]
        lost = int(row.lost.sum())
        assert lost - elsewhere <= dropped["loss"] + dropped["blackout"] <= lost + 5
        assert dropped["blackout"] > 0
        assert dropped["loss"] > 3 * said[name]["realised"]["loss_runs"] > 0
        assert np.nanmin(row.delay) >= 0.016 - 1e-5


@AS_STATED
def test_each_direction_has_its_own_delay_and_loss(tmp_path: Path):
    made = profile(Direction(delay=Duration(0.02)), Direction(delay=Duration(0.005), loss=Chance(Share(0.05))))
    check = verify(made, tmp_path)
    assert outside(check) == []
    assert achieved(check, "a>b", "delay_p50") == pytest.approx(20, abs=0.3)
    assert achieved(check, "b>a", "delay_p50") == pytest.approx(5, abs=0.3)
    assert achieved(check, "a>b", "loss") == 0
    assert 2 < achieved(check, "b>a", "loss") < 9
    assert (tmp_path / "attempt-0" / "emulator.middle.out").read_text().startswith('{"ready"')


@AS_STATED
def test_jitter_bursts_copies_corruption_and_reordering(tmp_path: Path):
    way = Direction(
        delay=Duration(0.02),
        jitter=Jitter(Duration(0.002), "normal", Share(0.5), keep_order=False),
        loss=GilbertElliott(Share(0.02), Share(0.25)),
        duplication=Chance(Share(0.05)),
        corruption=Chance(Share(0.05)),
        reordering=Reordering(Share(0.05)),
    )
    check = verify(profile(way), tmp_path, 2500)
    assert outside(check) == []
    assert achieved(check, "a>b", "skipped") == pytest.approx(5, abs=2.5)
    assert achieved(check, "a>b", "delay_lag1") == pytest.approx(0.5, abs=0.15)


@AS_STATED
def test_an_emulated_rate_and_its_queue(tmp_path: Path):
    way = Direction(delay=Duration(0.01), rate=Rate(20_000_000), queue=Size(65536))
    check = verify(profile(way), tmp_path, 200)
    assert outside(check) == []
    assert achieved(check, "a>b", "rate") == pytest.approx(20e6, rel=0.03)
    assert achieved(check, "a>b", "queue") == pytest.approx(65536, rel=0.2)


@AS_STATED
def test_netems_model_with_a_shaper_behind_it(tmp_path: Path):
    way = Direction(
        delay=Duration(0.004),
        jitter=Jitter(Duration(0.002), keep_order=False),
        rate=Rate(20_000_000),
        queue=Size(65536),
    )
    check = verify(profile(way, model="netem"), tmp_path, 500)
    assert outside(check) == []
    assert achieved(check, "a>b", "rate") == pytest.approx(20e6, rel=0.1)


@AS_STATED
def test_the_trains_of_both_ways_arrive_at_a_rate_that_few_senders_reach(tmp_path: Path):
    way = Direction(
        delay=Duration(0.002),
        jitter=Jitter(Duration(0.002), keep_order=False),
        loss=Chance(Share(0.0025)),
        rate=Rate(10**9),
        queue=Size(524_288),
    )
    check = verify(profile(way, model="netem"), tmp_path, 300)
    assert outside(check) == []
    for way_name in ("a>b", "b>a"):
        assert achieved(check, way_name, "rate") > 1e8


def test_three_nodes_on_an_emulated_switch():
    async def body(lab: Lab) -> list[float]:
        delays = []
        for source, target in (("a", "b"), ("b", "c"), ("c", "a")):
            address = str(lab.address(target))
            done = await lab.nodes[source].run(["ping", "-n", "-q", "-c40", "-i0.02", address], timeout=60)
            delays.append(float(done.stdout.rpartition("=")[2].split("/")[0]))  # the least of them
        return delays

    back = Direction(delay=Duration(0.02))
    # To the first node is back: b and c answer each other without it.
    there, across, here = in_lab(body, TRIO, profile(Direction(delay=Duration(0.01)), back))
    assert there == pytest.approx(30, abs=1)
    assert across == pytest.approx(20, abs=1)
    assert here == pytest.approx(30, abs=1)


@pytest.mark.parametrize(("unit", "on"), [("gso", "on"), ("wire", "off")])
def test_super_packets_stay_whole_where_the_sender_decides(unit, on):
    async def body(lab: Lab) -> str:
        return (await lab.nodes["a"].run(["ethtool", "-k", "eth0"])).stdout

    made = Profile("made", "T", "S", Direction(delay=Duration(0.001)), unit=unit)
    assert f"tcp-segmentation-offload: {on}" in in_lab(body, profile=made)


@pytest.mark.parametrize(("unit", "datapath", "offload"), [("gso", "af_packet", "on"), ("wire", "af_xdp", "off")])
def test_frames_cross_by_xdp_and_super_packets_by_packet_sockets(unit, datapath, offload, tmp_path: Path):
    async def body(lab: Lab) -> tuple[str, str]:
        shown = await lab.nodes["a"].run(["ethtool", "-k", "eth0"])
        # A checksum that is not whole would be seen by the receiving kernel, and no byte would arrive.
        server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
        client = f"until iperf3 -c {lab.address('b')} -n 2M; do sleep 0.05; done"
        done = await lab.nodes["a"].run(["sh", "-c", client])
        await server.stop()
        return shown.stdout, done.stdout

    async def run() -> tuple[str, str]:
        async with LabClient() as labs, labs.lab(PAIR, made, raw=tmp_path) as lab:
            return await body(lab)

    made = Profile("made", "T", "S", Direction(delay=Duration(0.001)), unit=unit)
    shown, done = asyncio.run(run())
    assert f"tx-checksumming: {offload}" in shown
    assert "receiver" in done
    ready = json.loads((tmp_path / "emulator.middle.out").read_text().partition("\n")[0])["ready"]
    if any("bpf(2)" in way for way in ready["datapaths"]):
        pytest.skip(f"BPF is refused here: {ready['datapaths']}")
    assert ready["datapaths"] == [datapath] * 2


def test_a_link_seldom_asks_for_an_address():
    """A lost ARP request would cost a second that no path of routers has."""

    async def body(lab: Lab) -> str:
        return (await lab.nodes["a"].run(["ip", "neigh"])).stdout

    assert "PERMANENT" in in_lab(body, profile=profile(Direction(loss=Chance(Share(0.5)))))


def test_an_emulator_that_refuses_says_why(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> dict:
        return {"directions": []}

    monkeypatch.setattr(emulator, "configuration", broken)
    with pytest.raises(LabError) as caught:
        in_lab(lambda lab: lab.nodes["a"].run(["true"]), profile=profile(Direction(delay=Duration(0.001))))
    assert "directions" in caught.value.message


def test_reports_say_what_happened():
    async def body(lab: Lab) -> list[dict]:
        await lab.zero()
        await lab.nodes["a"].run(["ping", "-n", "-q", "-c10", "-i0.01", "-w20", str(lab.address("b"))], timeout=60)
        return await lab.link_reports()

    (report,) = in_lab(body, profile=profile(Direction(delay=Duration(0.001))))
    assert sum(direction["packets"] for direction in report["directions"]) >= 20


def test_the_links_time_has_begun_again_before_anything_is_sent():
    async def body(lab: Lab) -> None:
        for _ in range(20):
            before = time.monotonic_ns()
            await lab.zero()
            after = time.monotonic_ns()
            (report,) = await lab.link_reports()
            assert before < report["zero_ns"] < after

    in_lab(body, profile=profile(Direction(delay=Duration(0.005))))
