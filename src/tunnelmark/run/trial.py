"""Carries out an attempt at a trial: makes a lab, deploys the VPN, waits until it answers, runs traffic, ends the lab.

Errors become data: the attempt has the error with its hint, and the ends of the daemons' logs. Nothing is repeated
here: `run.runner` attempts a trial again that the laboratory has spoilt.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tunnelmark.errors import (
    DaemonDied,
    LabError,
    NotReady,
    SetupFailed,
    TrialError,
    TrialVoid,
    TunnelmarkError,
    WorkloadFailed,
)
from tunnelmark.lab.labs import Lab, Labs
from tunnelmark.model import emulator_health, grades
from tunnelmark.model.attempt import PHASES, Attempt, Failure
from tunnelmark.plan.model import Trial
from tunnelmark.plan.study_arms import DIRECT
from tunnelmark.run import deploy
from tunnelmark.run.measurement import Clock, Course, Evidence, TrialSpec, measure
from tunnelmark.run.tunnel import RunningDeployment

_LOST = "look at the host and the network to it"
_SPOILT = "keep the machine quiet; the emulator's reports are in emulator.middle.out"


class PreparedTrial:
    """A trial whose lab and deployment are up. It can be measured at once, or after other trials.

    The function `prepare` makes it. After that, call either `measure` or `end`: both end the lab. If the trial fails,
    also in `prepare`, `measure` returns an attempt that holds the error.
    """

    def __init__(self, labs: Labs, trial: Trial, spec: TrialSpec, raw: Path, number: int) -> None:
        self._labs = labs
        self._number = number
        self._trial = trial
        self._spec = spec
        self._raw = raw
        self._clock = Clock(told=spec.told)
        self._evidence = Evidence()
        self._begun = time.monotonic()
        self._error: TrialError | LabError | None = None
        self._lab: Lab | None = None
        self._tunnel: RunningDeployment | None = None
        self._converging: asyncio.Future[None] | None = None

    async def prepare(self) -> None:
        """Make the lab, deploy the VPN, and wait until it answers; an error is kept, and `measure` reports it.

        The deployment may converge later, in the background. Raises LabError only if no further trial is possible.
        """
        self._raw.mkdir(parents=True)
        self._labs.watch()
        try:
            await self._deploy()
        except (TrialError, LabError) as error:
            self._error = await self._blamed(error)

    async def _deploy(self) -> None:
        trial, spec = self._trial, self._spec
        ipv6 = trial.arm.underlay == "ipv6"
        with self._clock.phase("lab"):
            # Direct shows what the links carry, so its routers are open: nothing could be sent to a node behind address
            # translation.
            bare = trial.arm.vpn == DIRECT
            lab = self._lab = await self._labs.up(
                trial.topology.open if bare else trial.topology,
                trial.profile,
                seed=spec.link_seed,
                raw=self._raw,
                ipv6=ipv6,
                sysctls=trial.arm.sysctls,
            )
        with self._clock.phase("deploy"):
            tunnel = self._tunnel = deploy.prepare(
                lab,
                spec.driver,
                spec.options,
                self._raw,
                normalised=trial.arm.normalised,
                ipv6=ipv6,
                inner=trial.arm.inner,
                cascade=trial.arm.cascade,
                behind_gateways=trial.arm.behind_gateways,
                programs=trial.arm.programs,
            )
            await tunnel.start()
        with self._clock.phase("ready"):
            await tunnel.answer(spec.ready_timeout)
            self._evidence.first_packet = dict(tunnel.first_packet)
        self._converging = asyncio.create_task(tunnel.wait_converged(spec.ready_timeout))
        self._converging.add_done_callback(_seen)  # a run that is stopped never asks for its result

    async def measure(self) -> Attempt:
        """Wait until the deployment has converged, carry out the traffic, end the lab, and return the attempt.

        Raises LabError only if no further trial is possible.
        """
        source, target = self._trial.topology.nodes[0], self._trial.topology.nodes[-1]
        started = time.time()
        try:
            await self._traffic(source, target)
        except (TrialError, LabError) as error:
            self._error = await self._blamed(error)
        evidence, why, left = self._evidence, self._error, dict[str, str]()
        with self._clock.phase("lab"):
            try:
                await self.end()
            except LabError as late:  # the result is there; whether another trial is possible is asked before that one
                left = {"lab": f"the lab did not end: {late.message}"}
        return Attempt(
            trial=self._trial,
            outcome="ok" if why is None else "void" if isinstance(why, TrialVoid) else "failed",
            link=f"{source}>{target}",
            started=started,
            phases=self._clock.phases,
            samples=evidence.samples,
            first_packet=evidence.first_packet,
            host=evidence.host,
            failure=None if why is None else Failure(why.kind, why.message, why.hint, deploy.log_end(self._raw)),
            raw=tuple(sorted(path.name for path in self._raw.iterdir())),
            notes={**evidence.notes, **left},
            number=self._number,
            graded=evidence.graded,
            counted=evidence.counted,
            limits=evidence.limits,
        )

    async def _traffic(self, source: str, target: str) -> None:
        if self._error is not None:
            raise self._error
        assert self._lab is not None and self._tunnel is not None and self._converging is not None
        with self._clock.phase("settle"):
            try:
                if not self._spec.workload.at_once:
                    await self._converging
            except NotReady:
                # Through routers that filter, a VPN may never find a direct path: then the path that it has is
                # measured.
                if not self._trial.topology.filtered:
                    raise
        traffic = Course(self._lab, self._tunnel, source, target, self._raw)
        await measure(traffic, self._spec, self._clock, self._evidence)
        # Traffic may end well although the host at its other end was lost meanwhile.
        if (why := await self._lab.lost()) is not None:
            raise TrialVoid(why, hint=_LOST)

    async def _blamed(self, error: TrialError | LabError) -> TrialError | LabError:
        """Return the error, or a TrialVoid in its place if the lab failed, lost a host, or spoilt the trial.

        Raises LabError if no further trial is possible.
        """
        why = await self._labs.check()
        if self._lab is not None:
            why = await self._lab.lost() or why
        if why is not None:
            return TrialVoid(why, hint=_LOST)
        if isinstance(error, LabError):
            return TrialVoid(error.message, hint=error.hint)
        if error is not self._error and self._unasked(error) and (spoilt := await self._spoilt()):
            return TrialVoid(f"{spoilt}; {error.message}", hint=_SPOILT)
        return error

    def _unasked(self, error: TrialError) -> bool:
        """Return whether nothing has checked yet if link or machine caused this error.

        `measure` checks that itself if the traffic failed.
        """
        before = isinstance(error, WorkloadFailed) and not self._evidence.host
        return before or isinstance(error, (NotReady, SetupFailed, DaemonDied))

    async def _spoilt(self) -> str:
        """Say what the links or machine did since the trial began that may explain any failure; "" if nothing does."""
        if self._lab is None:
            return ""
        try:
            if (lost := emulator_health.trouble(await self._lab.link_reports(), self._evidence.away)) is not None:
                return lost
            host = (
                await self._stood_still(self._lab) or self._evidence.host
            )  # `_evidence.host` is used if the nodes are on other hosts
        except LabError as ended:
            return ended.message
        return grades.spoilt(self._lab.profile, host)

    async def _stood_still(self, lab: Lab) -> dict[str, float]:
        """Return the machine's pauses since the trial began (see `Attempt.host`); {} if they were not measured.

        `pause_share` counts them as a share of at least `ready_timeout`: a deployment that fails early, such as by a
        daemon that dies at its first traffic, is judged by the same limit as one that waits for all of that time.
        """
        now = time.monotonic()
        host = await lab.stood_still(self._begun, now)
        return grades.of_at_least(host, now - self._begun, self._spec.ready_timeout)

    async def end(self) -> None:
        """End the lab, if it is up. Call it for a trial that is not measured; `measure` calls it itself."""
        if self._converging is not None:
            self._converging.cancel()
            await asyncio.gather(self._converging, return_exceptions=True)
        if self._lab is not None:
            await self._lab.down()
            self._lab = None


def _seen(ended: asyncio.Future[None]) -> None:
    """Read the future's exception, so that asyncio does not print it as one that was never retrieved."""
    if not ended.cancelled():
        ended.exception()


async def prepare(labs: Labs, trial: Trial, spec: TrialSpec, raw: Path, number: int = 1) -> PreparedTrial:
    """Make a trial's lab, start its VPN, wait until it answers, and return the trial, ready to be measured.

    The caller ends the lab by calling the trial's `measure` or `end`. If the caller calls neither, the lab ends at the
    end of the `async with` statement of `labs`. An error of the trial is not raised here, but kept for `measure`;
    LabError is raised only if no further trial is possible.
    `raw`: the folder for raw output, which must not exist yet. `number`: which attempt at the trial it is, from 1.
    """
    prepared = PreparedTrial(labs, trial, spec, raw, number)
    await prepared.prepare()
    return prepared


def refused(trial: Trial, error: TunnelmarkError, number: int = 1) -> Attempt:
    """Return the attempt at a trial that could not begin, because a program is missing or its link is not verified.

    The attempt is void if `error` is TrialVoid, else failed. `number`: which attempt at the trial it is, from 1.
    """
    return Attempt(
        trial=trial,
        outcome="void" if isinstance(error, TrialVoid) else "failed",
        link=f"{trial.topology.nodes[0]}>{trial.topology.nodes[-1]}",
        started=time.time(),
        phases=dict.fromkeys(PHASES, 0.0),
        failure=Failure(error.kind, error.message, error.hint),
        number=number,
    )
