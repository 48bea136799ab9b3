"""Runs a workload's traffic on a deployment: writes files, runs the set-up, the servers, clients and events."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, NodeGone, WorkloadFailed
from tunnelmark.host.programs import path_of
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Process
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, LogMatch, ReadyWhen
from tunnelmark.run.background import background
from tunnelmark.run.collectors import traffic_path
from tunnelmark.run.deploy import RunningDeployment, plain
from tunnelmark.run.events import happen
from tunnelmark.workloads.base import EVENTS, PATH_LOOKS, Program, Traffic

_LATE = "its output is next to the trial's raw output"
_LOOK_AGAIN = 0.005  # seconds between two looks at whether a server is ready
_STEP_TIMEOUT = 20.0  # seconds that handing a file over may take
_ALONE = 2.0  # seconds in which a client may end by itself once all servers have ended


@dataclass(frozen=True, slots=True)
class _Started:
    program: Program
    process: Process


class WorkloadRunner:
    """Runs one trial's workload. Its methods raise WorkloadFailed with the reason, or NodeGone if a node ended."""

    def __init__(self, lab: Lab, tunnel: RunningDeployment, traffic: Traffic, raw: Path, recipe: str = "") -> None:
        self._lab = lab
        self._tunnel = tunnel
        self._traffic = traffic
        self._raw = raw
        self._path = {"PATH": path_of(recipe)}
        self._servers: list[_Started] = []
        self._client: Process | None = None

    async def serve(self) -> None:
        """Write the files, run the set-up, and start the servers in turn, each when the one before is ready."""
        traffic = self._traffic
        for file in traffic.files:
            await self._lab.nodes[file.node].write(str(file.path), file.content, file.mode)
        for step in traffic.setup:
            await self._set_up(step)
        for server in traffic.servers:
            process = await self._start(server)
            self._servers.append(_Started(server, process))
            await self._ready(server, process)

    async def drive(self) -> None:
        """Start all clients, carry out the events meanwhile, and wait until the main client ends.

        Servers and further clients that are not `long_running` end by themselves. If all of them have ended, the main
        client is stopped 2 s later. That is not an error here: the programs' outputs say why they ended. Raises
        WorkloadFailed if the main client does not end within `Traffic.timeout` seconds.
        """
        client, extra = self._traffic.client, self._traffic.extra_clients
        process, *others = await asyncio.gather(*(self._start(one) for one in (client, *extra)))
        self._client = process
        self._servers += [_Started(*pair) for pair in zip(extra, others, strict=True)]
        events_of = happen(self._lab, self._tunnel, self._traffic.events, self._raw / EVENTS, self._own)
        async with background(events_of, self._end_when_left(process)) as (events, _):
            try:
                await asyncio.wait_for(_ended(process, events), self._traffic.timeout)
            except TimeoutError:
                raise WorkloadFailed(
                    f"the program {client.name} did not end within {self._traffic.timeout:g} s",
                    hint="the path may have stopped carrying packets in the middle of the trial",
                ) from None

    async def _end_when_left(self, client: Process) -> None:
        ending = [one.process.wait() for one in self._servers if not one.program.long_running]
        if not ending:
            return
        await asyncio.gather(*ending)
        await asyncio.sleep(_ALONE)
        await client.stop(self._traffic.client.ready_timeout)

    def _own(self) -> dict[str, list[int]]:
        """Return the process numbers of all programs that were started, by node."""
        found: dict[str, list[int]] = {}
        for one in self._servers:
            found.setdefault(one.program.node, []).append(one.process.pid)
        if self._client is not None:
            found.setdefault(self._traffic.client.node, []).append(self._client.pid)
        return found

    def outputs(self) -> dict[str, str]:
        """Return what each program printed to standard output, by the program's name.

        If the trial wrote a file of events or of paths, its text is there as well, under the key EVENTS or PATH_LOOKS.
        """
        programs = (*self._traffic.servers, *self._traffic.extra_clients, self._traffic.client)
        printed = {one.name: self._file(one).read_text(errors="replace") for one in programs}
        for name, file in ((EVENTS, EVENTS), (PATH_LOOKS, traffic_path.FILE)):
            with contextlib.suppress(FileNotFoundError):
                printed[name] = (self._raw / file).read_text()
        return printed

    def how_it_ended(self) -> str:
        """Return a sentence with the client's exit code and the end of its standard error."""
        code = self._client.exit.code if self._client is not None and self._client.exit else None
        said = self._file(self._traffic.client, "err").read_text(errors="replace").strip()
        return f"the client ended with code {code}{': ' + said[-500:] if said else ''}"

    async def finish(self) -> None:
        """End all programs but the main client: first stop the long-running ones, in reverse order of their start.

        A long-running program has its `grace` to end by itself, and then gets SIGTERM. If it runs on for
        `ready_timeout` seconds after SIGTERM, it gets SIGKILL. What it does in these seconds, such as to judge a
        picture, is not part of the traffic. Raises WorkloadFailed if a program that is not long-running does not end by
        itself within its `ready_timeout`.
        """
        for one in reversed(self._servers):
            if one.program.long_running:
                if one.program.grace:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(one.process.wait(), one.program.grace)
                await one.process.stop(one.program.ready_timeout)
        for one in self._servers:
            try:
                await asyncio.wait_for(one.process.wait(), one.program.ready_timeout)
            except TimeoutError:
                raise WorkloadFailed(
                    f"{one.program.name} did not end within {one.program.ready_timeout:g} s of its client",
                    hint=_LATE,
                ) from None

    async def _set_up(self, step: Command | CopyFile) -> None:
        try:
            if isinstance(step, CopyFile):
                source = self._lab.nodes[step.source]
                await source.until({"kind": "file", "path": str(step.path)}, _STEP_TIMEOUT)
                await self._lab.nodes[step.node].write(str(step.to), await source.read(str(step.path)), step.mode)
                return
            node = self._lab.nodes[step.node]
            done = await node.run(step.argv, timeout=step.timeout, stdin=step.stdin, env=self._path)
        except NodeGone:  # the laboratory's own failure
            raise
        except LabError as error:
            raise WorkloadFailed(f"its set-up failed: {error.message}", hint=error.hint) from error
        if done.code != 0:
            said = (done.stderr or done.stdout).strip()[-500:]
            raise WorkloadFailed(
                f"`{' '.join(step.argv)}` on {node.name} ended with code {done.code}: {said}",
                hint="it is a step of the workload's set-up",
            )

    async def _start(self, program: Program) -> Process:
        try:
            return await self._lab.nodes[program.node].spawn(
                program.argv,
                stdout=self._file(program),
                stderr=self._file(program, "err"),
                env={**self._path, **program.env},
            )
        except NodeGone:  # the laboratory's own failure
            raise
        except LabError as error:
            raise WorkloadFailed(f"{program.argv[0]}: {error.message}", hint="is its package installed?") from error

    async def _ready(self, server: Program, process: Process) -> None:
        if server.ready is None:
            return
        async with background(self._holds(server, server.ready), process.wait()) as (wait, death):
            try:
                await asyncio.wait({wait, death}, timeout=server.ready_timeout, return_when=asyncio.FIRST_COMPLETED)
                if wait.done():
                    await wait
                    return
                why = (
                    f"it ended with code {death.result().code}"
                    if death.done()
                    else f"within {server.ready_timeout:g} s"
                )
            except NodeGone:
                raise
            except LabError as error:
                raise WorkloadFailed(
                    f"the server {server.name} never became ready: {error.message}", hint=_LATE
                ) from error
        said = self._file(server, "err").read_text(errors="replace").strip()[-500:]
        raise WorkloadFailed(
            f"the server {server.name} never became ready: {why}{': ' + said if said else ''}", hint=_LATE
        )

    async def _holds(self, server: Program, condition: ReadyWhen | CommandSucceeds) -> None:
        match condition:
            case LogMatch(pattern):
                files = (self._file(server), self._file(server, "err"))
                while not any(re.search(pattern, file.read_text(errors="replace"), re.MULTILINE) for file in files):
                    await asyncio.sleep(_LOOK_AGAIN)
            case CommandSucceeds(name, argv):
                while (await self._lab.nodes[name].run(argv, env=self._path)).code != 0:
                    await asyncio.sleep(_LOOK_AGAIN)
            case _:
                await self._lab.nodes[server.node].until(plain(condition), server.ready_timeout)

    def _file(self, program: Program, kind: str = "out") -> Path:
        return self._raw / f"{program.name}.{program.node}.{kind}"


async def _ended(client: Process, events: asyncio.Future[None]) -> None:
    """Wait until the client ends. An error of an event meanwhile is raised; events that take longer are not awaited."""
    async with background(client.wait()) as (end,):
        both: set[asyncio.Future[Any]] = {end, events}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if events.done():
            events.result()
        await end
