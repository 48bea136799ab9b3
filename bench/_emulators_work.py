"""The work that every way is given, and what it costs: a TCP stream, a flood of small packets, pings."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _emulators_ways import Way, at, links, running, said, until

PORT = "5301"
PINGS = 400
FLOOD = Path(__file__).with_name("_emulators_flood.py")
TICK_S = 0.01  # USER_HZ is 100 on every architecture Linux runs on here
CONGESTION = "cubic"
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@dataclass(frozen=True)
class Stream:
    """One TCP stream from a to b."""

    gbit_s: float
    emulator_cores: float  # CPU seconds of the emulator's processes for each Gbit
    machine_cores: float  # CPU seconds of the whole machine for each Gbit, both ends among them
    frame_bytes: float  # mean of what b's interface took
    retransmitted: int


@dataclass(frozen=True)
class Flood:
    """Small packets, as many as one core sends."""

    offered_mpps: float
    delivered_mpps: float


@dataclass(frozen=True)
class Measured:
    """All of one way, put up once."""

    stream: Stream
    round_trip_us: float
    flood: Flood | None
    decided_bytes: float  # mean of what the emulator says it decided on, 0 of others
    unplanned: int  # packets that the emulator says were lost without being asked to, before the flood
    conditions: str

    def brief(self) -> str:
        flooded = f", {self.flood.delivered_mpps:.3f} Mpps" if self.flood else ""
        return f"{self.stream.gbit_s:.2f} Gbit/s, {self.round_trip_us:.0f} us{flooded}"


def machine_s() -> float:
    """CPU time of the whole machine so far: all but idle, waiting for disks, and stolen."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:8])
    return (user + nice + system + irq + softirq) * TICK_S


def _emulator_s(way: Way) -> float:
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in way.emulator)
    return sum(int(each[11]) + int(each[12]) for each in fields) * TICK_S


def _counters(pid: int, device: str) -> dict[str, Any]:
    return next(dict(link["stats64"]) for link in links(pid) if link["ifname"] == device)


def conditions(way: Way) -> str:
    """What a's interface hands over, by ethtool, and how the emulator is scheduled: as each is shipped, so worth saying."""
    features = said(at(way.a, ["ethtool", "-k", way.device_a])).splitlines()
    state = {key.strip(): value.split()[0] for key, _, value in (each.partition(":") for each in features) if value}
    names = {"TSO": "tx-tcp-segmentation", "GSO": "generic-segmentation-offload", "checksum": "tx-checksumming"}
    mtu = next(link["mtu"] for link in links(way.a) if link["ifname"] == way.device_a)
    policies = {os.SCHED_OTHER: "SCHED_OTHER", os.SCHED_FIFO: "SCHED_FIFO", os.SCHED_RR: "SCHED_RR"}
    threads = [int(task.name) for pid in way.emulator for task in Path(f"/proc/{pid}/task").iterdir()]
    used = sorted({policies.get(os.sched_getscheduler(thread), "another") for thread in threads})
    offloads = ", ".join(f"{name} {state[key]}" for name, key in names.items())
    return f"MTU {mtu}, {offloads}; {len(threads)} threads{''.join(f', {each}' for each in used)}"


def stream(way: Way, seconds: float) -> Stream:
    with running(at(way.b, ["iperf3", "-s", "-1", "-p", PORT]), **QUIET) as server:
        until("iperf3 listens", lambda: said(at(way.b, ["ss", "-Hltn", f"sport = :{PORT}"])), server)
        client = at(way.a, ["iperf3", "-J", "-c", way.address_b, "-p", PORT, "-t", f"{seconds:g}", "-C", CONGESTION])
        before, emulator, machine = _counters(way.b, way.device_b), _emulator_s(way), machine_s()
        done = subprocess.run(client, check=False, capture_output=True, text=True)
        emulator, machine = _emulator_s(way) - emulator, machine_s() - machine
        after = _counters(way.b, way.device_b)
    said_by = json.loads(done.stdout)
    if "error" in said_by:
        raise RuntimeError(f"iperf3: {said_by['error']}")
    end = said_by["end"]
    assert end["sender_tcp_congestion"] == CONGESTION
    received = end["sum_received"]
    gbit = 8e-9 * received["bytes"]
    bytes_, packets = (after["rx"][key] - before["rx"][key] for key in ("bytes", "packets"))
    return Stream(
        received["bits_per_second"] * 1e-9,
        emulator / gbit,
        machine / gbit,
        bytes_ / packets,
        end["sum_sent"]["retransmits"],
    )


def flood(way: Way, seconds: float) -> Flood:
    mac = next((link.get("address", "-") for link in links(way.b) if link["ifname"] == way.device_b), "-")
    argv = at(way.a, [sys.executable, str(FLOOD), way.device_a, way.address_a, way.address_b, mac])
    with running(argv) as process:
        time.sleep(0.5)  # the sender is under way, queues are as full as they get
        sent, began = _counters(way.a, way.device_a)["tx"], time.monotonic()
        got, seen = _counters(way.b, way.device_b)["rx"], time.monotonic()
        time.sleep(seconds)
        more_sent, ended = _counters(way.a, way.device_a)["tx"], time.monotonic()
        more_got, last = _counters(way.b, way.device_b)["rx"], time.monotonic()
        assert process.poll() is None, "the flood ended by itself"
    offered = sum(more_sent[key] - sent[key] for key in ("packets", "dropped"))
    return Flood(1e-6 * offered / (ended - began), 1e-6 * (more_got["packets"] - got["packets"]) / (last - seen))


def round_trip_us(way: Way) -> float:
    """Median of the pings after the first few, which find addresses."""
    ping = ["ping", "-n", "-i", "0.002", "-W", "1", "-c"]
    subprocess.run(at(way.a, [*ping, "5", way.address_b]), check=False, capture_output=True)
    lines = said(at(way.a, [*ping, str(PINGS), way.address_b])).splitlines()
    times = [float(line.partition("time=")[2].split()[0]) for line in lines if "time=" in line]
    assert len(times) == PINGS, f"{PINGS - len(times)} of {PINGS} pings lost"
    return 1e3 * statistics.median(times)


def measure(way: Way, seconds: float, *, flooded: bool) -> Measured:
    trip = round_trip_us(way)
    one = stream(way, seconds)
    report = way.report()
    decided, unplanned = _decisions(report) if report else (0.0, 0)
    return Measured(one, trip, flood(way, seconds / 2) if flooded else None, decided, unplanned, conditions(way))


def _decisions(report: dict[str, Any]) -> tuple[float, int]:
    most = max(report["directions"], key=lambda direction: direction["bytes"])
    lost = sum(direction["dropped"][why] for direction in report["directions"] for why in ("memory", "oversize"))
    lost += sum(port[why] for port in report["ports"] for why in ("tx_dropped", "socket_dropped", "refused"))
    return most["bytes"] / most["packets"], lost
