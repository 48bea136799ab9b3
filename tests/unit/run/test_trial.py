"""A trial becomes an attempt, however it goes: a result, a failure of the VPN or its workload, or a void of the laboratory.

The lab, its nodes and the tunnel are stand-ins that do as a test says (`attempt` makes an attempt with them); everything that decides is the real code.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest

from tunnelmark.errors import LabError, NodeGone, NotReady, TrialVoid, WorkloadFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.model import path_looks
from tunnelmark.model.attempt import PHASES
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, Daemon, Step, UdpPort
from tunnelmark.plan.model import Arm, Trial, WorkloadUse
from tunnelmark.run.collectors.base import Collected, Collector
from tunnelmark.run.deployment_steps import DeploymentSteps
from tunnelmark.run.measurement import check_path
from tunnelmark.run.supervisor import DaemonSupervisor
from tunnelmark.run.trial import refused
from tunnelmark.workloads.base import Endpoints, Event, Reading, Traffic
from unit.run.trial_stand_ins import (
    FINE,
    GOODPUT,
    NEVER,
    PAIR,
    PROFILE,
    WORKLOAD,
    FakeLab,
    Node,
    Script,
    Try,
    Tunnel,
    report,
    traffic,
)

IMPATIENT = replace(WORKLOAD, traffic=lambda ends, options: replace(traffic(ends, options), timeout=0.1))


def _unready(ends: Endpoints, options: Options) -> Traffic:
    given = traffic(ends, options)
    return replace(given, servers=(replace(given.servers[0], ready=UdpPort(4000)),))


UNREADY = replace(WORKLOAD, traffic=_unready)
"""Its server must open a port before the client is started."""

PAUSED = "the machine paused for 50.0 % of the time (good up to 5 %)"


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


@pytest.mark.parametrize(("events", "outcome"), [((), "failed"), ((Event(NEVER, "partition-heal", "a"),), "ok")])
def test_only_a_trial_in_which_nothing_happens_must_go_the_way_that_its_arm_is_called_by(
    attempt: Try, monkeypatch: pytest.MonkeyPatch, events: tuple[Event, ...], outcome: str
) -> None:
    def stray(*_: object, **__: object) -> None:
        raise WorkloadFailed("went another way", hint="see the logs")

    monkeypatch.setattr("tunnelmark.run.measurement.check_path", stray)
    disturbed = replace(WORKLOAD, traffic=lambda *given: replace(traffic(*given), events=events))
    assert attempt(spec={"workload": disturbed}).outcome == outcome


@pytest.mark.parametrize(
    ("relayed", "way", "called"), [(False, "through a third node", "direct"), (True, "directly", "relayed")]
)
def test_a_vpn_that_goes_another_way_than_its_arm_is_called_by_has_failed_and_is_not_tried_until_it_does(
    tmp_path: Path, relayed: bool, way: str, called: str
) -> None:
    lab: Any = FakeLab({})
    tunnel: Any = Tunnel(lab, tmp_path, silent=False)
    tunnel.relayed = relayed
    seen = [Sample(name, 50.0) for name in (path_looks.DIRECT, path_looks.RELAYED)]
    with pytest.raises(WorkloadFailed, match=f"50 % of the bytes went {way}, and the arm is a {called} one"):
        check_path(lab, tunnel, seen)


def test_a_bare_link_that_goes_another_way_is_the_laboratory_s_fault(tmp_path: Path) -> None:
    lab: Any = FakeLab({})
    tunnel: Any = Tunnel(lab, tmp_path, silent=False)
    tunnel.bare = True
    with pytest.raises(TrialVoid, match="through a third node"):
        check_path(lab, tunnel, [Sample(path_looks.RELAYED, 50.0)])


def test_a_daemon_that_dies_fails_the_trial_with_the_end_of_its_log(attempt: Try) -> None:
    ended = attempt(vpnd=Script("out of memory\n", 0.02, 1), client=Script("", NEVER))
    assert ended.outcome == "failed" and ended.failure is not None
    assert ended.failure.message == "vpnd on a ended by itself with exit code 1"
    assert ended.failure.log == "--- daemon.a.vpnd.log\nout of memory"
    assert ended.samples == ()
    assert ended.first_packet == {"a>b": 0.25}, "what came before it is kept"


def test_a_client_that_hangs_fails_the_trial_unless_the_emulator_lost_what_no_profile_asked_for(attempt: Try) -> None:
    for dropped, outcome in ((0, "failed"), (3, "void")):
        lab = FakeLab({}, [report(dropped=dropped)])
        ended = attempt(client=Script("", NEVER), spec={"workload": IMPATIENT}, lab=lab, again=str(dropped))
        assert ended.outcome == outcome and ended.failure is not None
        lost = f"the emulator dropped {dropped} packets unasked; " if dropped else ""
        assert ended.failure.message == f"{lost}the program client did not end within 0.1 s"
        assert ended.host["pause_share"] == 0.0, "the machine was looked at all the same"


@pytest.mark.parametrize(
    ("does", "raises", "given", "message"),
    [
        ({"client": Script("", NEVER)}, {}, {"spec": {"workload": IMPATIENT}}, "the program client did not end"),
        ({}, {}, {"silent": True}, "no ping was answered"),
        ({"vpnd": Script("", 0.0, 1)}, {}, {}, "vpnd on a ended by itself with exit code 1"),
        ({}, {"vpnd": LabError("it took too long")}, {}, "vpnd: it took too long"),
        ({}, {"until": LabError("too late")}, {"spec": {"workload": UNREADY}}, "the server server never became ready"),
    ],
)
def test_what_fails_while_the_machine_stands_still_is_void(
    attempt: Try, does: dict[str, Script], raises: dict[str, LabError], given: dict[str, Any], message: str
) -> None:
    def ended(paused: float) -> tuple[str, str]:
        nodes = {name: Node(name, FINE | does, raises=raises) for name in ("a", "b")}
        spec = {"ready_timeout": 1e-6, **given.get("spec", {})}  # less than it took: its time is the share's
        found = attempt(lab=FakeLab(nodes, paused=paused), again=str(paused), **{**given, "spec": spec})
        assert found.failure is not None
        return found.outcome, found.failure.message

    outcome, said = ended(0.5)
    assert outcome == "void"
    assert said.startswith(f"{PAUSED}; {message}")
    outcome, said = ended(0.1)
    assert outcome == "failed", "a tenth of the time explains no failure"
    assert said.startswith(message)


def test_what_fails_at_once_has_failed_though_the_machine_stood_still_in_those_milliseconds(attempt: Try) -> None:
    """They are few of the seconds that a deployment is given: where a machine pauses now and then, the failure would never be seen."""
    nodes = {name: Node(name, FINE, raises={"vpnd": LabError("no such interface")}) for name in ("a", "b")}
    ended = attempt(lab=FakeLab(nodes, paused=0.9), spec={"ready_timeout": 600.0})
    assert ended.outcome == "failed" and ended.failure is not None
    assert ended.failure.message.startswith("vpnd: no such interface")


def test_a_daemon_that_dies_as_its_traffic_begins_has_failed_though_the_machine_stood_still_meanwhile(
    attempt: Try,
) -> None:
    """The traffic's time is short then, too, and a single pause is a large share of it."""
    given = {"vpnd": Script("out of memory\n", 0.02, 1), "client": Script("", NEVER)}
    ended = attempt(
        lab=FakeLab({name: Node(name, FINE | given) for name in ("a", "b")}, paused=0.9), spec={"ready_timeout": 600.0}
    )
    assert ended.host["pause_share"] == 0.9, "its traffic had begun"
    assert ended.outcome == "failed" and ended.failure is not None
    assert ended.failure.message.startswith("vpnd on a ended by itself")


def test_a_client_that_fails_at_once_has_failed_though_the_machine_stood_still_in_those_milliseconds(
    attempt: Try,
) -> None:
    long = replace(WORKLOAD, traffic=lambda *given: replace(traffic(*given), window=60.0))
    for does, outcome in (({"client": Script("connection refused\n", 0.0, 1)}, "failed"), ({}, "void")):
        nodes = {name: Node(name, FINE | does) for name in ("a", "b")}
        ended = attempt(lab=FakeLab(nodes, paused=0.9), spec={"workload": long}, again=outcome)
        assert ended.outcome == outcome, "one that ran is judged by all of the time that it ran"
        assert ended.failure is not None
        assert ("the machine paused" in ended.failure.message) == (outcome == "void")


@pytest.mark.parametrize("made", [{"silent": True}, {"vpnd": Script("", 0.0, 1)}])
def test_a_deployment_that_fails_on_a_link_that_loses_what_no_profile_asked_for_is_void(
    attempt: Try, made: dict[str, Any]
) -> None:
    ended = attempt(lab=FakeLab({}, [report(dropped=3)]), **made)
    assert ended.outcome == "void" and ended.failure is not None
    assert ended.failure.message.startswith("the emulator dropped 3 packets unasked; ")


@pytest.mark.parametrize(
    ("node", "kind", "outcome"), [("b", "link-down", "ok"), ("*", "power-off", "ok"), ("a", "link-down", "void")]
)
def test_what_is_sent_to_a_node_whose_link_an_event_took_down_is_no_loss_of_the_emulator_s(
    attempt: Try, monkeypatch: pytest.MonkeyPatch, node: str, kind: Any, outcome: str
) -> None:
    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr("tunnelmark.run.workload_runner.happen", nothing)
    flapping = replace(WORKLOAD, traffic=lambda *given: replace(traffic(*given), events=(Event(0.0, kind, node),)))
    ended = attempt(lab=FakeLab({}, [report(tx_dropped=21, refused=2)]), spec={"workload": flapping})
    assert ended.outcome == outcome, ended.failure


def gone(what: str) -> FakeLab:
    """A lab of which a node ends when that program is started, or when something is waited for ("until")."""
    raises = {what: NodeGone("node a is gone", hint="see dmesg")}
    return FakeLab({name: Node(name, FINE, raises=raises) for name in ("a", "b")})


@pytest.mark.parametrize("what", ["vpnd", "server", "client", "prepare", "until"])
def test_a_node_that_ends_makes_the_trial_void_and_is_no_failure_of_the_vpn(attempt: Try, what: str) -> None:
    prepared = replace(WORKLOAD, traffic=lambda *given: replace(_unready(*given), setup=(Command("a", ("prepare",)),)))
    ended = attempt(lab=gone(what), spec={"workload": prepared})
    assert ended.outcome == "void" and ended.failure is not None
    assert ended.failure.message == "node a is gone"


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (Command("a", ("prepare",)), "prepare"),
        (CopyFile("a", PurePosixPath("/key"), "b", PurePosixPath("/key")), "until"),
        (Daemon("a", "vpnd", ("vpnd",), ready=UdpPort(4000)), "until"),
    ],
)
def test_a_node_that_ends_during_a_step_is_not_taken_for_the_step_s_failure(
    tmp_path: Path, step: Step, what: str
) -> None:
    lab = cast(Lab, gone(what))

    async def carry_out() -> None:
        await DeploymentSteps(lab, DaemonSupervisor(lab, tmp_path, {}), {}, "").carry_out(step, 1.0)

    with pytest.raises(NodeGone):
        asyncio.run(carry_out())


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


def test_a_command_that_is_asked_again_and_hangs_is_the_vpn_s_failure(tmp_path: Path) -> None:
    """As it was, the laboratory was blamed, and the trial was tried again."""
    node = Node("a", {}, raises={"vpn-status": LabError("vpn-status did not end within 20 s", hint="look at it")})
    lab = cast(Lab, FakeLab({"a": node}))

    async def ask() -> None:
        steps = DeploymentSteps(lab, DaemonSupervisor(lab, tmp_path, {}), {}, "")
        await steps.holds(CommandSucceeds("a", ("vpn-status",)), time.monotonic() + 0.02)

    with pytest.raises(NotReady, match="did not end with 0 in time") as failure:
        asyncio.run(ask())
    assert "did not end within 20 s" in (failure.value.hint or "")


def test_a_trial_whose_lab_cannot_be_made_is_void(attempt: Try) -> None:
    ended = attempt(refuses="no memory left")
    assert ended.outcome == "void" and ended.failure is not None
    assert (ended.failure.message, ended.failure.hint) == ("no memory left", "free some")


def test_a_result_is_not_lost_if_the_kernel_takes_long_to_end_the_lab(attempt: Try) -> None:
    class SlowToEnd(FakeLab):
        async def down(self) -> float:
            await super().down()
            raise LabError("the lab server did not answer 'down' within 12 s", hint="the machine is overloaded")

    ended = attempt(lab=SlowToEnd({}))
    assert (ended.outcome, ended.samples) == ("ok", (Sample("goodput", 42.0),))
    assert "did not answer 'down'" in ended.notes["lab"]


def test_without_the_labs_server_nothing_goes_on(attempt: Try) -> None:
    with pytest.raises(LabError, match="server ended"):
        attempt(silent=True, is_gone=True)


def test_a_trial_whose_vpn_has_another_congestion_control_is_void(attempt: Try) -> None:
    sockets = "0 0 10.60.0.1:655 10.60.0.2:4711\n\t ts sack bbr wscale:7,7 rto:204\n"
    ended = attempt(lab=FakeLab({name: Node(name, FINE, sockets) for name in ("a", "b")}))
    assert ended.outcome == "void" and ended.failure is not None
    assert ended.failure.message == "the VPN's own TCP uses bbr, not cubic"


@pytest.mark.parametrize(
    ("said", "reason"),
    [(report(dropped=3), "the emulator dropped 3 packets unasked"), (report(late=5e6), "late")],
)
def test_a_trial_whose_link_did_not_do_as_its_profile_says_is_void(
    attempt: Try, said: dict[str, Any], reason: str
) -> None:
    delay = replace(WORKLOAD, metrics=(Metric("rtt", "s", "round-trip time", "lower", primary=True, feels="delay"),))
    ended = attempt(lab=FakeLab({}, [said]), spec={"workload": delay})
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


class Sees:
    """Sees nothing for a reason, or is refused."""

    def __init__(self, error: LabError | None, notes: dict[str, str]) -> None:
        self._error, self._notes = error, notes

    async def begin(self) -> None:
        if self._error is not None:
            raise self._error

    async def sample(self) -> None: ...

    async def end(self) -> Collected:
        return Collected(notes=self._notes)


@pytest.mark.parametrize(
    ("error", "notes", "outcome", "kind"),
    [
        (LabError("this kernel counts nothing", hint="another one does"), {}, "void", "trial-void"),
        (None, {"goodput": "less than 64 KiB arrived inside"}, "failed", "workload-failed"),
    ],
)
def test_a_workload_that_leaves_its_metric_to_a_collector_is_void_where_that_is_refused_and_fails_where_too_little_came(
    attempt: Try, error: LabError | None, notes: dict[str, str], outcome: str, kind: str
) -> None:
    collector = Collector("blind", "sees nothing", (GOODPUT,), lambda _: Sees(error, notes))
    silent = replace(WORKLOAD, read=lambda outputs, options: Reading((), 0.02, 0.01), watch=("blind",))
    ended = attempt(spec={"workload": silent, "collectors": (collector,)})
    assert ended.outcome == outcome and ended.failure is not None
    why = error.message if error is not None else notes["goodput"]
    assert (ended.failure.kind, ended.failure.message) == (kind, f"goodput could not be watched: {why}")
    assert ended.notes == ({"blind": why} if error is not None else notes)


def test_a_trial_that_could_not_begin_is_an_attempt_too() -> None:
    trial = Trial(0, 1, Arm("made-up", "made-up"), PROFILE, PAIR, WorkloadUse("made-up", "made-up"))
    ended = refused(trial, NotReady("no such program", hint="install it"), 2)
    assert (ended.outcome, ended.number, ended.link) == ("failed", 2, "a>b")
    assert sum(ended.phases.values()) == 0
