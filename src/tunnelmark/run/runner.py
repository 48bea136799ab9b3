"""Runs the trials of a plan block by block, one at a time, and hands on each attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tunnelmark.errors import MissingPart, TrialVoid, TunnelmarkError
from tunnelmark.host.programs import Requirement, with_own
from tunnelmark.lab.labs import Labs
from tunnelmark.model.attempt import UNVERIFIED, Attempt, folder_of
from tunnelmark.model.retries import Retries, RetryLedger
from tunnelmark.packages import status
from tunnelmark.plan.lengths import round_trip
from tunnelmark.plan.model import Arm, Plan, Study, Trial, WorkloadUse
from tunnelmark.plan.order import again, link_seed
from tunnelmark.plan.routes import crossed
from tunnelmark.run.collectors import base as watch
from tunnelmark.run.collectors import collectors
from tunnelmark.run.measurement import TrialSpec
from tunnelmark.run.trial import PreparedTrial, prepare, refused
from tunnelmark.vpns.base import Driver
from tunnelmark.workloads.base import Asset, Endpoints, Workload

BETWEEN = 0.35
"""Seconds that a trial takes in addition to its traffic: for the first estimate only; later the run measures them."""

ROUND_TRIPS = 15
"""How many round-trip times a trial takes in addition to its traffic: routes, handshakes, iperf3's exchanges, losses.

It is the mean of 135 trials of `cascade` over 120 and 240 ms; the median is 11.
"""

_HALVES = 4  # a run of at least so many blocks checks the links in the middle, too


class ProgressListener(Protocol):
    """Receives the progress of a run."""

    def begin(self, trial: Trial) -> None:
        """Note that a trial begins."""

    def phase(self, trial: Trial, name: str) -> None:
        """Note that a trial, begun or prepared for later, enters a phase (one of `model.attempt.PHASES`)."""

    def end(self, attempt: Attempt) -> None:
        """Note that an attempt at a trial has ended, and is written to the disk."""

    def block(self, attempts: Sequence[Attempt]) -> None:
        """Note that all trials of a block have had their first attempt.

        `attempts`: these first attempts, without those that an earlier session made.
        """

    def more(self, trials: Sequence[Trial]) -> None:
        """Note that a replacement block with these trials is added, because some blocks lack results."""

    def longer(self, trials: Sequence[Trial]) -> None:
        """Note that blocks with these trials are added: ratios are not precise yet, or there is time left."""


class LinkStates(Protocol):
    """The results of the link checks, which were made before the trials, and the means to repeat them."""

    def trouble(self, trial: Trial) -> str | None:
        """Return in words why a trial's link is not verified; None if it is."""

    async def again(self, trial: Trial) -> None:
        """Check a trial's link once more, if another check of it is allowed."""

    async def halfway(self) -> None:
        """Check all links again in the middle of the run."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The drivers, workloads and collectors that a plan names, and the machine's limit of a socket buffer in bytes."""

    drivers: Mapping[str, Driver[Any]]
    workloads: Mapping[str, Workload[Any]]
    socket_buffer: int
    collectors: Mapping[str, watch.Collector] = field(default_factory=collectors)
    alone: bool = False  # nothing but the lab runs on this machine

    def parts(self, plan: Plan, trial: Trial) -> TrialSpec:
        """Return the driver, the workload, their options and the limits with which one trial is made."""
        driver, workload = self.drivers[trial.arm.vpn], self.workloads[trial.use.workload]
        return TrialSpec(
            driver,
            driver.options.model_validate(trial.arm.options),
            workload,
            workload.options.model_validate(trial.use.options),
            float(plan.study.ready_timeout) + driver.start_of(len(trial.topology.nodes)),
            self.socket_buffer,
            self.watching(plan.study.watch, workload),
            self.alone,
            link_seed(plan.study.seed, trial.block),
        )

    def watching(self, chosen: Sequence[str], workload: Workload[Any]) -> tuple[watch.Collector, ...]:
        """Return the collectors of a workload's trials: the chosen ones, and those that its own metrics need."""
        return tuple(self.collectors[name] for name in dict.fromkeys((*chosen, *workload.watch)))

    def due(self, trials: Sequence[Trial]) -> Iterator[Trial]:
        """Return those of the coming trials whose VPN must be started before the trial `trials[0]` is measured.

        `trials`: the coming trials, in their order. A VPN that needs time to converge does so while earlier trials are
        measured. It is started between two trials, never during a trial, and the next trial waits until its nodes
        answer, so that the time of its first packet is that on a machine without other work. A VPN that converges disturbs a trial little:
        an idle mesh sends a few packets a second, on its own links.
        """
        ahead = 0.0
        for place, trial in enumerate(trials[1:]):
            driver = self.drivers[trial.arm.vpn]
            if driver.convergence_time > ahead and not self.workloads[trial.use.workload].at_once:
                yield trial
            ahead += self.seconds(trials[place + 1])

    def part(self, arm: Arm) -> Requirement:
        """Return the programs that must be installed for an arm."""
        driver = self.drivers[arm.vpn]
        part = driver.part(driver.options.model_validate(arm.options))
        # Then two arms of one VPN can have different programs, and each arm has its own record of them.
        return replace(with_own(part, arm.programs), name=f"{part.name} ({arm.name})") if arm.programs else part

    def missing(self, arm: Arm) -> MissingPart | None:
        """Return the error for a program of an arm's VPN that is not installed; None if all are installed."""
        return status.missing(self.part(arm))

    def lacks(self, use: WorkloadUse) -> MissingPart | None:
        """Return the error for a program of a workload that is not installed; None if all are installed."""
        return status.missing(self.workloads[use.workload].part)

    def installed(self, study: Study) -> Callable[[str, str], bool]:
        """Return whether all programs of an arm and of a workload (names in the study) are installed."""
        arms = {arm.name for arm in study.arms if self.missing(arm) is None}
        workloads = {use.name for use in study.workloads if self.lacks(use) is None}
        return lambda arm, workload: arm in arms and workload in workloads

    def assets(self, plan: Plan) -> Iterator[tuple[Asset, str]]:
        """Return the assets that the plan's workloads need, each with the recipe of its programs.

        Workloads whose programs are missing are left out.
        """
        for use in plan.study.workloads:
            workload = self.workloads[use.workload]
            if self.lacks(use) is None:
                options = workload.options.model_validate(use.options)
                yield from ((asset, workload.recipe) for asset in workload.assets_with(options))

    def searches(self, use: WorkloadUse) -> bool:
        """Return whether a workload searches for the highest rate that a link carries."""
        workload = self.workloads[use.workload]
        return workload.searches(workload.options.model_validate(use.options))

    def seconds(self, trial: Trial) -> float:
        """Return how many seconds of traffic a trial plans, warm-up included."""
        workload = self.workloads[trial.use.workload]
        source, target = trial.topology.nodes[0], trial.topology.nodes[-1]
        nowhere = Endpoints.between(source, target)
        traffic = workload.traffic(nowhere, workload.options.model_validate(trial.use.options))
        return traffic.window + traffic.warmup

    def besides(self, trial: Trial) -> float:
        """Estimate the seconds that a trial takes in addition to its traffic: its lab, and the VPN until it answers.

        Convergence after that is not in it, as other trials are measured meanwhile.
        """
        starts = self.drivers[trial.arm.vpn].start_of(len(trial.topology.nodes))
        return BETWEEN + starts + ROUND_TRIPS * round_trip(crossed(trial.topology, trial.profile))


async def carry_out(
    plan: Plan,
    context: RunContext,
    labs: Labs,
    raw: Path,
    *,
    tries: Mapping[str, Retries],
    ready: Callable[[], None],
    keep: Callable[[Attempt, Workload[Any]], object],
    listener: ProgressListener,
    links: LinkStates,
    calm: Callable[[], Awaitable[None]],
    more: Callable[[Plan], Plan | None] = lambda _: None,
) -> None:
    """Run every trial of the plan that still needs an attempt.

    Trials that the laboratory spoils are attempted again at the end of their block. Blocks that still lack results are
    replaced. The study limits the number of attempts (`attempts`) and of replacement blocks (`replacements`). A trial
    whose link is not verified waits for the end of its block. Its link is then checked once more, if another check is
    allowed, and the attempt is void if the link is still not verified.

    `context`: the drivers, workloads and collectors. `tries`: the attempts of earlier sessions, by the trial's id.
    `raw`: a trial's raw output goes to the subfolder of its id. `ready` is called before each trial, and may end the
    run by raising. `keep` saves an attempt before the next trial begins. `links`: which links are verified. `calm`
    waits, for a limited time, until other work on the machine ends. `more` is called when all blocks were run: it
    returns the plan with further blocks, or None if there are enough.
    """
    run = _Run(plan, context, labs, raw, RetryLedger(plan, tries), ready, keep, listener, links, calm)
    blocks = [[trial for trial in plan.trials if trial.block == block] for block in range(1, plan.study.blocks + 1)]
    for place, block in enumerate(blocks):
        if place == len(blocks) // 2 and len(blocks) >= _HALVES and run.ledger.new(block):
            await links.halfway()
        await run.block(block, run.ledger.new(blocks[place + 1]) if place + 1 < len(blocks) else [])
    while (longer := more(plan)) is not None:
        first, plan = plan.study.blocks + 1, longer
        added = [[one for one in plan.trials if one.block == block] for block in range(first, plan.study.blocks + 1)]
        run.longer(plan, [trial for block in added for trial in block])
        await links.halfway()
        for block, following in zip(added, [*added[1:], []], strict=True):
            await run.block(block, run.ledger.new(following))
    for number in range(1, plan.study.replacements + 1):
        if extra := await run.on_verified_links(run.ledger.replacement(number)):
            listener.more(extra)
            await run.block(extra, [])


class _Run:
    """A run in progress, with the deployments that were prepared ahead."""

    def __init__(
        self,
        plan: Plan,
        context: RunContext,
        labs: Labs,
        raw: Path,
        ledger: RetryLedger,
        ready: Callable[[], None],
        keep: Callable[[Attempt, Workload[Any]], object],
        listener: ProgressListener,
        links: LinkStates,
        calm: Callable[[], Awaitable[None]],
    ) -> None:
        self._plan, self._context, self._labs, self._raw = plan, context, labs, raw
        self._ready, self._keep, self._listener, self._links, self._calm = ready, keep, listener, links, calm
        self.ledger = ledger
        study = plan.study
        self._absent = {arm.name: missing for arm in study.arms if (missing := context.missing(arm)) is not None}
        self._lacking = {use.name: missing for use in study.workloads if (missing := context.lacks(use)) is not None}
        self._prepared: dict[str, PreparedTrial] = {}

    def longer(self, plan: Plan, added: Sequence[Trial]) -> None:
        """Continue with `plan`, which has the further trials `added`."""
        self._plan = plan
        self.ledger.grow(plan)
        self._listener.longer(added)

    async def block(self, trials: Sequence[Trial], following: Sequence[Trial]) -> None:
        """Run the trials of a block that have no attempt; then repeat the void ones, in another order.

        Those whose program was not installed in an earlier session are repeated as void ones are.
        """
        attempts: list[Attempt] = []
        new = self.ledger.new(trials)
        if new:
            await self._calm()
            waiting = [
                trial for trial in new if self._links.trouble(trial) is not None and not self._absent_part(trial)
            ]
            first = [trial for trial in new if trial not in waiting]
            attempts += await self._in_turn(first, following)
            await self._look_again(waiting)
            attempts += await self._in_turn(again(self._plan.study, waiting), following)
            self._listener.block(attempts)
        while wanting := [one for one in self.ledger.wanting(trials) if self._hindrance(one) is None]:
            await self._calm()
            await self._in_turn(wanting, following)

    async def on_verified_links(self, trials: Sequence[Trial]) -> list[Trial]:
        """Check each link that is not verified once more, and return the trials whose link is verified now."""
        await self._look_again(trials)
        return [trial for trial in trials if self._links.trouble(trial) is None]

    async def _look_again(self, trials: Sequence[Trial]) -> None:
        """Check each link of these trials once more that is not verified."""
        for trial in {(trial.profile.name, trial.topology.name): trial for trial in trials}.values():
            if self._links.trouble(trial) is not None:
                await self._links.again(trial)

    async def _in_turn(self, trials: Sequence[Trial], following: Sequence[Trial]) -> list[Attempt]:
        attempts = []
        for place, trial in enumerate(trials):
            self._ready()
            for coming in (trial, *self._context.due([*trials[place:], *following])):
                if self._hindrance(coming) is None and coming.id not in self._prepared:
                    self._prepared[coming.id] = await self._prepare(coming)
            self._listener.begin(trial)
            if (error := self._hindrance(trial)) is not None:
                if (prepared := self._prepared.pop(trial.id, None)) is not None:
                    await prepared.end()  # since then a check found its link outside of a tolerance
                ended = refused(trial, error, self.ledger.number(trial))
            else:
                ended = await self._prepared.pop(trial.id).measure()
            self._keep(ended, self._context.workloads[trial.use.workload])
            self.ledger.note(ended)
            self._listener.end(ended)
            attempts.append(ended)
        return attempts

    async def _prepare(self, trial: Trial) -> PreparedTrial:
        number = self.ledger.number(trial)
        raw = self._raw / folder_of(trial.id, number)
        parts = replace(self._context.parts(self._plan, trial), told=partial(self._listener.phase, trial))
        return await prepare(self._labs, trial, parts, raw, number)

    def _absent_part(self, trial: Trial) -> TunnelmarkError | None:
        return self._absent.get(trial.arm.name) or self._lacking.get(trial.use.name)

    def _hindrance(self, trial: Trial) -> TunnelmarkError | None:
        if (missing := self._absent_part(trial)) is not None:
            return missing
        reason = self._links.trouble(trial)
        return None if reason is None else TrialVoid(reason, hint=UNVERIFIED)
