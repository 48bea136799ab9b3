"""The workload `quic` gives back what a link is known to do: its rate, its delay, its loss, and that it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from support.labs import PAIR, in_lab, shaped
from support.machine_stall import while_still
from tunnelmark.errors import MissingPart, WorkloadFailed
from tunnelmark.host import programs
from tunnelmark.lab import emulator
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.impairments import Chance, Direction
from tunnelmark.plan.model import Profile
from tunnelmark.run.deploy import deploy
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.units import Duration, Rate, Share, Size
from tunnelmark.vpns.direct import DRIVER, UNDERLAY_INTERFACE
from tunnelmark.workloads.base import Endpoints, Reading, Traffic
from tunnelmark.workloads.quic import WORKLOAD, QuicOptions

pytestmark = pytest.mark.root

TRUE = pytest.mark.proof("the workload quic gives back what a link is known to do")

DATAGRAM = 1452
"""Bytes of UDP payload in a full datagram on a link with an MTU of 1500: as far as quinn's MTU discovery goes."""

FRAME = 14 + 20 + 8 + DATAGRAM
"""The same as the shaper counts it: Ethernet, IPv4, UDP."""

CARRIED = DATAGRAM - (1 + 8 + 2 + 16) - (1 + 1 + 4)
"""Download in it: without the QUIC packet's flags, connection ID, packet number and tag, and STREAM's type, ID, offset."""


@pytest.fixture(autouse=True)
def built():
    try:
        programs.require(WORKLOAD.part)
        emulator.program()
    except MissingPart as missing:
        pytest.skip(f"{missing.message}; {missing.hint}")


def emulated(**way) -> Profile:
    both = Direction(**way)
    return Profile("made", "T", "S", both, both)


def once(
    profile: Profile, raw: Path, meanwhile: Callable[[Lab], Awaitable[None]] | None = None, **chosen: object
) -> dict[str, float]:
    """The whole-window metrics of one run from a to b over the bare link; `meanwhile` happens beside the client."""
    options = QuicOptions.model_validate(chosen)

    async def run(lab: Lab) -> Reading:
        async with deploy(lab, DRIVER, DRIVER.options(), logs=raw, ready_timeout=10) as tunnel:
            ends = Endpoints("a", "b", tunnel.address["a"], tunnel.address["b"], 4 << 20)
            traffic: Traffic = WORKLOAD.traffic(ends, options)
            stage = WorkloadRunner(lab, tunnel, traffic, raw)
            await stage.serve()
            await asyncio.gather(stage.drive(), *([] if meanwhile is None else [meanwhile(lab)]))
            await stage.finish()
            return WORKLOAD.read(stage.outputs(), options)

    reading = in_lab(run, PAIR, profile)
    assert set(reading.congestion_control) == {"cubic"}
    return {sample.metric: sample.value for sample in reading.samples if sample.time is None}


def measured(profile: Profile, raw: Path, **chosen: object) -> dict[str, float]:
    """The same of a run in which the machine did not stand still, for what a pause of it changes."""
    return while_still(lambda folder: once(profile, folder, None, **chosen), raw)


@TRUE
@pytest.mark.parametrize("gso", [True, False])
def test_goodput_is_the_rate_less_its_headers(tmp_path: Path, gso: bool):
    values = measured(shaped("50 Mbit/s"), tmp_path, duration="3 s", warmup="1 s", gso=gso)
    assert values["goodput"] == pytest.approx(50e6 * CARRIED / FRAME, rel=0.01)
    assert values["mtu"] == DATAGRAM
    assert (values["datagrams_per_call"] == 1) is not gso


@TRUE
def test_several_connections_share_the_rate(tmp_path: Path):
    values = measured(shaped("50 Mbit/s"), tmp_path, duration="3 s", warmup="1 s", connections=4)
    assert values["goodput"] == pytest.approx(50e6 * CARRIED / FRAME, rel=0.015)


@TRUE
def test_a_connection_takes_one_round_trip_and_its_first_byte_two(tmp_path: Path):
    values = measured(emulated(delay=Duration(0.02)), tmp_path, duration="1 s", handshakes=7)
    assert 40 <= values["handshake"] < 80  # and the CPU time of TLS at both ends
    assert 80 <= values["first_byte"] < 120
    assert values["handshake"] <= values["handshake_max"]
    assert values["rtt"] >= 40


@TRUE
def test_lost_packets_are_a_share_of_those_sent(tmp_path: Path):
    profile = emulated(loss=Chance(Share(0.02)), rate=Rate(20_000_000), queue=Size(65536))
    values = measured(profile, tmp_path, duration="3 s")
    assert values["sent"] > 2000
    assert 0.01 < values["lost"] / values["sent"] < 0.035  # the drops of a queue that CUBIC fills are lost, too


def test_ten_per_cent_of_loss_are_survived(tmp_path: Path):
    # Of several connections, because the link may by chance lose every copy of one's request for as long as the trial lasts.
    lossy = emulated(loss=Chance(Share(0.1)), delay=Duration(0.005))
    values = once(lossy, tmp_path, duration="2 s", connections=4)
    assert values["goodput"] > 1e5
    assert 0.05 < values["lost"] / values["sent"] < 0.2


def test_a_path_that_stops_fails_the_trial_with_its_reason(tmp_path: Path):
    async def cut(lab: Lab) -> None:
        sent = f"/sys/class/net/{UNDERLAY_INTERFACE}/statistics/tx_bytes"
        while int(await lab.nodes["a"].read(sent)) < 1e6:  # in the middle of the download: handshakes have some kB
            await asyncio.sleep(0.02)
        await lab.nodes["a"].run(["ip", "link", "set", UNDERLAY_INTERFACE, "down"])

    with pytest.raises(WorkloadFailed, match="no longer answered within 5 s"):
        once(shaped("50 Mbit/s"), tmp_path, cut, duration="2 s")


def test_a_server_that_cannot_start_fails_the_trial_with_its_reason(tmp_path: Path):
    async def twice(lab: Lab) -> None:
        ends = Endpoints("a", "b", lab.address("a"), lab.address("b"))
        traffic = WORKLOAD.traffic(ends, QuicOptions())
        await lab.nodes["a"].spawn(traffic.servers[0].argv, env={"PATH": programs.path_of()})
        await lab.nodes["a"].until({"kind": "udp-port", "port": 4433}, 5)
        async with deploy(lab, DRIVER, DRIVER.options(), logs=tmp_path, ready_timeout=10) as tunnel:
            await WorkloadRunner(lab, tunnel, traffic, tmp_path).serve()

    with pytest.raises(WorkloadFailed, match=r"ended with code 1: .*4433.*in use"):
        in_lab(twice)
