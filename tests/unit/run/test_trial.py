"""A trial becomes an attempt, however it goes: a result, a failure of the VPN or its workload, or a void of the laboratory.

The lab, its nodes and the tunnel are stand-ins that do as a test says; everything that decides is the real code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tunnelmark.errors import LabError, NotReady, OutputUnreadable, TrialVoid
from tunnelmark.host.placement import Placement, place
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.lab.node import Completed, Exit
from tunnelmark.model.attempt import PHASES, Attempt
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Daemon
from tunnelmark.plan.model import Arm, Link, Profile, Topology, Trial, WorkloadUse
from tunnelmark.run import deploy
from tunnelmark.run.collectors.base import Collected, Collector
from tunnelmark.run.measurement import TrialSpec
from tunnelmark.run.supervisor import DaemonSupervisor
from tunnelmark.run.trial import prepare, refused
from tunnelmark.vpns.base import Deployment, Driver
from tunnelmark.workloads.base import Endpoints, Event, Program, Reading, Traffic, Workload

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
    """A node whose programs do as their scripts say, and whose sockets show what `ss` says."""

    name: str
    scripts: Mapping[str, Script]
    sockets: str = ""
    pid: int = 0

    async def run(self, argv: Sequence[str], **_: object) -> Completed:
        return Completed(0, self.sockets if argv[0] == "ss" else "", "")

    async def spawn(self, argv: Sequence[str], *, stdout: Path, stderr: Path | None = None, **_: object) -> Process:
        script = self.scripts[argv[0]]
        stdout.write_text(script.prints)
        if stderr is not None:
            stderr.write_text(f"{argv[0]} complains\n" if script.code else "")
        return Process(script)


@dataclass
class FakeLab:
    nodes: Mapping[str, Node]
    reports: list[dict[str, Any]] = field(default_factory=list)
    profile: Profile = PROFILE
    topology: Topology = PAIR
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
        return {"pause_share": 0.0}

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
        self.relayed = False
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


def _traffic(ends: Endpoints, options: Options) -> Traffic:
    server = Program("server", ends.target, ("server",), long_running=True)
    return Traffic((server,), Program("client", ends.source, ("client",)), window=0.02, warmup=0.01, timeout=30)


def _read(outputs: dict[str, str], options: Options) -> Reading:
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
    traffic=_traffic,
    read=_read,
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


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Makes an attempt at a trial, with what is different from one in which all is fine."""

    def one(
        *,
        lab: FakeLab | None = None,
        silent: bool = False,
        refuses: str = "",
        is_gone: bool = False,
        spec: Mapping[str, Any] | None = None,
        machine: Mapping[str, float] | None = None,
        again: str = "",
        **scripts: Script,
    ) -> Attempt:
        # The machine is a stand-in, too: /proc/stat counts in ticks, and one in a window as short as these is most of a core.
        monkeypatch.setattr("tunnelmark.run.interference.between", lambda *_, **__: dict(machine or {}))
        made = lab or FakeLab({})
        if not made.nodes:
            made.nodes = {name: Node(name, FINE | scripts) for name in ("a", "b")}
        monkeypatch.setattr(deploy, "prepare", lambda lab, driver, options, raw, **_: Tunnel(lab, raw, silent))
        trial = Trial(0, 1, Arm("made-up", "made-up"), PROFILE, PAIR, WorkloadUse("made-up", "made-up"))
        parts = replace(TrialSpec(DRIVER, Options(), WORKLOAD, Options(), 1.0, 212992), **(spec or {}))
        labs = cast(LabClient, Labs(made, refuses, is_gone))

        async def run() -> Attempt:
            return await (await prepare(labs, trial, parts, tmp_path / f"raw{again}")).measure()

        ended = asyncio.run(run())
        assert made.is_down or refuses, "the lab has ended"
        return ended

    return one


def test_a_trial_in_which_all_goes_well_has_samples_and_says_where_its_time_went(attempt: Try) -> None:
    ended = attempt()
    assert (ended.outcome, ended.failure) == ("ok", None)
    assert ended.samples == (Sample("goodput", 42.0),)
    assert ended.first_packet == {"a>b": 0.25}
    assert ended.link == "a>b"
    assert {"client.a.out", "server.b.out", "daemon.a.vpnd.log"} <= set(ended.raw)
    assert set(ended.phases) == set(PHASES)
    assert ended.phases["warmup"] == pytest.approx(0.01)
    assert ended.phases["measure"] == pytest.approx(0.02)
    assert all(seconds >= 0 for seconds in ended.phases.values())
    assert ended.graded is not None
    assert ended.host["pause_share"] == 0.0


@pytest.mark.parametrize(("events", "outcome"), [((), "void"), ((Event(NEVER, "partition-heal", "a"),), "ok")])
def test_only_a_trial_in_which_nothing_happens_must_go_the_way_that_its_arm_is_called_by(
    attempt: Try, monkeypatch: pytest.MonkeyPatch, events: tuple[Event, ...], outcome: str
) -> None:
    def stray(*_: object, **__: object) -> None:
        raise TrialVoid("went another way", hint="see the logs")

    monkeypatch.setattr("tunnelmark.run.measurement.check_path", stray)
    disturbed = replace(WORKLOAD, traffic=lambda *given: replace(_traffic(*given), events=events))
    assert attempt(spec={"workload": disturbed}).outcome == outcome


def test_a_daemon_that_dies_fails_the_trial_with_the_end_of_its_log(attempt: Try) -> None:
    ended = attempt(vpnd=Script("out of memory\n", 0.02, 1), client=Script("", NEVER))
    assert ended.outcome == "failed" and ended.failure is not None
    assert ended.failure.message == "vpnd on a ended by itself with exit code 1"
    assert ended.failure.log == "--- daemon.a.vpnd.log\nout of memory"
    assert ended.samples == ()
    assert ended.first_packet == {"a>b": 0.25}, "what came before it is kept"


def test_a_client_that_hangs_fails_the_trial_unless_the_emulator_lost_what_no_profile_asked_for(attempt: Try) -> None:
    impatient = replace(WORKLOAD, traffic=lambda ends, options: replace(_traffic(ends, options), timeout=0.1))
    for dropped, outcome in ((0, "failed"), (3, "void")):
        lab = FakeLab({}, [_report(dropped=dropped)])
        ended = attempt(client=Script("", NEVER), spec={"workload": impatient}, lab=lab, again=str(dropped))
        assert ended.outcome == outcome and ended.failure is not None
        lost = f"the emulator dropped {dropped} packets unasked; " if dropped else ""
        assert ended.failure.message == f"{lost}the program client did not end within 0.1 s"
        assert ended.host["pause_share"] == 0.0, "the machine was looked at all the same"


def test_output_that_cannot_be_read_fails_the_trial_and_says_how_the_client_ended(attempt: Try) -> None:
    ended = attempt(client=Script("nonsense", 0.01, 3))
    assert ended.outcome == "failed" and ended.failure is not None
    assert ended.failure.kind == "output-unreadable"
    assert ended.failure.message == ("the client printed no number (the client ended with code 3: client complains)")


def test_a_vpn_that_never_answers_fails_the_trial(attempt: Try) -> None:
    ended = attempt(silent=True)
    assert ended.outcome == "failed" and ended.failure is not None
    assert (ended.failure.kind, ended.failure.message) == ("not-ready", "no ping was answered")
    assert ended.phases["measure"] == 0.0


def test_a_trial_whose_lab_cannot_be_made_is_void(attempt: Try) -> None:
    ended = attempt(refuses="no memory left")
    assert ended.outcome == "void" and ended.failure is not None
    assert (ended.failure.message, ended.failure.hint) == ("no memory left", "free some")


def test_without_the_labs_server_nothing_goes_on(attempt: Try) -> None:
    with pytest.raises(LabError, match="server ended"):
        attempt(silent=True, is_gone=True)


def test_a_trial_whose_vpn_has_another_congestion_control_is_void(attempt: Try) -> None:
    sockets = "0 0 10.60.0.1:655 10.60.0.2:4711\n\t ts sack bbr wscale:7,7 rto:204\n"
    ended = attempt(lab=FakeLab({name: Node(name, FINE, sockets) for name in ("a", "b")}))
    assert ended.outcome == "void" and ended.failure is not None
    assert ended.failure.message == "the VPN's own TCP uses bbr, not cubic"


def _report(dropped: int = 0, late: float = 10.0) -> dict[str, Any]:
    """What the emulator of a link says: packets that its port dropped, and by how many microseconds all were late."""
    realised = {"offered": 9, "loss_runs": 0, "duplicated": 0, "corrupted": 0, "reordered": 0}
    lateness = {"count": 9, "p50": late, "p99": late, "max": late}
    way = {
        "name": "a to b",
        "lateness_us": lateness,
        "dropped": {"loss": 0, "memory": 0, "oversize": 0},
        "realised": realised | {"delay_us": {"count": 9, "mean": 0.0, "deviation": 0.0}},
    }
    return {"ports": [{"socket_dropped": dropped}], "directions": [way]}


@pytest.mark.parametrize(
    ("report", "reason"),
    [(_report(dropped=3), "the emulator dropped 3 packets unasked"), (_report(late=5e6), "late")],
)
def test_a_trial_whose_link_did_not_do_as_its_profile_says_is_void(
    attempt: Try, report: dict[str, Any], reason: str
) -> None:
    delay = replace(WORKLOAD, metrics=(Metric("rtt", "s", "round-trip time", "lower", primary=True, feels="delay"),))
    ended = attempt(lab=FakeLab({}, [report]), spec={"workload": delay})
    assert ended.outcome == "void" and ended.failure is not None
    assert reason in ended.failure.message
    assert ended.samples == ()
    assert [counts.offered for counts in ended.counted] == [9], "what the link counted is kept"


def test_a_sender_that_falls_short_for_no_reason_outside_is_a_result(attempt: Try) -> None:
    assert attempt(client=Script("starved", 0.01)).outcome == "ok"


def test_a_sender_that_falls_short_because_others_had_the_cores_is_void(attempt: Try) -> None:
    ended = attempt(client=Script("starved", 0.01), machine={"steal": 0.5})
    assert ended.outcome == "void" and ended.failure is not None
    assert ended.failure.message.startswith("the sender sent half")


def test_a_workload_that_leaves_its_metric_to_a_collector_fails_where_that_sees_nothing(attempt: Try) -> None:
    class Blind:
        async def begin(self) -> None:
            raise LabError("this kernel counts nothing", hint="another one does")

        async def sample(self) -> None: ...

        async def end(self) -> Collected:
            return Collected()

    collector = Collector("blind", "sees nothing", (GOODPUT,), lambda _: Blind())
    silent = replace(WORKLOAD, read=lambda outputs, options: Reading((), 0.02, 0.01), watch=("blind",))
    ended = attempt(spec={"workload": silent, "collectors": (collector,)})
    assert ended.outcome == "failed" and ended.failure is not None
    assert ended.failure.kind == "workload-failed"
    assert ended.failure.message == "goodput could not be watched: this kernel counts nothing"
    assert ended.notes == {"blind": "this kernel counts nothing"}


def test_a_trial_that_could_not_begin_is_an_attempt_too() -> None:
    trial = Trial(0, 1, Arm("made-up", "made-up"), PROFILE, PAIR, WorkloadUse("made-up", "made-up"))
    ended = refused(trial, NotReady("no such program", hint="install it"), 2)
    assert (ended.outcome, ended.number, ended.link) == ("failed", 2, "a>b")
    assert sum(ended.phases.values()) == 0
