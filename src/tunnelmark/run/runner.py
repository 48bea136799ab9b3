"""The block loop: takes the trials of a plan in their order, one at a time, and hands each attempt on."""

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
from tunnelmark.plan.model import Arm, Plan, Trial, WorkloadUse
from tunnelmark.plan.order import again, link_seed
from tunnelmark.plan.routes import crossed
from tunnelmark.run.collectors import base as watch
from tunnelmark.run.collectors import collectors
from tunnelmark.run.measurement import TrialSpec
from tunnelmark.run.trial import PreparedTrial, prepare, refused
from tunnelmark.vpns.base import Driver
from tunnelmark.workloads.base import Asset, Endpoints, Workload

BETWEEN = 0.35
"""Seconds that a trial takes in addition to its traffic, for the first estimate; the run itself measures them."""

ROUND_TRIPS = 15
"""More for each round trip of its path: routes, handshakes, iperf3's own exchanges, and what is lost of them. That is the mean
of 135 trials of `cascade` over 120 and 240 ms; the median is 11."""

_HALVES = 4  # blocks from which on the links are looked at in the middle, too


class ProgressListener(Protocol):
    """Who wants to know how the run goes."""

    def begin(self, trial: Trial) -> None:
        """A trial begins."""

    def phase(self, trial: Trial, name: str) -> None:
        """A trial, the one that has begun or one that is prepared for later, is in another phase (`model.attempt.PHASES`)."""

    def end(self, attempt: Attempt) -> None:
        """A trial has ended, and its attempt is safe on the disk."""

    def block(self, attempts: Sequence[Attempt]) -> None:
        """All trials of a block have had their first attempt in this session; these are what came of them."""

    def more(self, trials: Sequence[Trial]) -> None:
        """A block is added, in place of one with void trials."""

    def longer(self, trials: Sequence[Trial]) -> None:
        """The plan has these trials, too, because its ratios are not precise yet or there is time."""


class LinkStates(Protocol):
    """What is known of the links, which were looked at before the trials."""

    def trouble(self, trial: Trial) -> str | None:
        """Why a trial's link is not what it says; None if it is."""

    async def again(self, trial: Trial) -> None:
        """Look once more at a trial's link, if that may be done yet."""

    async def halfway(self) -> None:
        """Look at all links in the middle of the run."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the names in a plan refer to: drivers, workloads, collectors; and the machine's socket buffer limit in bytes."""

    drivers: Mapping[str, Driver[Any]]
    workloads: Mapping[str, Workload[Any]]
    socket_buffer: int
    collectors: Mapping[str, watch.Collector] = field(default_factory=collectors)
    alone: bool = False  # on this machine only the lab runs

    def parts(self, plan: Plan, trial: Trial) -> TrialSpec:
        """What one trial is made with."""
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
        """The collectors of a workload's trials: those that were chosen, and those that it needs for its own metrics."""
        return tuple(self.collectors[name] for name in dict.fromkeys((*chosen, *workload.watch)))

    def due(self, trials: Sequence[Trial]) -> Iterator[Trial]:
        """Which of the trials to come must be prepared before the first of them is measured.

        A VPN that needs time to settle does so while earlier trials are measured. It is started between two
        trials, never during one, and an idle mesh sends a few packets a second on links of its own.
        """
        ahead = 0.0
        for place, trial in enumerate(trials[1:]):
            driver = self.drivers[trial.arm.vpn]
            waits = driver.start_of(len(trial.topology.nodes)) + driver.convergence_time
            if waits > ahead and not self.workloads[trial.use.workload].at_once:
                yield trial
            ahead += self.seconds(trials[place + 1])

    def part(self, arm: Arm) -> Requirement:
        """What must be installed for an arm."""
        driver = self.drivers[arm.vpn]
        part = driver.part(driver.options.model_validate(arm.options))
        # Two arms of one VPN then have programs of their own, and a record each.
        return replace(with_own(part, arm.programs), name=f"{part.name} ({arm.name})") if arm.programs else part

    def missing(self, arm: Arm) -> MissingPart | None:
        """Which program of an arm's VPN is not there, if any."""
        return status.missing(self.part(arm))

    def lacks(self, use: WorkloadUse) -> MissingPart | None:
        """Which program of a workload is not there, if any."""
        return status.missing(self.workloads[use.workload].part)

    def assets(self, plan: Plan) -> Iterator[tuple[Asset, str]]:
        """What the plan's workloads need beforehand, each with the recipe that brings its programs."""
        for use in plan.study.workloads:
            workload = self.workloads[use.workload]
            if self.lacks(use) is None:
                options = workload.options.model_validate(use.options)
                yield from ((asset, workload.recipe) for asset in workload.assets_with(options))

    def searches(self, use: WorkloadUse) -> bool:
        """Whether a workload looks for the most that a link carries."""
        workload = self.workloads[use.workload]
        return workload.searches(workload.options.model_validate(use.options))

    def seconds(self, trial: Trial) -> float:
        """Seconds of traffic that a trial plans, warm-up included."""
        workload = self.workloads[trial.use.workload]
        source, target = trial.topology.nodes[0], trial.topology.nodes[-1]
        nowhere = Endpoints.between(source, target)
        traffic = workload.traffic(nowhere, workload.options.model_validate(trial.use.options))
        return traffic.window + traffic.warmup

    def besides(self, trial: Trial) -> float:
        """Seconds that a trial is likely to take in addition to its traffic, without what a VPN needs to converge."""
        return BETWEEN + ROUND_TRIPS * round_trip(crossed(trial.topology, trial.profile))


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
    """Run every trial of the plan that needs an attempt yet; `tries` are those that there are, by the trial's id.

    What the laboratory spoils is tried again at the end of its block, and blocks that stay without a result are replaced,
    both as far as the study says. `ready` is called before each trial and may refuse by raising; `keep` makes an attempt
    safe before the next trial begins. Raw output of a trial goes to `raw/ID`. A trial whose link is not verified waits for
    the end of its block, and is void if it is not verified then. `calm` waits, within bounds, for other work to end.
    When all blocks were run, `more` says by which plan to go on: the same with further blocks; None: there are enough.
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
        if extra := await run.provable(run.ledger.replacement(number)):
            listener.more(extra)
            await run.block(extra, [])


class _Run:
    """A run in progress: what it is made with, and the deployments that are up already."""

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
        """Go on by `plan`, which has the trials `added` in addition."""
        self._plan = plan
        self.ledger.grow(plan)
        self._listener.longer(added)

    async def block(self, trials: Sequence[Trial], following: Sequence[Trial]) -> None:
        """Every trial of a block that has no attempt, and then those again that are void, in another order."""
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
        while wanting := [one for one in self.ledger.wanting(trials) if self._links.trouble(one) is None]:
            await self._calm()
            await self._in_turn(wanting, following)

    async def provable(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials whose link is verified, if need be by one more look."""
        await self._look_again(trials)
        return [trial for trial in trials if self._links.trouble(trial) is None]

    async def _look_again(self, trials: Sequence[Trial]) -> None:
        """Look once more at each link of these trials that is not verified."""
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
                    await prepared.end()  # its link was found outside since
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
