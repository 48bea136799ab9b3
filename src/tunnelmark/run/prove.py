"""Observes what a link does: sends probes both ways through a fresh bare lab, and a train that fills its queue.

What comes back is raw: numbers and stamps of packets. What it means for the profile is for `analyse.link` to say.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tunnelmark.errors import LabError
from tunnelmark.lab import prober
from tunnelmark.lab.lab import Keeper, Lab
from tunnelmark.lab.node import Process
from tunnelmark.plan.impairments import Direction
from tunnelmark.plan.model import Profile, Topology

HEADERS = 42
"""Bytes of Ethernet, IPv4 and UDP headers around a probe's content."""

SIZE = 64
"""Bytes of a probe's content: room for its header, light on slow links."""

RECORDS = np.dtype([("number", "<u4"), ("phase", "<u2"), ("flags", "<u2"), ("sent", "<i8"), ("received", "<i8")])
"""What the prober writes for each packet received (`prober.RECORD`); times in nanoseconds of one clock."""

PROBES, TRAIN = 0, 1
"""The phases of a direction."""

_LIGHT = 0.05  # share of a rate that probes may take, so that they do not queue behind each other
_PORT = 4242
_START = 0.02  # seconds until the first packet, for both probers to hear of it
_QUIET = 0.02  # seconds between phases, besides what is on its way
_TRAIN = 0.15  # seconds of the rate that a train measures, once the queue is full
_TRAIN_LEAST = 150  # packets of it
_WANDER = 0.5  # seconds at most that a train is longer for a jitter, which moves its first and last packet
_OVERLOAD = 8.0  # how much faster than the rate a train is sent, as far as a sender can
_FASTEST = 2.0e9  # bit/s that a sender can reach here
_BATCH = 8  # packets a system call on fast links
_PATIENCE = 10.0  # seconds beyond the plan until a prober must have ended


@dataclass(frozen=True, slots=True)
class Pace:
    """How many probes go each way, and the seconds from one to the next."""

    count: int
    interval: float


@dataclass(frozen=True, slots=True)
class Train:
    """Packets sent faster than the rate: how many, seconds apart, bytes of content each, packets a system call."""

    count: int
    interval: float
    size: int
    batch: int


@dataclass(frozen=True, slots=True)
class Flow:
    """What was sent one way and what arrived: the nodes, the probes, the train, and each packet received.

    `start` and `train_start` are when the first packet was due (nanoseconds of the clock, as in `records`);
    `train_rate` is the bit/s of frames that the sender reached.
    """

    source: str
    target: str
    start: int
    pace: Pace | None
    train: Train | None
    train_start: int
    train_rate: float
    late: float
    records: npt.NDArray[Any]

    def phase(self, number: int) -> npt.NDArray[Any]:
        """The packets received of one phase, in order of arrival."""
        chosen: npt.NDArray[Any] = self.records[self.records["phase"] == number]
        return chosen


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at a link: both ways, what its emulator says, when (seconds since the Unix epoch), how long it took.

    `zero` is when the time of schedules and blackouts began, on the clock of the flows' stamps.
    """

    profile: str
    topology: str
    forward: Flow
    back: Flow
    zero: int
    reports: tuple[Mapping[str, Any], ...]
    started: float
    seconds: float


def pace_of(profile: Profile, count: int, interval: float) -> Pace:
    """So many probes, not closer together than the slowest rate bears."""
    rates = [way.rate for way in (profile.forward, profile.back) if way.rate]
    least = max((8 * (SIZE + HEADERS) / (_LIGHT * rate) for rate in rates), default=0.0)
    return Pace(count, max(interval, least))


def train_of(way: Direction) -> Train | None:
    """The train for one direction: long enough to fill the queue and then to measure the rate; None without a rate."""
    if way.rate is None:
        return None
    frame = prober.MOST + HEADERS
    speed = max(min(_OVERLOAD * way.rate, _FASTEST), 1.2 * way.rate)
    fill = 8 * (way.queue or 0) / (speed - way.rate)
    wander = min(60 * way.jitter.size, _WANDER) if way.jitter else 0.0
    steady = max(_TRAIN, _TRAIN_LEAST * 8 * frame / way.rate, wander)
    interval = 8 * frame / speed
    batch = _BATCH if way.rate > 2e8 else 1
    return Train(max(round((fill + steady) / interval), 2 * batch), interval, prober.MOST, batch)


async def observe(
    keeper: Keeper, topology: Topology, profile: Profile, pace: Pace | None, raw: Path, *, seed: int = 0
) -> Observation:
    """Look at the link between a topology's first and last node; `pace` None sends trains only.

    What the probers and the emulator print goes to the folder `raw`. LabError if the link cannot be made or the
    probers fail.
    """
    raw.mkdir(parents=True, exist_ok=True)
    begun, started = time.monotonic(), time.time()
    async with keeper.lab(topology, profile, seed=seed, raw=raw) as lab:
        ends = topology.nodes[0], topology.nodes[-1]
        plans = _plans(lab, profile, ends, pace)
        (raw / "probe.plan.json").write_text(json.dumps(plans, indent=1))
        async with _probers(lab, plans, raw) as probers:
            await lab.zero()
            zero = time.time_ns()
            for each in probers:
                each.begin(zero)
            # Before the trains, which ask more than the link can carry: what suffers then is told by each trial.
            await asyncio.sleep(_probed(plans) / 1e9)
            reports = await lab.link_reports()
            said = [await each.end(plans[each.node]) for each in probers]
    forward, back = (_flow(plans, zero, said, raw, ends, way) for way in (0, 1))
    return Observation(
        profile.name,
        topology.name,
        forward,
        back,
        zero,
        tuple(reports),
        started,
        time.monotonic() - begun,
    )


def _longest(way: Direction) -> float:
    """Seconds that a packet may be on its way, a full queue included."""
    jitter = 6 * way.jitter.size if way.jitter else 0.0
    waiting = 8 * (way.queue or 0) / way.rate if way.rate else 0.0
    return (way.delay or 0.0) + jitter + waiting


def _plans(lab: Lab, profile: Profile, ends: tuple[str, str], pace: Pace | None) -> dict[str, dict[str, Any]]:
    """What each prober is to do; probes go both ways at once, trains one after the other."""
    ways = {ends[0]: profile.forward, ends[1]: profile.back}
    longest = max(_longest(way) for way in ways.values())
    phases: dict[str, list[dict[str, Any]]] = {node: [] for node in ends}
    now = int(_START * 1e9)
    for node, other in (ends, ends[::-1]):
        to = [str(lab.address(other)), _PORT]
        count, interval = (pace.count, round(pace.interval * 1e9)) if pace else (0, 1)
        phases[node].append({"to": to, "start": now, "count": count, "interval": interval, "size": SIZE, "batch": 1})
    if pace is not None:
        now += int(1e9 * (pace.count * pace.interval + longest + _QUIET))
    for node, other in (ends, ends[::-1]):
        if (train := train_of(ways[node])) is not None:
            interval = max(round(train.interval * 1e9), 1)
            plain = {"count": train.count, "interval": interval, "size": train.size, "batch": train.batch}
            phases[node].append({"to": [str(lab.address(other)), _PORT], "start": now, **plain})
            # A sender that cannot keep up takes as long as the rate itself would.
            took = max(train.count * train.interval, train.count * 8 * (train.size + HEADERS) / _FASTEST)
            now += int(1e9 * (took + _longest(ways[node]) + _QUIET))
    return {node: {"bind": [str(lab.address(node)), _PORT], "until": now, "phases": phases[node]} for node in ends}


def _probed(plans: Mapping[str, dict[str, Any]]) -> int:
    """Nanoseconds until the last probe has been sent and the first train has not."""
    phases = [plan["phases"] for plan in plans.values()]
    starts: list[int] = [phase[TRAIN]["start"] for phase in phases if len(phase) > TRAIN]
    return min(starts, default=min(int(plan["until"]) for plan in plans.values())) - int(1e9 * _QUIET / 2)


@dataclass(slots=True)
class _Prober:
    """The prober on one node: bound, and waiting to be told when time begins."""

    node: str
    process: Process
    commands: int
    complaints: Path

    def begin(self, zero: int) -> None:
        os.write(self.commands, f"{zero}\n".encode())

    async def end(self, plan: dict[str, Any]) -> dict[str, Any]:
        """What it says at its end; LabError if it failed or does not end."""
        try:
            ended = await asyncio.wait_for(self.process.wait(), plan["until"] / 1e9 + _PATIENCE)
        except TimeoutError:
            raise LabError(f"the prober on {self.node} did not end in time", hint="the machine is overloaded") from None
        text = self.complaints.read_text(errors="replace")
        if ended.code != 0:
            said = text.strip()[-300:]
            raise LabError(f"the prober on {self.node} failed: {said}", hint="its plan is in probe.plan.json")
        found: dict[str, Any] = json.loads(text)
        return found


@asynccontextmanager
async def _probers(lab: Lab, plans: Mapping[str, dict[str, Any]], raw: Path) -> AsyncIterator[list[_Prober]]:
    """A prober on each node, bound to its port: a probe to a port that is not there would be lost by us."""
    probers = []
    try:
        for node, plan in plans.items():
            theirs, ours = os.pipe2(os.O_CLOEXEC)
            complaints = raw / f"probe.{node}.err"
            with open(theirs, "rb", buffering=0) as stdin:
                argv = [sys.executable, "-I", "-S", prober.__file__, json.dumps(plan)]
                process = await lab.nodes[node].spawn(
                    argv, stdout=raw / f"probe.{node}.out", stderr=complaints, stdin=stdin
                )
            probers.append(_Prober(node, process, ours, complaints))
        for node in plans:
            await lab.nodes[node].until({"kind": "udp-port", "port": _PORT}, _PATIENCE)
        yield probers
    finally:
        for each in probers:
            os.close(each.commands)


def _flow(
    plans: Mapping[str, dict[str, Any]],
    zero: int,
    said: list[dict[str, Any]],
    raw: Path,
    ends: tuple[str, str],
    way: int,
) -> Flow:
    source, target = ends[way], ends[1 - way]
    planned, done = plans[source]["phases"], said[way]["phases"]
    probes = planned[PROBES]
    pace = Pace(probes["count"], probes["interval"] / 1e9) if probes["count"] else None
    train, rate, begun = None, 0.0, 0
    if len(planned) > TRAIN:
        plan = planned[TRAIN]
        train = Train(plan["count"], plan["interval"] / 1e9, plan["size"], plan["batch"])
        rate = 8 * (train.size + HEADERS) * train.count / max(done[TRAIN]["seconds"], 1e-9)
        begun = zero + plan["start"]
    records = np.frombuffer((raw / f"probe.{target}.out").read_bytes(), RECORDS)
    return Flow(source, target, zero + probes["start"], pace, train, begun, rate, done[PROBES]["latest"], records)
