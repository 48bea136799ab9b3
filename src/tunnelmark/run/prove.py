"""Observes what a link does: sends probes both ways through a fresh bare lab, and a train that fills its queue.

What comes back is raw: numbers and stamps of packets. What it means for the profile is for `analyse.link` to say.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
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
_SLOWEST = 3.0e8  # bit/s that a train waits for: a sender shares its core with the emulator and with other work
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
    `train_rate` is the bit/s of frames that the sender reached; `pace` and `train` count what was really sent.
    `behind` is by how many seconds the emulator was behind the sender of the train, packets that waited for it.
    """

    source: str
    target: str
    start: int
    pace: Pace | None
    train: Train | None
    train_start: int
    train_rate: float
    late: float
    behind: float
    records: npt.NDArray[Any]

    def phase(self, number: int) -> npt.NDArray[Any]:
        """The packets received of one phase, in order of arrival."""
        chosen: npt.NDArray[Any] = self.records[self.records["phase"] == number]
        return chosen


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at a link: both ways, what its emulator says, when (seconds since the Unix epoch), how long it took.

    `zero` is when the time of schedules and blackouts began, on the clock of the flows' stamps. `reports` were made
    before the trains, `final` after them.
    """

    profile: str
    topology: str
    forward: Flow
    back: Flow
    zero: int
    reports: tuple[Mapping[str, Any], ...]
    started: float
    seconds: float
    final: tuple[Mapping[str, Any], ...] = ()


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


def patience(train: Train, way: Direction) -> float:
    """Seconds after which a train ends, sent or not: the next one must not meet it.

    A sender slower than the rate measures nothing, so there is no use in waiting for one.
    """
    bits = train.count * 8 * (train.size + HEADERS)
    slowest = min(max(float(way.rate or 0.0), _SLOWEST), bits / (train.count * train.interval))
    return bits / slowest + _QUIET / 2


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
            looks = [await _look(lab)]
            for node in ends:
                await asyncio.sleep(max(zero + _sent(plans[node]) - time.time_ns(), 0) / 1e9)
                looks.append(await _look(lab))
            said = [await each.end(plans[each.node]) for each in probers]
            final = await lab.link_reports()
    forward, back = (_flow(plans, zero, said, raw, ends, way, looks) for way in (0, 1))
    return Observation(
        profile.name,
        topology.name,
        forward,
        back,
        zero,
        tuple(looks[0].reports),
        started,
        time.monotonic() - begun,
        tuple(final),
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
        phase = {"to": to, "start": now, "count": count, "interval": interval, "size": SIZE, "batch": 1}
        phases[node].append({**phase, "end": now + int(1e9 * (count * interval / 1e9 + _QUIET / 2))})
    if pace is not None:
        now += int(1e9 * (pace.count * pace.interval + longest + _QUIET))
    for node, other in (ends, ends[::-1]):
        if (train := train_of(ways[node])) is not None:
            interval = max(round(train.interval * 1e9), 1)
            plain = {"count": train.count, "interval": interval, "size": train.size, "batch": train.batch}
            end = now + int(1e9 * patience(train, ways[node]))
            phases[node].append({"to": [str(lab.address(other)), _PORT], "start": now, "end": end, **plain})
            now = end + int(1e9 * (_longest(ways[node]) + _QUIET))
    return {node: {"bind": [str(lab.address(node)), _PORT], "until": now, "phases": phases[node]} for node in ends}


def _probed(plans: Mapping[str, dict[str, Any]]) -> int:
    """Nanoseconds until the last probe has been sent and the first train has not."""
    phases = [plan["phases"] for plan in plans.values()]
    starts: list[int] = [phase[TRAIN]["start"] for phase in phases if len(phase) > TRAIN]
    return min(starts, default=min(int(plan["until"]) for plan in plans.values())) - int(1e9 * _QUIET / 2)


def _sent(plan: Mapping[str, Any]) -> int:
    """Nanoseconds until a node's train should have been sent; 0 without a train."""
    trains = [phase["start"] + phase["count"] * phase["interval"] for phase in plan["phases"][TRAIN:]]
    return int(trains[0]) if trains else 0


@dataclass(frozen=True, slots=True)
class _Look:
    """What the emulators said, and when that had come (nanoseconds of the clock)."""

    come: int
    reports: Sequence[Mapping[str, Any]]

    @property
    def started(self) -> int:
        """When the first link's emulator was started at the latest: what it says may have come late."""
        return self.come - 1000 * int(self.reports[0]["elapsed_us"])

    def packets(self, target: str) -> int:
        """What the first link's emulator has taken that goes to a node."""
        ways = self.reports[0]["directions"]
        return sum(int(way["packets"]) for way in ways if way["name"].endswith(f" to {target}"))


async def _look(lab: Lab) -> _Look:
    reports = await lab.link_reports()
    return _Look(time.time_ns(), reports)


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
    looks: Sequence[_Look],
) -> Flow:
    source, target = ends[way], ends[1 - way]
    planned, done = plans[source]["phases"], said[way]["phases"]
    probes = planned[PROBES]
    pace = Pace(done[PROBES]["sent"], probes["interval"] / 1e9) if probes["count"] else None
    train, rate, begun, behind = None, 0.0, 0, 0.0
    if len(planned) > TRAIN:
        plan = planned[TRAIN]
        train = Train(done[TRAIN]["sent"], plan["interval"] / 1e9, plan["size"], plan["batch"])
        rate = 8 * (train.size + HEADERS) * train.count / max(done[TRAIN]["seconds"], 1e-9)
        begun = zero + plan["start"]
        if looks[0].reports:
            behind = _behind(looks, way + 1, target, begun, train.count, done[TRAIN]["seconds"])
    records = np.frombuffer((raw / f"probe.{target}.out").read_bytes(), RECORDS)
    return Flow(
        source, target, zero + probes["start"], pace, train, begun, rate, done[PROBES]["latest"], behind, records
    )


def _behind(looks: Sequence[_Look], number: int, target: str, begun: int, count: int, seconds: float) -> float:
    """By how many seconds the emulator was behind the sender of a train at that look."""
    started = min(look.started for look in looks)
    now = started + 1000 * int(looks[number].reports[0]["elapsed_us"])
    taken = looks[number].packets(target) - looks[0].packets(target)
    return max(min((now - begun) / 1e9, seconds) - taken * seconds / max(count, 1), 0.0)
