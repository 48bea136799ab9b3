"""A workload carried out once on a fresh lab with a VPN, with something else done meanwhile or as a trial of a study."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.events import with_vpn
from support.labs import PAIR
from tunnelmark import registry
from tunnelmark.errors import TrialVoid
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.model.attempt import Attempt
from tunnelmark.plan.model import Plan, Topology, Trial
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.deploy import RunningDeployment
from tunnelmark.run.runner import RunContext
from tunnelmark.run.trial import prepare
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads.base import Endpoints, Reading

_TINC = 1.1  # seconds: tinc's message numbers are seeded by the clock's second, and a restart must not repeat one


async def _nothing(_: Lab) -> None:
    pass


def carried(
    name: str,
    arm: str,
    folder: Path,
    first: Callable[[Lab], Awaitable[Any]] = _nothing,
    topology: Topology = PAIR,
    **chosen: Any,
) -> tuple[Reading, dict[str, str]]:
    """What a workload over that VPN said, from the topology's first node to its last, and what its programs printed.

    `first` is done to the lab before. A trial that a busy machine made void is made again, twice.
    """
    workload = registry.workload(name)
    options = workload.options.model_validate(chosen)
    for attempt in range(3):
        (raw := folder / str(attempt)).mkdir()

        async def body(lab: Lab, tunnel: RunningDeployment, raw: Path = raw) -> dict[str, str]:
            await first(lab)
            source, target = lab.topology.nodes[0], lab.topology.nodes[-1]
            at = tunnel.address
            ends = Endpoints(
                source, target, at[source], at[target], socket_buffer_limit(), at, relay=lab.topology.relay
            )
            stage = WorkloadRunner(lab, tunnel, workload.traffic(ends, options), raw)
            await asyncio.sleep(_TINC)
            await tunnel.unless_dead(stage.serve())
            await tunnel.unless_dead(stage.drive())
            await tunnel.unless_dead(stage.finish())
            return stage.outputs()

        outputs = with_vpn(arm, raw, body, topology)
        try:
            return workload.read(outputs, options), outputs
        except TrialVoid as void:
            why = void.message
            _said(f"{name} over {arm}", why)
    pytest.fail(f"this machine is too busy: {why}")


def measured(plan: Plan, trial: Trial, folder: Path) -> tuple[Attempt, Path]:
    """A trial of a plan, measured as in a study, and its raw output; one that a busy machine made void is measured again, twice."""
    context = RunContext(registry.vpns(), registry.workloads(), socket_buffer_limit())

    async def run(raw: Path) -> Attempt:
        async with LabClient() as labs:
            return await (await prepare(labs, trial, context.parts(plan, trial), raw)).measure()

    for number in range(3):
        attempt = asyncio.run(run(raw := folder / f"raw{number}"))
        if attempt.outcome != "void":
            break
        _said(trial.id, str(attempt.failure))
    return attempt, raw


def unless_spoilt(attempt: Attempt) -> None:
    """Skip a test whose trial the laboratory has spoilt each time."""
    if attempt.outcome == "void":
        pytest.skip(f"the laboratory spoilt it three times: {attempt.failure}")


def _said(what: str, why: str) -> None:
    """Say in pytest's summary that the laboratory spoilt an attempt: who sees many of them looks at the laboratory."""
    warnings.warn(f"void: {what}: {why}", stacklevel=3)
