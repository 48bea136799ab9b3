"""Carries out the traffic of one trial on a deployment that has converged, collects the results, and checks them.

All that is known so far is kept in `Evidence`, so that nothing is lost if an error ends the trial.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunnelmark.errors import OutputUnreadable, TrialError, TrialVoid, WorkloadFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.linux.congestion import CUBIC
from tunnelmark.model import emulator_health, grades, path_looks
from tunnelmark.model.attempt import PHASES, LinkCounts
from tunnelmark.model.clock_offsets import apart
from tunnelmark.model.grades import Graded
from tunnelmark.model.metrics import Sample
from tunnelmark.model.options import Options
from tunnelmark.plan.study_arms import DIRECT
from tunnelmark.run import interference
from tunnelmark.run.assets import folder_of
from tunnelmark.run.collection import Collection, shifted
from tunnelmark.run.collection_over_hosts import CollectionOverHosts, collection_of
from tunnelmark.run.collectors import traffic_path
from tunnelmark.run.collectors.base import Collector
from tunnelmark.run.deploy import RunningDeployment
from tunnelmark.run.events import taken_down
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.vpns.base import Driver
from tunnelmark.workloads.base import Endpoints, Reading, Workload

_SOCKETS = "the program sets it itself, or the lab's way to set it failed: see `congestion_control` in environment.json"
_LATE = "keep the machine quiet, or ask for a lower rate; the emulator's reports are in emulator.middle.out"
_ALGORITHM = re.compile(r"^\s+(?:ts |sack |ecn |ecnseen |fastopen )*(\w+) ", re.MULTILINE)


@dataclass(slots=True)
class Clock:
    """Measures how many wall seconds each phase of a trial takes (`model.attempt.PHASES`)."""

    phases: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    told: Callable[[str], object] = lambda _: None
    """Called with the name of each phase that begins."""

    @contextmanager
    def phase(self, name: str, shown: str = "") -> Iterator[None]:
        """Add the seconds of the body of the `with` statement to a phase, even if the body raises.

        `shown`: the name that progress shows; "" for the phase's own.
        """
        begun = time.monotonic()
        self.told(shown or name)
        try:
            yield
        finally:
            self.phases[name] += time.monotonic() - begun

    def move(self, source: str, target: str, seconds: float) -> None:
        """Move seconds from the phase `source` to the phase `target`."""
        self.phases[source] -= seconds
        self.phases[target] += seconds


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """All that a trial is made with: its driver and workload, their options, and limits."""

    driver: Driver[Any]
    options: Options
    workload: Workload[Any]
    use_options: Options
    ready_timeout: float
    """Seconds within which the deployment must answer pings in every direction; it may take as long to converge."""

    socket_buffer: int
    """Bytes of the largest socket buffer that a program may ask for."""

    collectors: tuple[Collector, ...] = ()

    alone: bool = False
    """True on a machine where only the lab runs: then all other work (that of kernel threads) counts as the lab's."""

    link_seed: int = 0
    """The seed of the links' random decisions: the same for all arms of a block."""

    told: Callable[[str], object] = lambda _: None
    """Called with the name of each phase that begins."""


@dataclass(slots=True)
class Evidence:
    """What is known of a trial so far; fields that `Attempt` has as well mean the same."""

    samples: tuple[Sample, ...] = ()
    first_packet: dict[str, float] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    away: frozenset[str] = frozenset()
    """The middle node's ports to interfaces that the trial's own events take down."""

    counted: tuple[LinkCounts, ...] = ()
    graded: Graded | None = None
    driven: float = 0.0
    """Seconds that the client ran."""


@dataclass(frozen=True, slots=True)
class Course:
    """The lab, the deployment and the two ends of a trial's traffic, and the folder of its raw output."""

    lab: Lab
    tunnel: RunningDeployment
    source: str
    target: str
    raw: Path


async def measure(course: Course, spec: TrialSpec, clock: Clock, evidence: Evidence) -> None:
    """Carry out a trial's traffic, and put its samples into `evidence`.

    The lab stays up. If there is no result, it raises TrialVoid if the laboratory is to blame for that, and another
    TrialError if the VPN or the workload is to blame.
    """
    lab, tunnel = course.lab, course.tunnel
    with clock.phase("server"):
        await _check_tunnel_sockets(lab)
        traffic = spec.workload.traffic(_endpoints(course, spec), spec.use_options)
        evidence.away = taken_down(lab, traffic.events)
        further_ends = traffic.nodes - {course.source, course.target}
        runner = WorkloadRunner(lab, tunnel, traffic, course.raw, spec.workload.recipe)
        collection = await collection_of(
            lab, tunnel, course.source, course.target, course.raw, spec.collectors, further_ends
        )
        evidence.notes, evidence.limits = collection.notes, collection.limits
        await tunnel.unless_dead(runner.serve())
    try:
        seconds, watched = await _drive(course, runner, collection, clock, evidence, alone=spec.alone)
        with clock.phase("collect"):
            await tunnel.unless_dead(runner.finish())
            reading = _read(runner, spec)
    except (WorkloadFailed, OutputUnreadable) as error:  # the link or the machine may be the reason that a client hung
        planned = traffic.window + traffic.warmup
        evidence.host = grades.of_at_least(evidence.host, evidence.driven, planned)
        try:
            evidence.graded = await _grade(lab, spec, evidence)
        except TrialVoid as void:
            raise TrialVoid(f"{void.message}; {error.message}", hint=void.hint) from error
        raise
    if clocks := await lab.clocks():
        evidence.notes["clocks"] = (
            f"the nodes' clocks differ by at most {1e3 * apart(clocks.values()):.2g} ms, and a delay one way may be wrong by that"
        )
    with clock.phase("collect"):
        evidence.graded = graded = await _grade(lab, spec, evidence)
    inside = min(reading.window + reading.warmup, seconds)
    warmup = min(reading.warmup, inside)
    clock.move("collect", "warmup", warmup)
    clock.move("collect", "measure", inside - warmup)
    _check_workload_sockets(reading.congestion_control, str(getattr(spec.use_options, "congestion_control", CUBIC)))
    _check_sender(reading.starved, grades.outside(graded, bare=spec.driver.name == DIRECT))
    watched = shifted(watched, reading.warmup)
    if not spec.workload.at_once and not traffic.events:  # an event may change the path
        check_path(lab, tunnel, watched, among_ends=bool(further_ends))
    _check_result(spec, watched, collection)
    evidence.samples = (*reading.samples, *watched)


def _endpoints(course: Course, spec: TrialSpec) -> Endpoints:
    tunnel, source, target = course.tunnel, course.source, course.target
    return Endpoints(
        source,
        target,
        tunnel.address[source],
        tunnel.address[target],
        spec.socket_buffer,
        tunnel.address,
        tunnel.interface,
        {asset.name: folder_of(asset) for asset in spec.workload.assets_with(spec.use_options)},
        relay=course.lab.topology.relay,
        bare=tunnel.bare,
    )


async def _drive(
    course: Course,
    runner: WorkloadRunner,
    collection: Collection | CollectionOverHosts,
    clock: Clock,
    evidence: Evidence,
    *,
    alone: bool,
) -> tuple[float, tuple[Sample, ...]]:
    """Run the client while the collectors watch; return how many seconds it ran, and the collectors' samples."""
    lab = course.lab
    with clock.phase("server"):
        before = interference.glance(lab.cpu_seconds())
        await collection.begin()
    begun = time.monotonic()
    try:
        with clock.phase("server"):
            await lab.zero()
            before = interference.glance(lab.cpu_seconds())
        begun = time.monotonic()
        with clock.phase("collect", shown="measure"):  # moved to `warmup` and `measure` once the result was read
            await course.tunnel.unless_dead(runner.drive())
    finally:
        evidence.driven = seconds = time.monotonic() - begun
        # The host is measured up to here: the collectors' evaluation, which follows, disturbs nothing any more.
        after = interference.glance(lab.cpu_seconds())
        with clock.phase("collect"):
            watched = await collection.end()
            if isinstance(collection, CollectionOverHosts):
                evidence.host = collection.machine
            else:
                stood_still = await lab.stood_still(before.time, after.time)
                evidence.host = interference.between(before, after, alone=alone) | stood_still
    return seconds, watched


async def _grade(lab: Lab, spec: TrialSpec, evidence: Evidence) -> Graded:
    """Return the trial's grade, by what the link and the machine did; raises TrialVoid if it is void."""
    reports = await lab.link_reports()
    evidence.counted = LinkCounts.of(reports)
    if (trouble := emulator_health.trouble(reports, evidence.away)) is not None:  # unasked drops
        raise TrialVoid(trouble, hint=_LATE)
    metrics = spec.workload.metrics_with(spec.use_options)
    graded = grades.graded(metrics, lab.profile, grades.met(reports, evidence.host))
    if graded.grade == "void":
        evidence.graded = graded
        raise TrialVoid("; ".join(graded.causes), hint=_LATE)
    return graded


def _read(runner: WorkloadRunner, spec: TrialSpec) -> Reading:
    """Read the result from the workload's output; an error's message also says how the client ended."""
    try:
        return spec.workload.read(runner.outputs(), spec.use_options)
    except TrialError as error:
        raise type(error)(f"{error.message} ({runner.how_it_ended()})", hint=error.hint) from error


async def _check_tunnel_sockets(lab: Lab) -> None:
    """Raise TrialVoid if a TCP connection of the VPN itself does not use the lab's congestion control."""
    shown = await asyncio.gather(*(node.run(["ss", "-tinH", "state", "established"]) for node in lab.nodes.values()))
    used = {name for done in shown for name in _ALGORITHM.findall(done.stdout)}
    if used - {CUBIC}:
        raise TrialVoid(f"the VPN's own TCP uses {', '.join(sorted(used))}, not {CUBIC}", hint=_SOCKETS)


def _check_workload_sockets(used: Sequence[str], wanted: str) -> None:
    """Raise TrialVoid if the workload's TCP used another congestion control than `wanted`."""
    if wrong := sorted(set(used) - {wanted}):
        raise TrialVoid(f"the workload's TCP used {', '.join(wrong)}, not {wanted}", hint=_SOCKETS)


def _check_sender(starved: str, outside: str) -> None:
    """Raise TrialVoid if the sender missed its rate and there is a reason `outside` its node; else it is a result."""
    if starved and outside:
        raise TrialVoid(f"{starved}: {outside}", hint="ask for a lower rate, or try on a quiet machine")


def check_path(lab: Lab, tunnel: RunningDeployment, watched: Sequence[Sample], *, among_ends: bool = False) -> None:
    """Raise WorkloadFailed if the traffic did not take the path (direct or relayed) by which the arm is named.

    Such a trial has failed; it is not void. A void trial is attempted again, and to attempt it until the path is right
    would select results in the VPN's favour. On the bare link, where no VPN chooses the path, TrialVoid is raised.
    Where routers filter, a direct arm may use any path it finds.

    `watched`: the collectors' samples, of which the shares by path over the whole traffic are used.
    `among_ends`: the workload has further ends, one of which may be the relay, so a relayed arm is not checked.
    """
    seen = {sample.metric: sample.value for sample in watched if sample.time is None}
    relayed = tunnel.relayed
    if relayed and among_ends:
        return
    stray = seen.get(path_looks.DIRECT if relayed else path_looks.RELAYED, 0.0)
    if stray >= path_looks.STRAY and (relayed or not lab.topology.filtered):
        way, called = ("directly", "relayed") if relayed else ("through a third node", "direct")
        blamed = TrialVoid if tunnel.bare else WorkloadFailed
        raise blamed(
            f"{stray:.0f} % of the bytes went {way}, and the arm is a {called} one",
            hint=f"{traffic_path.FILE} says who sent to whom; where a path needs longer to be found, the daemons' logs say why",
        )


def _check_result(spec: TrialSpec, watched: Sequence[Sample], collection: Collection | CollectionOverHosts) -> None:
    """Raise an error if a collector did not deliver a primary metric that the workload leaves to it.

    It is TrialVoid if the machine did not let the collector work, else WorkloadFailed.
    """
    own = {metric.name for metric in spec.workload.metrics_with(spec.use_options) if metric.primary}
    promised = {metric.name for collector in spec.collectors for metric in collector.metrics}
    absent = sorted((own & promised) - {sample.metric for sample in watched if sample.time is None})
    if absent:
        reasons = [collection.notes.get(name) for name in (*absent, *spec.workload.watch)]
        why = next((reason for reason in reasons if reason), "no reason is known")
        refused = any(name in collection.refused for name in spec.workload.watch)
        raise (TrialVoid if refused else WorkloadFailed)(
            f"{', '.join(absent)} could not be watched: {why}", hint="`tunnelmark doctor` may say more"
        )
