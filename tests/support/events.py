"""Deployments and trials of `connect` on real labs, for tests of what happens to them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import pytest

from support.asking import answered
from support.beginnings import came
from support.host import queue_drops
from support.labs import PAIR, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.errors import MissingPart, TrialVoid
from tunnelmark.host import programs
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.model import Topology
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.background import background
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import traffic_path
from tunnelmark.run.deploy import RunningDeployment, deploy
from tunnelmark.run.observed import observed
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads._stream import CLIENT, SERVER
from tunnelmark.workloads.base import EVENTS, Endpoints

READY = 30.0  # seconds that a mesh may take to answer
LONG = "60 s"
"""After an event whose trial ends once the path is back: whatever holds the event up on a busy machine, the stream still goes on."""

_PATIENCE = 600.0  # seconds: what waits for the path ends with the stream
_AFTER = 1.0  # seconds of probes after the path is back
_UNDER_WAY = 1.0  # seconds that those probes may be under way


def with_vpn(
    arm: str, folder: Path, body: Callable[[Lab, RunningDeployment], Awaitable[Any]], topology: Topology = PAIR
) -> Any:
    """Run `body` on a fresh lab with a VPN that answers everywhere; skipped where that VPN is not installed."""
    driver, options = registry.arm(arm)
    try:
        programs.require(driver.part(options))
    except MissingPart as missing:
        pytest.skip(f"{arm}: {missing.message}")

    async def run(lab: Lab) -> Any:
        async with deploy(lab, driver, options, logs=folder, ready_timeout=READY) as tunnel:
            return await body(lab, tunnel)

    return in_lab(run, topology, UNSHAPED)


def connected(
    arm: str, folder: Path, topology: Topology = PAIR, *, watched: bool = False, **chosen: Any
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The values of a trial of `connect`, and what was done during it; a trial that is void is made again, twice.

    It ends two seconds after all was done and the path was back, and fails if that was not so within `duration` (`LONG`) after the event.
    `watched`: with the way that its traffic takes. `queue_drops` among the values is what the machine's cores have dropped meanwhile.
    """
    for attempt in range(3):
        (raw := folder / str(attempt)).mkdir()
        try:
            before = queue_drops()
            values, events = trial(arm, raw, topology, watched, **chosen)
            return values | {"queue_drops": queue_drops() - before}, events
        except TrialVoid as void:
            why = void.message
    pytest.fail(f"this machine is too busy: {why}")


def trial(
    arm: str, folder: Path, topology: Topology, watched: bool, **chosen: Any
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    workload = registry.workload("connect")
    options = workload.options.model_validate({"duration": LONG} | chosen)

    async def body(lab: Lab, tunnel: RunningDeployment) -> Mapping[str, str]:
        source, target = lab.topology.nodes[0], lab.topology.nodes[-1]
        addresses = tunnel.address[source], tunnel.address[target]
        ends = Endpoints(source, target, *addresses, socket_buffer_limit(), relay=lab.topology.relay)
        traffic = workload.traffic(ends, options)
        stage = WorkloadRunner(lab, tunnel, traffic, folder)
        await tunnel.wait_converged(READY)
        await asyncio.sleep(1.1)  # tinc's message numbers are seeded by the clock's second
        context = observed(lab, tunnel, source, target, folder)
        collection = Collection(context, (traffic_path.COLLECTOR,) if watched else ())
        await tunnel.unless_dead(stage.serve())
        await collection.begin()
        awaited = 1 + len(traffic.events) + (len(lab.nodes) if options.node == "all" else 0)
        until = inf
        try:
            async with background(tunnel.unless_dead(stage.drive())) as (driving,):
                if traffic.events:
                    until = await _end_once_back(lab, tunnel, folder / EVENTS, awaited, driving)
                await driving
        finally:
            await collection.end()
        await tunnel.unless_dead(stage.finish())
        for node in lab.nodes.values():  # pytest shows it where a test fails
            shown = await node.run(
                ["sh", "-c", "ip -s -s link; grep -hE '^(Ip|Udp):' /proc/net/snmp; cat /proc/net/softnet_stat"]
            )
            print(node.name, shown.stdout, sep="\n")
        outputs = stage.outputs()
        return shortened(outputs, until) if until < inf else outputs

    outputs = with_vpn(arm, folder, body, topology)
    reading = workload.read(outputs, options)
    values = {sample.metric: sample.value for sample in reading.samples if sample.time is None}
    return values, [json.loads(line) for line in outputs["events"].splitlines()[1:]]


async def _end_once_back(
    lab: Lab, tunnel: RunningDeployment, file: Path, awaited: int, driving: asyncio.Task[Any]
) -> float:
    """End the stream once all is done and the path has been back for `_AFTER` seconds: its probes count until then.

    That is returned, in seconds of CLOCK_MONOTONIC; inf if the stream, which is `driving`, ended before. `awaited` are lines of the events' file.
    """
    source, target = lab.nodes[lab.topology.nodes[0]], lab.topology.nodes[-1]
    if not await came(lambda: file.exists() and file.read_text().count("\n") >= awaited, driving):
        return inf
    async with background(answered(source, tunnel.address[target], _PATIENCE)) as (back,):
        await asyncio.wait((back, driving), return_when=asyncio.FIRST_COMPLETED)
        if driving.done():
            return inf
        await back
    await asyncio.sleep(_AFTER)
    moment = time.monotonic()
    await asyncio.sleep(_UNDER_WAY)
    await source.run(["sh", "-c", "kill $(pidof tunnelmark-probe)"])  # only that of the node, its own PIDs
    return moment


def shortened(outputs: Mapping[str, str], until: float) -> dict[str, str]:
    """What both ends of a stream printed, as if they had sent nothing after a moment of CLOCK_MONOTONIC."""
    said = {end: json.loads(outputs[end]) for end in (SERVER, CLIENT)}
    for one in said.values():
        one["sent"] = min(one["sent"], 1 + int((until * 1e9 - one["start"]) // one["interval_ns"]))
    for end, other in ((SERVER, CLIENT), (CLIENT, SERVER)):
        said[end]["arrivals"] = [each for each in said[end]["arrivals"] if each[0] < said[other]["sent"]]
    return {**outputs, **{end: json.dumps(one) for end, one in said.items()}}
