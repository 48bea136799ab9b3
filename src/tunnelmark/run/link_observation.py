"""Carries out a link check: sends probes in both directions through a lab without a VPN, and trains to fill queues.

The result is raw: numbers and timestamps of packets. `analyse.link` compares it with the profile.
"""

from __future__ import annotations

import asyncio
import contextlib
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

from tunnelmark.errors import LabError
from tunnelmark.lab import probe_sender
from tunnelmark.lab.labs import Lab, Labs
from tunnelmark.lab.node import Process
from tunnelmark.model import emulator_health, probe_plan
from tunnelmark.model.clock_offsets import ClockCourse, rounded_up
from tunnelmark.model.observation import RECORDS, Flow, Observation
from tunnelmark.model.probe_plan import HEADERS, PORT, PROBES, TRAIN, Pace, Train
from tunnelmark.plan.model import Profile, Topology

_PATIENCE = 10.0  # seconds beyond the plan until a prober must have ended
_EMPTY = 2.0  # seconds beyond the plan until a link must be empty: far longer than a host takes a core away
_APART = 0.05  # seconds between two looks at whether it is empty: in less, a packet may be on its way to an emulator


async def observe(
    labs: Labs, topology: Topology, profile: Profile, pace: Pace | None, raw: Path, *, seed: int = 0
) -> Observation:
    """Send probes and trains over a link, and return what was sent and what arrived.

    The link is the one between the topology's first and last node. In a topology with routers or a chain of nodes, it
    is the first link that has the study's profile. `pace`: the probes to be sent; None to send trains only. The
    output of the probers and the emulator goes to the folder `raw`. `seed`: the seed of the link's random decisions.
    Raises LabError if the link cannot be made or a prober fails.
    """
    raw.mkdir(parents=True, exist_ok=True)
    begun, started = time.monotonic(), time.time()
    topology = topology.probed
    labs.watch()
    async with labs.lab(topology, profile, seed=seed, raw=raw) as lab:
        ends = topology.nodes[0], topology.nodes[-1]
        plans = probe_plan.plans_of(profile, ends, {node: str(lab.address(node)) for node in ends}, pace)
        (raw / "probe.plan.json").write_text(json.dumps(plans, indent=1))
        async with _probers(lab, plans, raw) as probers:
            await lab.zero()
            known, seen_at = await lab.clocks(), time.time_ns()
            # The start lies in the future for all hosts: a request takes less than the round trip, twice the clocks'
            # error.
            zero = time.time_ns() + 2 * max((each.error for each in known.values()), default=0)
            for each in probers:
                each.begin(zero + (known[each.node].realtime if each.node in known else 0))
            looks = await _looks(lab, plans, zero)
            await _until(zero + max(plan["until"] for plan in plans.values()))
            final = await _emptied(lab)
            for each in probers:
                each.stop()
            said = [await each.end(plans[each.node]) for each in probers]
            later, ended = await lab.clocks(), time.time_ns()
    reports = looks[0].reports if looks else final
    courses = {node: ClockCourse(known[node], later[node], seen_at, ended) for node in ends if node in later}
    forward, back = (_flow(plans, zero, said, raw, ends, way, looks, courses) for way in (0, 1))
    return Observation(
        profile.name,
        topology.name,
        forward,
        back,
        zero,
        tuple(reports),
        started,
        time.monotonic() - begun,
        tuple(final),
        seed,
        _begun(reports),
        rounded_up(sum(course.error for course in courses.values()) / 1e9),
    )


def _begun(reports: Sequence[Mapping[str, Any]]) -> int | None:
    """Return when the first emulator's time began, in nanoseconds of CLOCK_REALTIME; None if there is no emulator."""
    return int(reports[0]["zero_ns"]) + time.time_ns() - time.monotonic_ns() if reports else None


async def _until(moment: int) -> None:
    """Wait until a moment, given in nanoseconds of CLOCK_REALTIME."""
    await asyncio.sleep(max(moment - time.time_ns(), 0) / 1e9)


async def _looks(lab: Lab, plans: Mapping[str, dict[str, Any]], zero: int) -> list[_Look]:
    """Return the emulators' reports before the trains and after each train; [] if there are no trains.

    The reports before the trains are needed because a train sends more than the link can carry.
    """
    trains = [probe_plan.sent(plan) for plan in plans.values()]
    if not any(trains):
        return []
    await _until(zero + probe_plan.probed(plans))
    looks = [await _look(lab)]
    for sent in trains:
        await _until(zero + sent)
        looks.append(await _look(lab))
    return looks


async def _emptied(lab: Lab) -> Sequence[Mapping[str, Any]]:
    """Wait until the emulators hold no packet and take in none, or for `_EMPTY` seconds; return their reports.

    An emulator that lost its core holds packets longer than planned; an ended prober would count them as lost.
    """
    deadline = time.monotonic() + _EMPTY
    before, reports = None, await lab.link_reports()
    while reports and time.monotonic() < deadline:
        ways = [way for report in reports for way in report["directions"]]
        taken = [way["packets"] for way in ways]
        if taken == before and not any(way["inside"] for way in ways):
            break
        await asyncio.sleep(_APART)
        before, reports = taken, await lab.link_reports()
    return reports


@dataclass(frozen=True, slots=True)
class _Look:
    """The emulators' reports, and when they had arrived (`come`, in nanoseconds of CLOCK_REALTIME)."""

    come: int
    reports: Sequence[Mapping[str, Any]]

    @property
    def started(self) -> int:
        """An upper bound for the time at which the first link's emulator started, in nanoseconds of CLOCK_REALTIME.

        It is the time at which the emulator's report arrived here, less the emulator's age that the report states. The
        emulator started earlier than that by the time that the report took to arrive.
        """
        return self.come - 1000 * int(self.reports[0]["elapsed_us"])

    def packets(self, target: str) -> int:
        """Return how many packets to a node the first link's emulator has taken in."""
        return sum(int(way["packets"]) for way in emulator_health.directions_to(self.reports[:1], target))


async def _look(lab: Lab) -> _Look:
    reports = await lab.link_reports()
    return _Look(time.time_ns(), reports)


@dataclass(slots=True)
class _Prober:
    """The prober on one node; its port is bound, and it waits for the command that says when its plan starts."""

    node: str
    process: Process
    commands: int
    complaints: Path

    def begin(self, zero: int) -> None:
        os.write(self.commands, f"{zero}\n".encode())

    def stop(self) -> None:
        """Let the prober end, because no packet is on its way any more."""
        with contextlib.suppress(BrokenPipeError):  # it has failed, which `end` says
            os.write(self.commands, b"over\n")

    async def end(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Wait for the prober to end, and return its summary of each phase that it sent.

        `plan`: the prober's plan, whose `until` is its duration in nanoseconds. The prober may take 10 seconds longer.
        Raises LabError if it takes even longer or fails. The summary has `phases`: for each phase, the packets sent
        (`sent`), the seconds from the first to the last (`seconds`), and the most seconds one was late (`latest`).
        """
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
    """Start a prober on each node, and wait until all ports are bound: probes to an unbound port would be lost."""
    probers = []
    try:
        for node, plan in plans.items():
            theirs, ours = os.pipe2(os.O_CLOEXEC)
            complaints = raw / f"probe.{node}.err"
            with open(theirs, "rb", buffering=0) as stdin:
                argv = [sys.executable, "-I", "-S", probe_sender.__file__, json.dumps(plan)]
                process = await lab.nodes[node].spawn(
                    argv, stdout=raw / f"probe.{node}.out", stderr=complaints, stdin=stdin
                )
            probers.append(_Prober(node, process, ours, complaints))
        for node in plans:
            await lab.nodes[node].until({"kind": "udp-port", "port": PORT}, _PATIENCE)
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
    courses: Mapping[str, ClockCourse],
) -> Flow:
    source, target = ends[way], ends[1 - way]
    planned, done = plans[source]["phases"], said[way]["phases"]
    row = planned[PROBES]
    pace = Pace(done[PROBES]["sent"], row["interval"] / 1e9) if row["count"] else None
    train, rate, begun, behind = None, 0.0, 0, 0.0
    if len(planned) > TRAIN:
        plan = planned[TRAIN]
        train = Train(done[TRAIN]["sent"], plan["interval"] / 1e9, plan["size"], plan["batch"])
        rate = 8 * (train.size + HEADERS) * train.count / max(done[TRAIN]["seconds"], 1e-9)
        begun = zero + plan["start"]
        if looks[0].reports:
            behind = _behind(looks, way + 1, target, begun, train.count, done[TRAIN]["seconds"])
    records = np.frombuffer((raw / f"probe.{target}.out").read_bytes(), RECORDS)
    if courses:
        records = records.copy()
        for stamp, node in (("sent", source), ("received", target)):
            records[stamp] = courses[node].ours(records[stamp])
    return Flow(source, target, zero + row["start"], pace, train, begun, rate, done[PROBES]["latest"], behind, records)


def _behind(looks: Sequence[_Look], number: int, target: str, begun: int, count: int, seconds: float) -> float:
    """Return by how many seconds the emulator was behind the sender of a train, at the look with this number."""
    started = min(look.started for look in looks)
    now = started + 1000 * int(looks[number].reports[0]["elapsed_us"])
    taken = looks[number].packets(target) - looks[0].packets(target)
    return max(min((now - begun) / 1e9, seconds) - taken * seconds / max(count, 1), 0.0)
