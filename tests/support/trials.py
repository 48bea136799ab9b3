"""A workload carried out once on a fresh lab with a VPN, for tests in which something else is done meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.labs import PAIR, UNSHAPED, in_lab
from tunnelmark import registry
from tunnelmark.errors import MissingPart, TrialVoid
from tunnelmark.host import programs
from tunnelmark.lab.client import Lab
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.deploy import deploy
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads.base import Endpoints, Reading

_READY = 30.0  # seconds that a mesh may take to answer
_TINC = 1.1  # seconds: tinc's message numbers are seeded by the clock's second, and a restart must not repeat one


async def _nothing(_: Lab) -> None:
    pass


def carried(
    name: str, arm: str, folder: Path, first: Callable[[Lab], Awaitable[Any]] = _nothing, **chosen: Any
) -> tuple[Reading, dict[str, str]]:
    """What a workload over that VPN said, between two nodes, and what its programs printed.

    `first` is done to the lab before. A trial that a busy machine made void is made again, twice.
    """
    for attempt in range(3):
        (raw := folder / str(attempt)).mkdir()
        try:
            return _once(name, arm, raw, first, chosen)
        except TrialVoid as void:
            why = void.message
    pytest.fail(f"this machine is too busy: {why}")


def _once(
    name: str, arm: str, raw: Path, first: Callable[[Lab], Awaitable[Any]], chosen: dict[str, Any]
) -> tuple[Reading, dict[str, str]]:
    driver, vpn_options = registry.arm(arm)
    try:
        programs.require(driver.part(vpn_options))
    except MissingPart as missing:
        pytest.skip(f"{arm}: {missing.message}")
    workload = registry.workload(name)
    options = workload.options.model_validate(chosen)

    async def body(lab: Lab) -> dict[str, str]:
        async with deploy(lab, driver, vpn_options, logs=raw, ready_timeout=_READY) as tunnel:
            await first(lab)
            source, target = lab.topology.nodes[0], lab.topology.nodes[-1]
            ends = Endpoints(source, target, tunnel.address[source], tunnel.address[target], socket_buffer_limit())
            stage = WorkloadRunner(lab, tunnel, workload.traffic(ends, options), raw)
            await asyncio.sleep(_TINC)
            await tunnel.unless_dead(stage.serve())
            await tunnel.unless_dead(stage.drive())
            await tunnel.unless_dead(stage.finish())
            return stage.outputs()

    outputs = in_lab(body, PAIR, UNSHAPED)
    return workload.read(outputs, options), outputs
