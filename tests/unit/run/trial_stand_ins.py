"""Stand-ins for a lab, its nodes and a VPN, which do as a test says, for tests of how a trial becomes an attempt (see `conftest.attempt`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tunnelmark.errors import LabError, NotReady, OutputUnreadable
from tunnelmark.host.placement import Placement, place
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Completed, Exit
from tunnelmark.model.attempt import Attempt
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon
from tunnelmark.plan.model import Link, Profile, Topology
from tunnelmark.run.supervisor import DaemonSupervisor
from tunnelmark.vpns.base import Deployment, Driver
from tunnelmark.workloads.base import Endpoints, Program, Reading, Traffic, Workload

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))
PROFILE = Profile("unshaped", "no shaper", "test")
GOODPUT = Metric("goodput", "bit/s", "goodput", "higher", primary=True)
NEVER = 3600.0
"""Seconds after which a stand-in's program ends by itself, if nobody ends it."""


@dataclass
class Script:
    """What a program does: what it prints, after how many seconds it ends, with which exit code."""

    prints: str = ""
    seconds: float = 0.0
    code: int = 0


class Process:
    def __init__(self, script: Script) -> None:
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(script.seconds, self._end, script.code)

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(Exit(code, asyncio.get_running_loop().time(), 0.0, 0.0, 0))

    @property
    def exit(self) -> Exit | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ended)

    async def signal(self, number: int) -> None:
        self._end(-number)

    async def stop(self, patience: float = 2.0) -> Exit:
        self._end(-15)
        return await self.wait()


@dataclass
class Node:
    """A node whose programs do as their scripts say, and whose sockets show what `ss` says; it raises what `raises` has of a program, or of a wait ("until")."""

    name: str
    scripts: Mapping[str, Script]
    sockets: str = ""
    pid: int = 0
    raises: Mapping[str, LabError] = field(default_factory=dict)

    async def until(self, condition: Mapping[str, Any], timeout: float) -> float:
        self._fail("until")
        return 0.0

    async def run(self, argv: Sequence[str], **_: object) -> Completed:
        self._fail(argv[0])
        return Completed(0, self.sockets if argv[0] == "ss" else "", "")

    async def spawn(self, argv: Sequence[str], *, stdout: Path, stderr: Path | None = None, **_: object) -> Process:
        self._fail(argv[0])
        script = self.scripts[argv[0]]
        stdout.write_text(script.prints)
        if stderr is not None:
            stderr.write_text(f"{argv[0]} complains\n" if script.code else "")
        return Process(script)

    def _fail(self, what: str) -> None:
        if what in self.raises:
            raise self.raises[what]


@dataclass
class FakeLab:
    nodes: Mapping[str, Node]
    reports: list[dict[str, Any]] = field(default_factory=list)
    profile: Profile = PROFILE
    topology: Topology = PAIR
    paused: float = 0.0
    """The share of any time in which the machine stood still."""

    is_down: bool = False
    here: bool = True
    placement: Placement = field(default_factory=lambda: place("ab", [(0,), (1,)]))
    middle: Any = field(default_factory=lambda: SimpleNamespace(pid=0))
    owners: Mapping[Any, str] = field(default_factory=dict)
    group: Callable[[str], None] = lambda _: None
    counted_headers: Callable[[str], dict[str, tuple[int, int]]] = lambda _: {}

    async def lost(self) -> None:
        return None

    def cpu_seconds(self) -> None:
        return None

    async def clocks(self) -> dict[str, Any]:
        return {}

    async def zero(self) -> None:
        pass

    async def stood_still(self, begin: float, end: float) -> dict[str, float]:
        return {"pause_share": self.paused}

    def ports_to(self, node: str, interface: str = "") -> frozenset[str]:
        return frozenset({f"{node}.0"})

    async def link_reports(self) -> list[dict[str, Any]]:
        return self.reports

    async def down(self) -> float:
        self.is_down = True
        return 0.0


@dataclass
class Labs:
    lab: FakeLab
    refuses: str = ""
    is_gone: bool = False

    def watch(self) -> None:
        pass

    async def up(self, *_: object, **__: object) -> FakeLab:
        if self.refuses:
            raise LabError(self.refuses, hint="free some")
        return self.lab

    async def check(self) -> None:
        if self.is_gone:
            raise LabError("the lab's server ended", hint="run again")


class Tunnel:
    """A deployment of one daemon, which a real supervisor watches."""

    def __init__(self, lab: FakeLab, logs: Path, silent: bool) -> None:
        self.address = {"a": IPv4Address("10.60.0.1"), "b": IPv4Address("10.60.0.2")}
        self.interface = {"a": "tun0", "b": "tun0"}
        self._supervisor = DaemonSupervisor(cast(Lab, lab), logs, {})
        self._silent = silent
        self.first_packet: dict[str, float] = {}
        self.relayed = self.bare = False
        self.begun = 0.0
        self.arrives_from: dict[str, Any] = {}

    async def start(self) -> None:
        await self._supervisor.start(Daemon("a", "vpnd", ("vpnd",)), 1.0)

    async def answer(self, timeout: float) -> None:
        if self._silent:
            raise NotReady("no ping was answered", hint="see the logs")
        self.first_packet["a>b"] = 0.25

    async def wait_converged(self, timeout: float) -> None:
        pass

    async def unless_dead(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await self._supervisor.unless_dead(work)


def traffic(ends: Endpoints, options: Options) -> Traffic:
    server = Program("server", ends.target, ("server",), long_running=True)
    return Traffic((server,), Program("client", ends.source, ("client",)), window=0.02, warmup=0.01, timeout=30)


def read(outputs: dict[str, str], options: Options) -> Reading:
    if outputs["client"] == "starved":
        return Reading((Sample("goodput", 1.0),), 0.02, 0.01, starved="the sender sent half")
    try:
        return Reading((Sample("goodput", float(outputs["client"])),), 0.02, 0.01, ("cubic",))
    except ValueError as error:
        raise OutputUnreadable("the client printed no number", hint="see the raw output") from error


WORKLOAD = Workload(
    name="made-up",
    title="Made up",
    metrics=(GOODPUT,),
    traffic=traffic,
    read=read,
    programs=(),
    packages=(),
    options=Options,
)
DRIVER = Driver(
    name="made-up",
    title="Made up",
    homepage="https://example.org/",
    packages=(),
    programs=(),
    version=(),
    version_pattern="(.)",
    deploy=lambda mesh, options: Deployment({}),
    options=Options,
)
FINE = {
    "vpnd": Script("hello\n", NEVER),
    "server": Script("", NEVER),
    "client": Script("42", 0.03),
}

Try = Callable[..., Attempt]


def report(dropped: int = 0, late: float = 10.0, **faults: int) -> dict[str, Any]:
    """What the emulator of a link says: packets that its port dropped, what else that port counted, and by how many microseconds all were late."""
    realised = {"offered": 9, "loss_runs": 0, "duplicated": 0, "corrupted": 0, "reordered": 0}
    lateness = {"count": 9, "p50": late, "p99": late, "max": late}
    way = {
        "name": "a to b",
        "lateness_us": lateness,
        "dropped": {"loss": 0, "memory": 0, "oversize": 0},
        "realised": realised | {"delay_us": {"count": 9, "mean": 0.0, "deviation": 0.0}},
    }
    return {"ports": [{"name": "b.0", "socket_dropped": dropped, **faults}], "directions": [way]}
