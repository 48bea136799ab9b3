"""Carries a Deployment out on a lab: desk, files, phases, readiness; and keeps watch over its daemons."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, ip_address
from pathlib import Path, PurePosixPath
from typing import Any

from tunnelmark.errors import DaemonDied, LabError, NotReady, SetupFailed
from tunnelmark.lab.lab import Lab
from tunnelmark.lab.node import Exit, Process
from tunnelmark.lab.programs import path_of
from tunnelmark.vpns import base
from tunnelmark.vpns.base import (
    Command,
    Condition,
    Daemon,
    Deployment,
    Driver,
    Hand,
    Holds,
    Host,
    Mesh,
    Options,
    Settled,
    Step,
)

FOLDER = PurePosixPath("/run/tunnelmark")
"""Where a deployment's files stand on each node."""

DESK = FOLDER / "desk"
"""The operator's desk, on the middle node."""

NORMAL = {"mtu": 1280, "txqueuelen": 500}
"""Of every normalised overlay interface: the MTU in bytes that IPv6 asks of any link (RFC 8200 section 5), so that all
can have it, and the packets that a TUN device queues unless told otherwise (Linux: drivers/net/tun.c)."""

_STEP_TIMEOUT = 20.0  # seconds a daemon's own condition, or a file that is handed over, may take
_PING_INTERVAL = "0.01"  # seconds between readiness pings; bounds the error of the time to first packet
_LOOK_AGAIN = 0.1  # seconds between two looks at whether a daemon has settled
_PAUSE = 0.005  # seconds before a ping that could not even be sent is tried again


def mesh_of(lab: Lab, *, ipv6: bool = False) -> Mesh:
    """The lab's nodes as a driver sees them, with underlay addresses of one kind."""
    overlay = IPv4Network(base.OVERLAY)
    hosts = tuple(
        Host(
            name,
            lab.address6(name) if ipv6 else lab.address(name),
            FOLDER,
            IPv4Interface(f"{overlay[place]}/{overlay.prefixlen}"),
        )
        for place, name in enumerate(lab.nodes, start=1)
    )
    return Mesh(hosts, DESK)


@dataclass(frozen=True, slots=True)
class _Running:
    daemon: Daemon
    process: Process


class Tunnel:
    """A deployment that is up: where its overlay is, how long that took, and its daemons.

    `first_packet` has the seconds from the first daemon's start (direct: from the first ping) to the
    first answered ping, by direction `a>b`.
    """

    def __init__(
        self, lab: Lab, deployment: Deployment, logs: Path, *, path: str = "", normalised: bool = False
    ) -> None:
        self._lab = lab
        self._deployment = deployment
        self._logs = logs
        self._env = {"PATH": path or path_of()}
        self._normalised = normalised
        self._running: list[_Running] = []
        self._begun: float | None = None
        self.encrypted = deployment.encrypted
        self.interface = {node: overlay.interface for node, overlay in deployment.overlays.items()}
        self.address: dict[str, IPv4Address | IPv6Address] = {}
        self.first_packet: dict[str, float] = {}

    async def start(self) -> None:
        """Desk, files and phases; SetupFailed or DaemonDied says which step and what it printed."""
        if self._deployment.desk:
            await self._lab.middle.write(str(DESK / ".keep"), "")
        for argv in self._deployment.desk:
            await self._command(Command("", argv), ("sh", "-c", 'cd "$0" && exec "$@"', str(DESK), *argv))
        await asyncio.gather(*(self._place(file) for file in self._deployment.files))
        for phase in self._deployment.phases:
            await _together(self._step(step) for step in phase)

    async def _normalise(self) -> None:
        """Give every overlay interface the MTU and the queue that all normalised arms have."""
        wanted = [str(word) for pair in NORMAL.items() for word in pair]
        await _together(
            self._command(Command(node, ("ip", "link", "set", "dev", overlay.interface, *wanted)))
            for node, overlay in self._deployment.overlays.items()
        )

    async def answer(self, timeout: float) -> None:
        """Wait until a ping is answered over the overlay in every direction; NotReady after `timeout` seconds."""
        begun = self._begun if self._begun is not None else time.monotonic()
        deadline = time.monotonic() + timeout
        for node, overlay in self._deployment.overlays.items():
            self.address[node] = overlay.address or await self._read_address(node, overlay.interface, deadline)
        nodes = list(self.address)
        pairs = [(later, earlier) for place, later in enumerate(nodes) for earlier in nodes[:place]]

        async def both_ways(later: str, earlier: str) -> None:
            # One side first, the one that dials where somebody must: two WireGuard peers that begin their
            # handshakes at the same moment discard each other's and wait 5 s (REKEY_TIMEOUT).
            for source, target in ((later, earlier), (earlier, later)):
                answered = await self._first_answer(source, target, deadline)
                self.first_packet[f"{source}>{target}"] = answered - begun

        try:
            await asyncio.wait_for(self.unless_dead(_together(both_ways(*pair) for pair in pairs)), timeout)
        except TimeoutError:
            directions = [f"{a}>{b}" for a in nodes for b in nodes if a != b]
            silent = ", ".join(one for one in directions if one not in self.first_packet)
            raise NotReady(
                f"no ping was answered over the overlay within {timeout:g} s: {silent}",
                hint="see the daemons' logs beside this trial's raw output; `ready_timeout` in the study gives more time",
            ) from None
        if self._normalised:
            await self._normalise()

    async def settle(self, timeout: float) -> None:
        """Wait until every daemon that says so has settled; NotReady after `timeout` seconds."""
        await self.unless_dead(
            _together(self._settled(one, time.monotonic() + timeout) for one in self._deployment.settled)
        )

    async def _settled(self, one: Settled | Holds, deadline: float) -> None:
        if isinstance(one, Holds):
            await self._holds(one, deadline)
            return
        process = next(r.process for r in self._running if (r.daemon.node, r.daemon.name) == (one.node, one.daemon))
        log = self._log(one.node, one.daemon)
        while time.monotonic() < deadline:
            before = log.stat().st_size
            await process.signal(one.signal)
            await asyncio.sleep(_LOOK_AGAIN)
            if (
                len(re.findall(one.pattern, log.read_bytes()[before:].decode(errors="replace"), re.MULTILINE))
                >= one.count
            ):
                return
        raise NotReady(
            f"{one.daemon} on {one.node} answered but did not settle in time",
            hint="the end of its log says what it waits for; `ready_timeout` in the study gives more time",
        )

    async def _holds(self, one: Holds, deadline: float) -> None:
        done = None
        while time.monotonic() < deadline:
            done = await self._lab.nodes[one.node].run(one.argv, timeout=_STEP_TIMEOUT, env=self._env)
            if done.code == 0:
                return
            await asyncio.sleep(_LOOK_AGAIN)
        said = (done.stderr or done.stdout).strip()[-300:] if done else ""
        raise NotReady(
            f"`{' '.join(one.argv)}` on {one.node} did not end with 0 in time",
            hint=f"it said last: {said}" if said else "`ready_timeout` in the study gives more time",
        )

    async def unless_dead(self, work: Any) -> Any:
        """The result of some awaitable work, or DaemonDied as soon as one of the daemons ends."""
        task = asyncio.ensure_future(work)
        deaths = {asyncio.ensure_future(running.process.wait()): running.daemon for running in self._running}
        try:
            await asyncio.wait({task, *deaths}, return_when=asyncio.FIRST_COMPLETED)
            for death, daemon in deaths.items():
                if death.done() and not task.done():
                    raise self._died(daemon, death.result())
            return await task
        finally:
            for future in (task, *deaths):
                future.cancel()
            await asyncio.gather(task, *deaths, return_exceptions=True)

    async def restart(self, node: str) -> None:
        """Kill the daemons of a node as a crash would, and start them again; readiness is the caller's to await.

        `first_packet` counts from this start on.
        """
        mine = [running for running in self._running if running.daemon.node == node]
        for running in mine:
            self._running.remove(running)
            await running.process.signal(signal.SIGKILL)
            await running.process.wait()
        self._begun = None
        self.first_packet.clear()
        for phase in self._deployment.phases:
            await _together(self._step(step) for step in phase if step.node == node)

    async def _place(self, file: base.File) -> None:
        content = await self._lab.middle.read(str(DESK / file.from_desk)) if file.from_desk else file.content
        await self._lab.nodes[file.node].write(str(file.path), content, file.mode)

    async def _step(self, step: Step) -> None:
        match step:
            case Command():
                await self.unless_dead(self._command(step))
            case Daemon():
                await self._daemon(step)
            case Hand():
                await self.unless_dead(self._hand(step))
            case Holds():
                await self.unless_dead(self._holds(step, time.monotonic() + _STEP_TIMEOUT))

    async def _hand(self, step: Hand) -> None:
        source = self._lab.nodes[step.source]
        try:
            await source.until({"kind": "file", "path": str(step.path)}, _STEP_TIMEOUT)
        except LabError:
            raise NotReady(
                f"{step.source} had no {step.path} for {step.node} within {_STEP_TIMEOUT:g} s",
                hint="the logs of its daemons stand beside this trial's raw output",
            ) from None
        await self._lab.nodes[step.node].write(str(step.to), await source.read(str(step.path)), step.mode)

    async def _command(self, step: Command, argv: Sequence[str] = ()) -> None:
        node = self._lab.nodes[step.node] if step.node else self._lab.middle
        try:
            done = await node.run(argv or step.argv, timeout=step.timeout, stdin=step.stdin, env=self._env)
        except LabError as error:
            raise SetupFailed(f"{step.argv[0]}: {error.message}", hint="is its package installed?") from error
        if done.code != 0:
            raise SetupFailed(
                f"`{' '.join(step.argv)}` on {node.name} ended with code {done.code}: {(done.stderr or done.stdout).strip()}",
                hint="`tunnelmark lab up` and `lab shell` let you try the command by hand",
            )

    async def _daemon(self, daemon: Daemon) -> None:
        node = self._lab.nodes[daemon.node]
        if self._begun is None:
            self._begun = time.monotonic()
        log = self._log(daemon.node, daemon.name)
        try:
            process = await node.spawn(daemon.argv, stdout=log, env=self._env | dict(daemon.env))
        except LabError as error:
            raise SetupFailed(f"{daemon.argv[0]}: {error.message}", hint="is its package installed?") from error
        self._running.append(_Running(daemon, process))
        if daemon.ready is not None:
            try:
                if isinstance(daemon.ready, base.Says):
                    await self.unless_dead(self._said(log, daemon.ready.pattern))
                else:
                    await self.unless_dead(node.until(plain(daemon.ready), _STEP_TIMEOUT))
            except LabError:
                raise NotReady(
                    f"{daemon.name} on {daemon.node} ran for {_STEP_TIMEOUT:g} s without {daemon.ready}",
                    hint="its log stands beside this trial's raw output",
                ) from None

    async def _said(self, log: Path, pattern: str) -> None:
        """Wait until a daemon's log has a match; LabError after the time that a step may take."""
        deadline = time.monotonic() + _STEP_TIMEOUT
        while not re.search(pattern, log.read_text(errors="replace"), re.MULTILINE):
            if time.monotonic() > deadline:
                raise LabError(f"{log.name} never said {pattern!r}", hint="the log stands beside the raw output")
            await asyncio.sleep(_PAUSE)

    def _log(self, node: str, daemon: str) -> Path:
        return self._logs / f"daemon.{node}.{daemon}.log"

    def _died(self, daemon: Daemon, end: Exit) -> DaemonDied:
        how = f"signal {-end.code}" if end.code < 0 else f"exit code {end.code}"
        return DaemonDied(
            f"{daemon.name} on {daemon.node} ended by itself with {how}",
            hint=f"the end of its log: daemon.{daemon.node}.{daemon.name}.log",
        )

    async def _read_address(self, node: str, interface: str, deadline: float) -> IPv4Address | IPv6Address:
        """The interface's first global address; a VPN that chooses addresses itself shows it there."""
        while time.monotonic() < deadline:
            shown = await self._lab.nodes[node].run(["ip", "-o", "addr", "show", "dev", interface, "scope", "global"])
            words = shown.stdout.split()
            if shown.code == 0 and len(words) > 3:
                return ip_address(words[3].partition("/")[0])
            await asyncio.sleep(_PAUSE)
        raise NotReady(f"{interface} on {node} got no address in time", hint="see the daemon's log")

    async def _first_answer(self, source: str, target: str, deadline: float) -> float:
        """When (monotonic seconds) the first ping was answered; one ping every 10 ms until then."""
        address = str(self.address[target])
        while True:
            left = max(1, round(deadline - time.monotonic()))
            argv = ["ping", "-n", "-q", "-c1", f"-w{left}", "-i", _PING_INTERVAL, address]
            process = await self._lab.nodes[source].spawn(argv)
            try:
                end = await process.wait()
            except asyncio.CancelledError:
                await process.signal(9)
                raise
            if end.code == 0:
                return end.time
            await asyncio.sleep(_PAUSE)


def plain(condition: Condition) -> Mapping[str, Any]:
    """A driver's condition as the lab's agents understand it (see `lab.conditions`); `Says` is none of theirs."""
    match condition:
        case base.UdpPort(port):
            return {"kind": "udp-port", "port": port}
        case base.TcpPort(port):
            return {"kind": "tcp-port", "port": port}
        case base.Interface(name):
            return {"kind": "interface", "name": name}
        case base.UnixSocket(path):
            return {"kind": "unix-socket", "path": str(path)}
        case base.Says(pattern):
            raise LabError(f"no node can wait for {pattern!r}", hint="only a VPN's daemon can be ready by what it says")


def prepare(
    lab: Lab, driver: Driver, options: Options, logs: Path, *, normalised: bool = False, ipv6: bool = False
) -> Tunnel:
    """A VPN ready to be started on all nodes of a lab, with fresh keys; its daemons' logs go to a folder."""
    part = driver.part(options)
    path = path_of(part.peer, part.strict)
    return Tunnel(lab, driver.deploy(mesh_of(lab, ipv6=ipv6), options), logs, path=path, normalised=normalised)


@asynccontextmanager
async def deploy(
    lab: Lab, driver: Driver, options: Options, *, logs: Path, ready_timeout: float, ipv6: bool = False
) -> AsyncIterator[Tunnel]:
    """A VPN on all nodes of a lab, answering in every direction; it ends with its lab."""
    logs.mkdir(parents=True, exist_ok=True)
    tunnel = prepare(lab, driver, options, logs, ipv6=ipv6)
    await tunnel.start()
    await tunnel.answer(ready_timeout)
    yield tunnel


def log_end(folder: Path, characters: int = 2000) -> str:
    """The end of every daemon's log in a trial's folder, as a failure's evidence."""
    parts = []
    for path in sorted(folder.glob("daemon.*.log")):
        if text := path.read_text(errors="replace").strip():
            parts.append(f"--- {path.name}\n{text[-characters:]}")
    return "\n".join(parts)


async def _together(work: Iterator[Any]) -> None:
    """All of some work at once; the first failure cancels the rest and is raised as itself."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
