"""Carries out a deployment's steps: writes files, runs commands, starts daemons, copies files between nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from tunnelmark.errors import LabError, NodeGone, NotReady, SetupFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.model.steps import Command, CommandSucceeds, CopyFile, Daemon, File, Step
from tunnelmark.run.supervisor import DaemonSupervisor

FOLDER = PurePosixPath("/run/tunnelmark")
"""The folder of a deployment's files on each node."""

STAGING = FOLDER / "staging"
"""The folder on the middle node in which the operator of the VPN makes certificates and keys for the nodes."""

STEP_TIMEOUT = 20.0
"""Seconds to wait at most for a daemon to become ready, or for a file that is copied to another node."""

LOOK_AGAIN = 0.1
"""Seconds between two looks at whether a daemon has converged, or between two runs of a repeated command."""

MORE_TIME = "a study gives more time by `ready_timeout`"
"""The part of an error's hint for steps that took too long."""


class DeploymentSteps:
    """Carries out the steps of one deployment.

    `env`: the environment of its commands. `logs_are`: where the logs are, in words, for the hints of errors.
    """

    def __init__(self, lab: Lab, supervisor: DaemonSupervisor, env: Mapping[str, str], logs_are: str) -> None:
        self._lab = lab
        self._supervisor = supervisor
        self._env = env
        self._logs_are = logs_are

    async def stage(self, commands: Sequence[Sequence[str]]) -> None:
        """Run commands that make keys and certificates, in turn, in the folder `STAGING` on the middle node.

        The folder is made first. Raises SetupFailed, with the command, if a command fails.
        """
        if commands:
            await self._lab.middle.write(str(STAGING / ".keep"), "")
        for argv in commands:
            await self.command(Command("", tuple(argv)), ("sh", "-c", 'cd "$0" && exec "$@"', str(STAGING), *argv))

    async def place(self, file: File) -> None:
        """Write a file to its node: its `content`, or a copy of the file `from_staging` in the folder `STAGING`."""
        content = await self._lab.middle.read(str(STAGING / file.from_staging)) if file.from_staging else file.content
        await self._lab.nodes[file.node].write(str(file.path), content, file.mode)

    async def carry_out(self, step: Step, patience: float) -> None:
        """Carry out a step; if it waits for something, it may take `patience` seconds.

        Raises SetupFailed if a command fails or a daemon cannot be started, NotReady if the step waits longer than
        `patience`, and DaemonDied if a daemon ends meanwhile.
        """
        match step:
            case Command():
                await self._supervisor.unless_dead(self.command(step))
            case Daemon():
                await self._supervisor.start(step, patience)
            case CopyFile():
                await self._supervisor.unless_dead(self._hand(step, patience))
            case CommandSucceeds():
                await self._supervisor.unless_dead(self.holds(step, time.monotonic() + patience))

    async def command(self, step: Command, argv: Sequence[str] = ()) -> None:
        """Run a command on its node; if the node is "", on the middle node, through which all links run.

        `argv`: if not empty, it is run instead of the step's own. Raises SetupFailed with the command's output if the
        exit code is not 0.
        """
        node = self._lab.nodes[step.node] if step.node else self._lab.middle
        try:
            done = await node.run(argv or step.argv, timeout=step.timeout, stdin=step.stdin, env=self._env)
        except NodeGone:  # the laboratory's own failure
            raise
        except LabError as error:
            raise SetupFailed(f"{step.argv[0]}: {error.message}", hint="is its package installed?") from error
        if done.code != 0:
            raise SetupFailed(
                f"`{' '.join(step.argv)}` on {node.name} ended with code {done.code}: {(done.stderr or done.stdout).strip()}",
                hint="`tunnelmark lab up` and `lab shell` let you try the command by hand",
            )

    async def holds(self, one: CommandSucceeds, deadline: float) -> None:
        """Run a command again and again until its exit code is 0; NotReady at the deadline (monotonic seconds)."""
        said = ""
        while time.monotonic() < deadline:
            try:
                done = await self._lab.nodes[one.node].run(one.argv, timeout=STEP_TIMEOUT, env=self._env)
            except NodeGone:  # the laboratory's own failure
                raise
            except LabError as error:  # the VPN's own command hangs
                said = error.message
                continue
            if done.code == 0:
                return
            said = (done.stderr or done.stdout).strip()[-300:]
            await asyncio.sleep(LOOK_AGAIN)
        raise NotReady(
            f"`{' '.join(one.argv)}` on {one.node} did not end with 0 in time",
            hint=f"it said last: {said}" if said else MORE_TIME,
        )

    async def _hand(self, step: CopyFile, patience: float) -> None:
        source = self._lab.nodes[step.source]
        try:
            await source.until({"kind": "file", "path": str(step.path)}, patience)
        except NodeGone:  # the laboratory's own failure
            raise
        except LabError:
            raise NotReady(
                f"{step.node} needs the file {step.path} of {step.source}, which was not there within {patience:g} s",
                hint=f"the logs of its daemons are {self._logs_are}",
            ) from None
        await self._lab.nodes[step.node].write(str(step.to), await source.read(str(step.path)), step.mode)
