"""Starts the daemons of a deployment, waits until they are ready, watches them, and kills them as a crash would."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tunnelmark.errors import DaemonDied, LabError, NodeGone, NotReady, SetupFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Exit, Process
from tunnelmark.model import steps
from tunnelmark.model.steps import Daemon, ReadyWhen
from tunnelmark.run.background import background

PAUSE = 0.005  # seconds between two looks at something that does not report its changes
BESIDE = "next to this trial's raw output"
"""Where the logs of a trial's daemons are, in words; in a lab of `lab up` they are elsewhere."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    daemon: Daemon
    process: Process


class DaemonSupervisor:
    """Starts and watches the daemons of a deployment.

    `begun`: when the first of them was started, in monotonic seconds; None before.
    """

    def __init__(self, lab: Lab, logs: Path, env: Mapping[str, str], logs_are: str = BESIDE) -> None:
        self._lab = lab
        self._logs = logs
        self._logs_are = logs_are
        self._env = dict(env)
        self._running: list[_Running] = []
        self._changed: asyncio.Future[None] | None = None  # made when a caller watches, done when `_running` changes
        self.begun: float | None = None

    async def start(self, daemon: Daemon, patience: float) -> None:
        """Start a daemon, and wait until it is ready.

        Raises SetupFailed if the daemon cannot be started, DaemonDied if any daemon ends meanwhile, and NotReady if the
        daemon is not ready within `patience` seconds.
        """
        node = self._lab.nodes[daemon.node]
        if self.begun is None:
            self.begun = time.monotonic()
        log = self.log(daemon.node, daemon.name)
        said = log.stat().st_size if log.exists() else 0  # what it said in a former life does not count
        try:
            process = await node.spawn(daemon.argv, stdout=log, env=self._env | dict(daemon.env))
        except NodeGone:  # the laboratory's own failure
            raise
        except LabError as error:
            raise SetupFailed(f"{daemon.argv[0]}: {error.message}", hint="is its package installed?") from error
        self._running.append(_Running(daemon, process))
        self._change()
        if daemon.ready is None:
            return
        try:
            if isinstance(daemon.ready, steps.LogMatch):
                await self.unless_dead(_said(log, said, daemon.ready.pattern, patience))
            else:
                await self.unless_dead(node.until(plain(daemon.ready), patience))
        except NodeGone:  # the laboratory's own failure
            raise
        except LabError:
            raise NotReady(
                f"{daemon.name} on {daemon.node} ran for {patience:g} s without what says that it is ready: {daemon.ready}",
                hint=f"its log is {self._logs_are}",
            ) from None

    async def kill(self, which: Callable[[Daemon], bool]) -> None:
        """Kill the chosen daemons like a crash, and wait for their ends; `unless_dead` does not report these ends."""
        ending = [running for running in self._running if which(running.daemon)]
        self._running = [running for running in self._running if running not in ending]
        self._change()
        await asyncio.gather(*(running.process.signal(signal.SIGKILL) for running in ending))
        await asyncio.gather(*(running.process.wait() for running in ending))

    def process(self, node: str, name: str) -> Process:
        """Return the process of the daemon `name` on `node`.

        Raises StopIteration if `start` has not started that daemon, or `kill` has killed it.
        """
        return next(run.process for run in self._running if (run.daemon.node, run.daemon.name) == (node, name))

    def log(self, node: str, name: str) -> Path:
        """Return the file for a daemon's output; after a restart, the new output is appended to it."""
        return self._logs / f"daemon.{node}.{name}.log"

    async def unless_dead(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Wait for `work`, and return its result.

        Raises DaemonDied, and cancels `work`, as soon as a daemon ends that `kill` has not killed.
        """
        async with AsyncExitStack() as ending:
            (task,) = await ending.enter_async_context(background(work))
            deaths: dict[asyncio.Task[Exit], _Running] = {}
            while not task.done():
                known = set(deaths.values())
                for one in [one for one in self._running if one not in known]:
                    (death,) = await ending.enter_async_context(background(one.process.wait()))
                    deaths[death] = one
                watched: set[asyncio.Future[Any]] = {task, self._change_to_come(), *deaths}
                await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for death in [death for death in deaths if death.done()]:
                    running = deaths.pop(death)
                    end = death.result()
                    if running in self._running and not task.done():
                        raise _died(running.daemon, end)
            result: _Result = await task
        return result

    def _change_to_come(self) -> asyncio.Future[None]:
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    def _change(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


async def _said(log: Path, offset: int, pattern: str, patience: float) -> None:
    """Wait until a log matches `pattern` behind byte `offset`; LabError after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not re.search(pattern, log.read_bytes()[offset:].decode(errors="replace"), re.MULTILINE):
        if time.monotonic() > deadline:
            raise LabError(f"{log.name} never said {pattern!r}", hint="its last words may say why")
        await asyncio.sleep(PAUSE)


def _died(daemon: Daemon, end: Exit) -> DaemonDied:
    how = f"signal {-end.code}" if end.code < 0 else f"exit code {end.code}"
    return DaemonDied(
        f"{daemon.name} on {daemon.node} ended by itself with {how}",
        hint=f"the end of its log: daemon.{daemon.node}.{daemon.name}.log",
    )


def plain(condition: ReadyWhen) -> Mapping[str, Any]:
    """Convert a driver's condition to the form that the lab's agents take (see `lab.server.conditions`).

    Raises LabError for `LogMatch`, which agents do not know.
    """
    match condition:
        case steps.UdpPort(port):
            return {"kind": "udp-port", "port": port}
        case steps.TcpPort(port):
            return {"kind": "tcp-port", "port": port}
        case steps.Interface(name):
            return {"kind": "interface", "name": name}
        case steps.UnixSocket(path):
            return {"kind": "unix-socket", "path": str(path)}
        case steps.LogMatch(pattern):
            raise LabError(f"no node can wait for {pattern!r}", hint="only a VPN's daemon can be ready by what it says")
