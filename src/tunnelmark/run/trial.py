"""One trial from a fresh lab to its samples: lab, deployment, readiness, traffic, reading, end.

Whatever goes wrong becomes data: the attempt says which error, with its hint and the end of the
daemons' logs. Nothing is tried twice here; the loop may attempt a trial again that the laboratory has spoilt.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError, TrialError, TrialVoid, TunnelmarkError, WorkloadFailed
from tunnelmark.lab.client import Lab, LabClient
from tunnelmark.linux.congestion import CUBIC
from tunnelmark.model import emulator_health, grades
from tunnelmark.model.attempt import PHASES, Attempt, Failure, LinkCounts
from tunnelmark.model.metrics import Sample
from tunnelmark.plan.load import DIRECT
from tunnelmark.plan.model import Trial
from tunnelmark.run import interference
from tunnelmark.run.assets import folder_of
from tunnelmark.run.collection import Collection, shifted
from tunnelmark.run.collectors.base import Collector, CollectorContext
from tunnelmark.run.deploy import log_end
from tunnelmark.run.deploy import prepare as deployed
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.vpns.base import Driver, Options
from tunnelmark.workloads.base import Endpoints, Workload

_SOCKETS = "the program sets it itself, or the lab's way to set it failed: see `congestion_control` in environment.json"
_LATE = "keep the machine quiet, or ask for a lower rate; the emulator's reports are in wire.middle.out"
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
class TrialSpec:
    """What a trial is made with: the driver and workload it names, their options, and the machine's limits."""

    driver: Driver[Any]
    options: Options
    workload: Workload[Any]
    use_options: Options
    ready_timeout: float
    socket_buffer: int
    collectors: tuple[Collector, ...] = ()
    alone: bool = False  # on a machine where only the lab runs: what threads of the kernel do is done for the lab
    link_seed: int = 0  # what emulated links do to packets is the same for all arms of a block


class PreparedTrial:
    """A trial whose lab and deployment stand, to be measured now or when others have been.

    Made by `prepare`; `measure` gives the attempt, whatever has failed since.
    """

    def __init__(self, keeper: LabClient, trial: Trial, parts: TrialSpec, raw: Path, number: int) -> None:
        self._keeper = keeper
        self._number = number
        self._trial = trial
        self._parts = parts
        self._raw = raw
        self._clock = Clock()
        self._found: dict[str, Any] = {
            "samples": (),
            "host": {},
            "first_packet": {},
            "notes": {},
            "graded": None,
            "limits": {},
        }
        self._error: TrialError | LabError | None = None
        self._lab: Lab | None = None
        self._settling: asyncio.Future[None] | None = None

    async def prepare(self) -> None:
        """Lab, deployment, readiness; a failure is kept for `measure`. Settling goes on by itself."""
        self._raw.mkdir(parents=True)
        self._keeper.watch()
        try:
            lab = self._lab = await self._keeper.up(
                self._trial.topology,
                self._trial.profile,
                seed=self._parts.link_seed,
                raw=self._raw,
                ipv6=self._trial.arm.underlay == "ipv6",
            )
            self._clock.lap("lab")
            parts, arm = self._parts, self._trial.arm
            normalised, ipv6 = arm.normalised, arm.underlay == "ipv6"
            tunnel = self._tunnel = deployed(
                lab, parts.driver, parts.options, self._raw, normalised=normalised, ipv6=ipv6
            )
            await tunnel.start()
            self._clock.lap("deploy")
            await tunnel.answer(self._parts.ready_timeout)
            self._found["first_packet"] = dict(tunnel.first_packet)
            self._clock.lap("ready")
            self._settling = asyncio.ensure_future(tunnel.wait_converged(self._parts.ready_timeout))
            self._settling.add_done_callback(_seen)  # a run that is stopped asks for it no more
        except (TrialError, LabError) as error:
            await self._keeper.check()  # without a keeper nothing can go on, and this trial is not to blame
            self._error = error

    async def measure(self) -> Attempt:
        """Wait until the deployment has settled, carry out the traffic, end the lab."""
        source, target = self._trial.topology.nodes[0], self._trial.topology.nodes[-1]
        started, self._clock.last = time.time(), time.monotonic()
        try:
            if self._error is not None:
                raise self._error
            assert self._lab is not None and self._settling is not None
            await self._settling
            self._clock.lap("settle")
            context = CollectorContext(self._lab, self._tunnel, source, target, self._raw)
            self._found["samples"] = await _measure(context, self._parts, self._clock, self._found)
        except (TrialError, LabError) as error:
            await self._keeper.check()
            self._error = error
            self._clock.lap("collect")
        await self.end()
        self._clock.lap("lab")
        failure = None
        if self._error is not None:
            failure = Failure(self._error.kind, self._error.message, self._error.hint, log_end(self._raw))
        return Attempt(
            trial=self._trial,
            outcome="ok" if failure is None else "void" if isinstance(self._error, TrialVoid) else "failed",
            link=f"{source}>{target}",
            started=started,
            phases=self._clock.phases,
            failure=failure,
            raw=tuple(sorted(path.name for path in self._raw.iterdir())),
            number=self._number,
            **self._found,
        )

    async def end(self) -> None:
        """End the lab, if it stands."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        if self._lab is not None:
            await self._lab.down()
            self._lab = None


def _seen(ended: asyncio.Future[None]) -> None:
    """Take note of how it ended; else asyncio prints an error that nobody has asked for."""
    if not ended.cancelled():
        ended.exception()


async def prepare(keeper: LabClient, trial: Trial, parts: TrialSpec, raw: Path, number: int = 1) -> PreparedTrial:
    """Make a trial's lab and deployment; its raw output goes to the folder `raw`, which must be new."""
    prepared = PreparedTrial(keeper, trial, parts, raw, number)
    await prepared.prepare()
    return prepared


async def _measure(
    context: CollectorContext, parts: TrialSpec, clock: Clock, found: dict[str, Any]
) -> tuple[Sample, ...]:
    lab, tunnel, raw, source, target = context.lab, context.tunnel, context.raw, context.source, context.target
    wanted = str(getattr(parts.use_options, "congestion_control", CUBIC))
    await _gate_tunnel_sockets(lab)
    endpoints = Endpoints(
        source,
        target,
        tunnel.address[source],
        tunnel.address[target],
        parts.socket_buffer,
        tunnel.address,
        tunnel.interface,
        {asset.name: folder_of(asset) for asset in parts.workload.assets_with(parts.use_options)},
    )
    traffic = parts.workload.traffic(endpoints, parts.use_options)
    stage = WorkloadRunner(lab, tunnel, traffic, raw, parts.workload.recipe)
    watching = Collection(context, parts.collectors)
    found["notes"], found["limits"] = watching.notes, watching.limits
    await tunnel.unless_dead(stage.serve())
    clock.lap("server")
    before = interference.glance(lab.cpu_seconds())
    await watching.begin()
    try:
        await lab.zero()
        before = interference.glance(lab.cpu_seconds())
        clock.lap("server")
        await tunnel.unless_dead(stage.drive())
    finally:
        spent = clock.lap("collect")
        after = interference.glance(
            lab.cpu_seconds()
        )  # what collectors make of what they saw disturbs nothing any more
        watched = await watching.end()
        stood_still = await lab.stood_still(before.time, after.time)
        found["host"] = interference.between(before, after, alone=parts.alone) | stood_still
        clock.lap("collect")
    await tunnel.unless_dead(stage.finish())
    clock.lap("collect")
    reports = await lab.link_reports()
    found["counted"] = LinkCounts.of(reports)
    _gate_link(reports)
    found["graded"] = graded = grades.graded(
        parts.workload.metrics_with(parts.use_options), lab.profile, grades.met(reports, found["host"])
    )
    if graded.grade == "void":
        raise TrialVoid("; ".join(graded.causes), hint=_LATE)
    try:
        reading = parts.workload.read(stage.outputs(), parts.use_options)
    except TrialError as error:
        raise type(error)(f"{error.message} ({stage.how_it_ended()})", hint=error.hint) from error
    inside = min(reading.window + reading.warmup, spent)
    clock.phases["collect"] -= inside
    clock.phases["warmup"] += min(reading.warmup, inside)
    clock.phases["measure"] += inside - min(reading.warmup, inside)
    _gate_workload_sockets(reading.congestion_control, wanted)
    _gate_sender(reading.starved, grades.outside(graded, bare=parts.driver.name == DIRECT))
    watched = shifted(watched, reading.warmup)
    _has_result(parts, watched, watching.notes)
    return (*reading.samples, *watched)


def _has_result(parts: TrialSpec, watched: Sequence[Sample], notes: Mapping[str, str]) -> None:
    """WorkloadFailed if what the workload leaves to collectors was not seen."""
    own = {metric.name for metric in parts.workload.metrics_with(parts.use_options) if metric.primary}
    promised = {metric.name for collector in parts.collectors for metric in collector.metrics}
    absent = sorted((own & promised) - {sample.metric for sample in watched if sample.time is None})
    if absent:
        reasons = [notes.get(name) for name in (*absent, *parts.workload.watch)]
        why = next((reason for reason in reasons if reason), "no reason is known")
        raise WorkloadFailed(
            f"{', '.join(absent)} could not be watched: {why}", hint="`tunnelmark doctor` may say more"
        )


async def _gate_tunnel_sockets(lab: Lab) -> None:
    """Void the trial if a TCP connection of the VPN itself does not use the lab's congestion control."""
    shown = await asyncio.gather(*(node.run(["ss", "-tinH", "state", "established"]) for node in lab.nodes.values()))
    used = {name for done in shown for name in _ALGORITHM.findall(done.stdout)}
    if used - {CUBIC}:
        raise TrialVoid(f"the VPN's own TCP uses {', '.join(sorted(used))}, not {CUBIC}", hint=_SOCKETS)


def _gate_link(reports: list[dict[str, Any]]) -> None:
    """Void the trial if packets were lost that no profile asked for: no metric can be used then."""
    if (said := emulator_health.trouble(reports)) is not None:
        raise TrialVoid(said, hint=_LATE)


def _gate_workload_sockets(used: Sequence[str], wanted: str) -> None:
    if wrong := sorted(set(used) - {wanted}):
        raise TrialVoid(f"the workload's TCP used {', '.join(wrong)}, not {wanted}", hint=_SOCKETS)


def _gate_sender(starved: str, outside: str) -> None:
    """Void the trial if its sender fell short and something outside of its nodes explains it; else that is a result."""
    if starved and outside:
        raise TrialVoid(f"{starved}: {outside}", hint="ask for a lower rate, or try on a quiet machine")


def refused(trial: Trial, error: TunnelmarkError, number: int = 1) -> Attempt:
    """The attempt of a trial that could not even begin: a part of it is missing, or its link is not what it says."""
    return Attempt(
        trial=trial,
        outcome="void" if isinstance(error, TrialVoid) else "failed",
        link=f"{trial.topology.nodes[0]}>{trial.topology.nodes[-1]}",
        started=time.time(),
        phases=dict.fromkeys(PHASES, 0.0),
        failure=Failure(error.kind, error.message, error.hint),
        number=number,
    )
