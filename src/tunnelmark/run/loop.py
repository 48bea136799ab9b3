"""The block loop: takes the trials of a plan in their order, one at a time, and hands each attempt on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tunnelmark.errors import MissingPart, TrialVoid, TunnelmarkError
from tunnelmark.lab.lab import Keeper
from tunnelmark.lab.programs import Part
from tunnelmark.peers import standing
from tunnelmark.plan.model import Arm, Plan, Trial, Use
from tunnelmark.run.outcome import UNPROVED, Attempt
from tunnelmark.run.trial import Parts, Prepared, prepare, refused
from tunnelmark.run.watch import base as watch
from tunnelmark.run.watch import watchers
from tunnelmark.vpns.base import Driver
from tunnelmark.workloads.base import Asset, Endpoints, Workload

BETWEEN = 0.35
"""Seconds that a trial takes beside its traffic, for the first estimate; the run itself measures them."""


class Watcher(Protocol):
    """Who wants to know how the run goes."""

    def begin(self, trial: Trial) -> None:
        """A trial begins."""

    def end(self, attempt: Attempt) -> None:
        """It has ended, and its attempt is safe on the disk."""


@dataclass(frozen=True, slots=True)
class Kit:
    """What the names in a plan stand for: drivers, workloads, watchers, and the machine's socket buffer limit in bytes."""

    drivers: Mapping[str, Driver]
    workloads: Mapping[str, Workload]
    socket_buffer: int
    watchers: Mapping[str, watch.Watcher] = field(default_factory=watchers)

    def parts(self, plan: Plan, trial: Trial) -> Parts:
        """What one trial is made with."""
        driver, workload = self.drivers[trial.arm.vpn], self.workloads[trial.use.workload]
        return Parts(
            driver,
            driver.options.model_validate(trial.arm.options),
            workload,
            workload.options.model_validate(trial.use.options),
            float(plan.study.ready_timeout) + driver.start_of(len(trial.topology.nodes)),
            self.socket_buffer,
            self.watching(plan.study.watch, workload),
            link_seed(plan.study.seed, trial.block),
        )

    def watching(self, chosen: Sequence[str], workload: Workload) -> tuple[watch.Watcher, ...]:
        """The watchers of a workload's trials: those that were chosen, and those that it needs for its own metrics."""
        return tuple(self.watchers[name] for name in dict.fromkeys((*chosen, *workload.watch)))

    def due(self, trials: Sequence[Trial]) -> Iterator[Trial]:
        """Those of the trials to come that must be prepared before the first is measured.

        A VPN that needs time to settle does so while earlier trials are measured. It is started between two
        trials, never during one, and an idle mesh sends a few packets a second on links of its own.
        """
        ahead = 0.0
        for place, trial in enumerate(trials[1:]):
            driver = self.drivers[trial.arm.vpn]
            if driver.start_of(len(trial.topology.nodes)) + driver.settling > ahead:
                yield trial
            ahead += self.seconds(trials[place + 1])

    def part(self, arm: Arm) -> Part:
        """What must be installed for an arm."""
        driver = self.drivers[arm.vpn]
        return driver.part(driver.options.model_validate(arm.options))

    def missing(self, arm: Arm) -> MissingPart | None:
        """Which program of an arm's VPN is not there, if any."""
        return standing.missing(self.part(arm))

    def lacks(self, use: Use) -> MissingPart | None:
        """Which program of a workload is not there, if any."""
        return standing.missing(self.workloads[use.workload].part)

    def assets(self, plan: Plan) -> Iterator[tuple[Asset, str]]:
        """What the plan's workloads need beforehand, each with the recipe that brings its programs."""
        for use in plan.study.workloads:
            workload = self.workloads[use.workload]
            if self.lacks(use) is None:
                options = workload.options.model_validate(use.options)
                yield from ((asset, workload.peer) for asset in workload.assets_with(options))

    def seconds(self, trial: Trial) -> float:
        """Seconds of traffic that a trial plans, warm-up included."""
        workload = self.workloads[trial.use.workload]
        source, target = trial.topology.nodes[0], trial.topology.nodes[-1]
        nowhere = Endpoints.between(source, target)
        traffic = workload.traffic(nowhere, workload.options.model_validate(trial.use.options))
        return traffic.window + traffic.warmup


async def carry_out(
    plan: Plan,
    kit: Kit,
    keeper: Keeper,
    raw: Path,
    *,
    done: Collection[str],
    ready: Callable[[], None],
    keep: Callable[[Attempt, Workload], object],
    watcher: Watcher,
    unproved: Mapping[tuple[str, str], str],
) -> None:
    """Run every trial of the plan that is not `done` yet (by id).

    `ready` is called before each trial and may refuse by raising; `keep` makes an attempt safe before
    the next trial begins. Raw output of a trial goes to `raw/ID`. Trials of a profile and topology that
    are `unproved` are void, for the reason given there, and not run.
    """
    absent = {arm.name: missing for arm in plan.study.arms if (missing := kit.missing(arm)) is not None}
    lacking = {use.name: missing for use in plan.study.workloads if (missing := kit.lacks(use)) is not None}

    def hindrance(trial: Trial) -> TunnelmarkError | None:
        reason = unproved.get((trial.profile.name, trial.topology.name))
        return (
            TrialVoid(reason, hint=UNPROVED)
            if reason is not None
            else absent.get(trial.arm.name) or lacking.get(trial.use.name)
        )

    todo = [trial for trial in plan.trials if trial.id not in done]
    prepared: dict[str, Prepared] = {}
    for place, trial in enumerate(todo):
        ready()
        for coming in (trial, *kit.due(todo[place:])):
            if hindrance(coming) is None and coming.id not in prepared:
                prepared[coming.id] = await prepare(keeper, coming, kit.parts(plan, coming), raw / coming.id)
        watcher.begin(trial)
        if (error := hindrance(trial)) is not None:
            ended = refused(trial, error)
        else:
            ended = await prepared.pop(trial.id).measure()
        keep(ended, kit.workloads[trial.use.workload])
        watcher.end(ended)


def link_seed(seed: int, block: int) -> int:
    """The seed of emulated links in a block: all arms of a block meet the same link, and each block meets another."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{block}/link".encode()).digest()[:6], "big")
