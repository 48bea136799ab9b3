"""One trial from a fresh lab to its samples: lab, deployment, readiness, traffic, reading, end.

Whatever goes wrong becomes data: the attempt says which error, with its hint and the end of the
daemons' logs. Nothing is tried twice.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tunnelmark.errors import LabError, TrialError, TrialVoid, TunnelmarkError, WorkloadFailed
from tunnelmark.lab.congestion import CUBIC
from tunnelmark.lab.lab import Keeper, Lab
from tunnelmark.lab.node import Process
from tunnelmark.plan.model import Trial
from tunnelmark.run import machine
from tunnelmark.run.deploy import Tunnel, log_end, plain, prepare
from tunnelmark.run.outcome import PHASES, Attempt, Failure
from tunnelmark.vpns.base import Driver, Options
from tunnelmark.workloads.base import Endpoints, Program, Reading, Workload

_SERVER_TIMEOUT = 10.0  # seconds a workload's server may take to listen, or to end after its client
_SOCKETS = "the program sets it itself, or the lab's way to set it failed: see `congestion_control` in environment.json"
_ALGORITHM = re.compile(r"^\s+(?:ts |sack |ecn |ecnseen |fastopen )*(\w+) ", re.MULTILINE)


@dataclass(slots=True)
class Clock:
    """Wall seconds of a trial by phase; each `lap` books the time since the one before."""

    phases: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    last: float = field(default_factory=time.monotonic)

    def lap(self, phase: str) -> float:
        """Book the time since the last lap on a phase; the seconds booked."""
        now = time.monotonic()
        spent, self.last = now - self.last, now
        self.phases[phase] += spent
        return spent


@dataclass(frozen=True, slots=True)
class Parts:
    """What a trial is made with: the driver and workload it names, their options, and the machine's limits."""

    driver: Driver
    options: Options
    workload: Workload
    use_options: Options
    ready_timeout: float
    socket_buffer: int


async def attempt(keeper: Keeper, trial: Trial, parts: Parts, raw: Path) -> Attempt:
    """Carry out one trial; its raw output goes to the folder `raw`, which should be new."""
    raw.mkdir(parents=True)
    source, target = trial.topology.nodes[0], trial.topology.nodes[-1]
    started, clock = time.time(), Clock()
    found: dict[str, Any] = {"samples": (), "host": {}, "first_packet": {}}
    failure = None
    outcome: Literal["ok", "failed", "void"] = "ok"
    try:
        async with keeper.lab(trial.topology, trial.profile) as lab:
            clock.lap("lab")
            tunnel = prepare(lab, parts.driver, parts.options, raw)
            await tunnel.start()
            clock.lap("deploy")
            await tunnel.answer(parts.ready_timeout)
            found["first_packet"] = dict(tunnel.first_packet)
            clock.lap("ready")
            reading = await _measure(lab, tunnel, parts, (source, target), raw, clock, found)
            found["samples"] = reading.samples
        clock.lap("lab")
    except (TrialError, LabError) as error:
        await keeper.check()  # without a keeper nothing can go on, and this trial is not to blame
        clock.lap("collect")
        outcome = "void" if isinstance(error, TrialVoid) else "failed"
        failure = Failure(error.kind, error.message, error.hint, log_end(raw))
    return Attempt(
        trial=trial,
        outcome=outcome,
        link=f"{source}>{target}",
        started=started,
        phases=clock.phases,
        failure=failure,
        raw=tuple(sorted(path.name for path in raw.iterdir())),
        **found,
    )


async def _measure(
    lab: Lab, tunnel: Tunnel, parts: Parts, ends: tuple[str, str], raw: Path, clock: Clock, found: dict[str, Any]
) -> Reading:
    source, target = ends
    wanted = str(getattr(parts.use_options, "congestion_control", CUBIC))
    await _gate_tunnel_sockets(lab)
    endpoints = Endpoints(source, target, tunnel.address[source], tunnel.address[target], parts.socket_buffer)
    traffic = parts.workload.traffic(endpoints, parts.use_options)
    servers = [await _serve(lab, server, raw) for server in traffic.servers]
    clock.lap("server")
    before = machine.glance(lab.cpu_seconds())
    client = await _start(lab, traffic.client, raw)
    try:
        await tunnel.unless_dead(_ended(client, servers, traffic.timeout, traffic.client.name))
    finally:
        spent = clock.lap("collect")
        found["host"] = machine.between(before, machine.glance(lab.cpu_seconds()))
    outputs = {p.name: _output(raw, p).read_text(errors="replace") for p in (*traffic.servers, traffic.client)}
    code = client.exit.code if client.exit else None
    try:
        reading = parts.workload.read(outputs, parts.use_options)
    except TrialError as error:
        said = _output(raw, traffic.client, "err").read_text(errors="replace").strip()
        raise type(error)(
            f"{error.message} (the client ended with code {code}{': ' + said[-500:] if said else ''})", hint=error.hint
        ) from error
    inside = min(reading.window + reading.warmup, spent)
    clock.phases["collect"] -= inside
    clock.phases["warmup"] += min(reading.warmup, inside)
    clock.phases["measure"] += inside - min(reading.warmup, inside)
    _gate_workload_sockets(reading.congestion_control, wanted)
    return reading


async def _ended(client: Process, servers: Sequence[Process], timeout: float, name: str) -> None:
    try:
        await asyncio.wait_for(client.wait(), timeout)
    except TimeoutError:
        raise WorkloadFailed(
            f"the client {name} did not end within {timeout:g} s",
            hint="the path may have stopped carrying packets in the middle of the trial",
        ) from None
    if servers:
        _, late = await asyncio.wait(
            [asyncio.ensure_future(server.wait()) for server in servers], timeout=_SERVER_TIMEOUT
        )
        if late:
            raise WorkloadFailed(
                f"a server did not end within {_SERVER_TIMEOUT:g} s of its client {name}",
                hint="its output stands beside",
            )


async def _serve(lab: Lab, server: Program, raw: Path) -> Process:
    process = await _start(lab, server, raw)
    if server.ready is not None:
        try:
            await lab.nodes[server.node].until(plain(server.ready), _SERVER_TIMEOUT)
        except LabError as error:
            raise WorkloadFailed(
                f"the server {server.name} never became ready: {error.message}", hint="its output stands beside"
            ) from error
    return process


async def _start(lab: Lab, program: Program, raw: Path) -> Process:
    try:
        return await lab.nodes[program.node].spawn(
            program.argv, stdout=_output(raw, program), stderr=_output(raw, program, "err")
        )
    except LabError as error:
        raise WorkloadFailed(f"{program.argv[0]}: {error.message}", hint="is its package installed?") from error


def _output(raw: Path, program: Program, kind: str = "out") -> Path:
    return raw / f"{program.name}.{program.node}.{kind}"


async def _gate_tunnel_sockets(lab: Lab) -> None:
    """Void the trial if a TCP connection of the VPN itself does not use the lab's congestion control."""
    shown = await asyncio.gather(*(node.run(["ss", "-tinH", "state", "established"]) for node in lab.nodes.values()))
    used = {name for done in shown for name in _ALGORITHM.findall(done.stdout)}
    if used - {CUBIC}:
        raise TrialVoid(f"the VPN's own TCP uses {', '.join(sorted(used))}, not {CUBIC}", hint=_SOCKETS)


def _gate_workload_sockets(used: Sequence[str], wanted: str) -> None:
    if wrong := sorted(set(used) - {wanted}):
        raise TrialVoid(f"the workload's TCP used {', '.join(wrong)}, not {wanted}", hint=_SOCKETS)


def refused(trial: Trial, error: TunnelmarkError) -> Attempt:
    """The attempt of a trial that could not even begin, because a part of it is missing."""
    return Attempt(
        trial=trial,
        outcome="failed",
        link=f"{trial.topology.nodes[0]}>{trial.topology.nodes[-1]}",
        started=time.time(),
        phases=dict.fromkeys(PHASES, 0.0),
        failure=Failure(error.kind, error.message, error.hint),
    )
