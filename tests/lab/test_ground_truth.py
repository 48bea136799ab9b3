"""Workloads on links whose rate, loss and delay are known: what they measure is what the link was made to do.

A link counts a datagram with its headers: 8 bytes of UDP, 20 of IPv4 and 14 of Ethernet. So a link of R bit/s carries at
most R / (8 (payload + 42)) datagrams a second.
"""

from __future__ import annotations

import asyncio
from math import sqrt
from pathlib import Path

import pytest

from support.labs import PAIR, shaped
from support.machine_stall import unless_starved, while_still
from tunnelmark import registry
from tunnelmark.errors import MissingPart
from tunnelmark.host import programs
from tunnelmark.lab.client import LabClient
from tunnelmark.plan.impairments import Chance, Direction
from tunnelmark.plan.model import Profile
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.deploy import deploy
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.units import Duration, Rate, Share, Size
from tunnelmark.workloads.base import Endpoints, Reading

pytestmark = [
    pytest.mark.root,
    pytest.mark.proof("the workloads udp-search and latency measure what the link was made to do"),
]

HEADERS = 8 + 20 + 14
READY = 10.0


@pytest.fixture(autouse=True)
def built() -> None:
    for name in ("udp-search", "latency"):
        try:
            programs.require(registry.workload(name).part)
        except MissingPart as missing:
            pytest.skip(missing.hint)


def measured(name: str, profile: Profile, raw: Path, **options: object) -> tuple[Reading, dict[str, float]]:
    """What a workload reads over the bare link with that profile; its values for the whole window by metric."""
    workload = registry.workload(name)
    chosen = workload.options.model_validate(options)
    driver, none = registry.arm("direct")

    async def run(folder: Path) -> Reading:
        async with (
            LabClient() as labs,
            labs.lab(PAIR, profile) as lab,
            deploy(lab, driver, none, logs=folder, ready_timeout=READY) as tunnel,
        ):
            at = tunnel.address
            ends = Endpoints("a", "b", at["a"], at["b"], socket_buffer_limit(), at, tunnel.interface)
            stage = WorkloadRunner(lab, tunnel, workload.traffic(ends, chosen), folder)
            await stage.serve()
            await stage.drive()
            await stage.finish()
            return unless_starved(workload.read(stage.outputs(), chosen))

    reading = while_still(lambda folder: asyncio.run(run(folder)), raw)
    return reading, {sample.metric: sample.value for sample in reading.samples if sample.time is None}


def emulated(forward: Direction, back: Direction | None = None) -> Profile:
    return Profile("made", "T", "S", forward, forward if back is None else back)


class TestRate:
    @pytest.mark.parametrize("payload", [512, 1472])
    @pytest.mark.parametrize("bound", ["0 %", "0.1 %"])
    def test_of_a_shaped_link_comes_back(self, payload: int, bound: str, tmp_path: Path):
        # The queue alone would carry a trial of 0.3 s at 14 % more than the rate.
        profile = shaped("50 Mbit/s", "256 KiB")
        _, values = measured("udp-search", profile, tmp_path, sizes=[payload], loss=[bound])
        packets = 50e6 / 8 / (payload + HEADERS)
        label = bound.removesuffix(" %").replace(".", "_")
        assert values[f"packets_{payload}_loss_{label}"] == pytest.approx(packets, rel=0.02)
        assert values[f"bits_{payload}_loss_{label}"] == pytest.approx(packets * payload * 8, rel=0.02)
        assert values[f"limited_{payload}_loss_{label}"] == 0
        assert values[f"offered_max_{payload}"] > packets

    def test_of_an_emulated_link_with_a_long_delay_comes_back(self, tmp_path: Path):
        way = Direction(delay=Duration(0.05), rate=Rate(20_000_000), queue=Size(65536))
        _, values = measured("udp-search", emulated(way), tmp_path, sizes=["full"], loss=["0.1 %"])
        assert values["bits_full_loss_0_1"] == pytest.approx(20e6 * 1472 / (1472 + HEADERS), rel=0.02)


class TestLoss:
    SHARE = 0.01

    def lossy(self) -> Profile:
        way = Direction(rate=Rate(50_000_000), queue=Size(262144))
        return emulated(Direction(rate=way.rate, queue=way.queue, loss=Chance(Share(self.SHARE))), way)

    def test_leaves_no_rate_without_loss_but_one_within_a_wider_bound(self, tmp_path: Path):
        _, values = measured("udp-search", self.lossy(), tmp_path, sizes=[512], loss=["0 %", "2 %"])
        packets = 50e6 / 8 / (512 + HEADERS)
        # A trial of n datagrams has none lost with probability 0.99^n: at 1,000, one in 23,000.
        assert values["packets_512_loss_0"] < 1000
        # The emulator loses before its rate counts, so that one datagram of a hundred takes no room there.
        assert packets * 0.98 < values["packets_512_loss_2"] < packets / (1 - self.SHARE) * 1.02

    def test_of_probes_is_the_links_own_and_one_way_only(self, tmp_path: Path):
        _, values = measured(
            "latency", self.lossy(), tmp_path, sizes=[100], load=["0 %", "50 %"], interval="1 ms", duration="3 s"
        )
        within = 3.3 * sqrt(self.SHARE * (1 - self.SHARE) / 3000)  # of a binomial, all but one run in a thousand
        for load in ("idle_100", "load_50"):
            assert values[f"forward_loss_{load}"] == pytest.approx(100 * self.SHARE, abs=100 * within)
            assert values[f"back_loss_{load}"] == 0
        assert values["lost_load_50"] == pytest.approx(100 * self.SHARE, abs=0.5)

    def test_of_a_third_each_way_does_not_hang_the_two_ends(self, tmp_path: Path):
        profile = emulated(Direction(loss=Chance(Share(0.3))))
        _, values = measured("latency", profile, tmp_path, sizes=[100], load=["0 %"], duration="1 s")
        within = 3.3 * sqrt(0.3 * 0.7 / 1000)
        for way in ("forward", "back"):
            assert values[f"{way}_loss_idle_100"] == pytest.approx(30, abs=100 * within)


class TestDelay:
    def test_of_each_way_comes_back_by_itself(self, tmp_path: Path):
        profile = emulated(Direction(delay=Duration(0.02)), Direction(delay=Duration(0.005)))
        reading, values = measured("latency", profile, tmp_path, sizes=[100, 1000], load=["0 %"], duration="2 s")
        for size in (100, 1000):
            assert values[f"forward_p50_idle_{size}"] == pytest.approx(20, abs=0.5)
            assert values[f"back_p50_idle_{size}"] == pytest.approx(5, abs=0.5)
            assert values[f"forward_loss_idle_{size}"] == values[f"back_loss_idle_{size}"] == 0
        assert reading.window == 2

    def test_beside_half_the_rate_is_that_of_the_idle_link_and_a_datagram_before(self, tmp_path: Path):
        way = Direction(delay=Duration(0.02), rate=Rate(20_000_000), queue=Size(250_000))
        _, values = measured("latency", emulated(way), tmp_path, sizes=[100], load=["0 %", "50 %"], duration="2 s")
        assert values["capacity"] == pytest.approx(20e6 * 1472 / (1472 + HEADERS), rel=0.04)
        assert values["offered_load_50"] == pytest.approx(values["capacity"] / 2, rel=0.01)
        assert values["forward_p50_idle_100"] == pytest.approx(20, abs=0.5)
        # A probe waits for a datagram in front of it half of the time: 0.6 ms at 20 Mbit/s.
        assert 20 < values["forward_p50_load_50"] < 21.5
        assert values["back_p50_load_50"] == pytest.approx(20, abs=0.7)
