"""Deployments and trials of `connect` on real labs, for tests of what happens to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.host import queue_drops
from support.labs import PAIR, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.errors import MissingPart, TrialVoid
from tunnelmark.host import programs
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.model import Topology
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import traffic_path
from tunnelmark.run.deploy import RunningDeployment, deploy
from tunnelmark.run.observed import observed
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads.base import Endpoints

READY = 30.0  # seconds that a mesh may take to answer


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
    options = workload.options.model_validate(chosen)

    async def body(lab: Lab, tunnel: RunningDeployment) -> Mapping[str, str]:
        source, target = lab.topology.nodes[0], lab.topology.nodes[-1]
        addresses = tunnel.address[source], tunnel.address[target]
        ends = Endpoints(source, target, *addresses, socket_buffer_limit(), relay=lab.topology.relay)
        stage = WorkloadRunner(lab, tunnel, workload.traffic(ends, options), folder)
        await tunnel.wait_converged(READY)
        await asyncio.sleep(1.1)  # tinc's message numbers are seeded by the clock's second
        context = observed(lab, tunnel, source, target, folder)
        collection = Collection(context, (traffic_path.COLLECTOR,) if watched else ())
        await tunnel.unless_dead(stage.serve())
        await collection.begin()
        try:
            await tunnel.unless_dead(stage.drive())
        finally:
            await collection.end()
        await tunnel.unless_dead(stage.finish())
        for node in lab.nodes.values():  # pytest shows it where a test fails
            shown = await node.run(
                ["sh", "-c", "ip -s -s link; grep -hE '^(Ip|Udp):' /proc/net/snmp; cat /proc/net/softnet_stat"]
            )
            print(node.name, shown.stdout, sep="\n")
        return stage.outputs()

    outputs = with_vpn(arm, folder, body, topology)
    reading = workload.read(outputs, options)
    values = {sample.metric: sample.value for sample in reading.samples if sample.time is None}
    return values, [json.loads(line) for line in outputs["events"].splitlines()[1:]]
