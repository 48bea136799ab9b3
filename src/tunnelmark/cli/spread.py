"""Runs a study over the workers of a cluster: chooses the missing blocks and the workers, and gathers the results."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tunnelmark import registry
from tunnelmark.cli import interrupts
from tunnelmark.cli.cluster_options import BlockTarget
from tunnelmark.cluster import certificates, dispatch, local_cluster, ssh_hosts
from tunnelmark.cluster.dispatch import Watcher, Way
from tunnelmark.cluster.tasks import BlockDone, WorkerFacts, differing, machine_of, programs_hash, study_of, task_of
from tunnelmark.errors import UsageError
from tunnelmark.lab.vm import kernel
from tunnelmark.plan.model import Study
from tunnelmark.record.gathered import GatheredRuns, asked_of, blocks_of
from tunnelmark.record.results import INPUTS
from tunnelmark.units import clock

BUSY = 0.5
"""A worker is left out if other work takes more cores than that when it joins.

It is not left out for that reason on counted time, or with `--no-wait`.
"""

STEAL = 0.1
"""A worker is left out, as for `BUSY`, if its hypervisor takes away more than this share of its cores."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How workers measure blocks.

    `wait`: a worker with much other work (`BUSY`, `STEAL`) gets no block. `measure`: each worker also measures
    its machine before and after a block, as `run` does (yardsticks, and what links carry).
    """

    wait: bool = True
    measure: bool = True


def begin(study: Study, folder: Path, where: BlockTarget, kernels: Sequence[str], console: Console, ways: Ways) -> None:
    """Measure a study over a cluster, and gather its blocks in a new folder.

    `kernels`: the release of the kernel that virtual machines on the workers boot, `("",)` for the distribution's
    current one; () if the workers measure with their own kernels. UsageError if the study cannot be spread: several
    kernels, a wanted precision, or `rate = 'auto'`.
    """
    if len(kernels) > 1:
        raise UsageError(
            "one run over a cluster has one kernel", hint="give --kernel once, and run it again for another"
        )
    if study.enough is not None:
        raise UsageError(
            "blocks of a cluster are measured at the same time, and cannot be added one by one until a precision is reached",
            hint="leave --precision, --time-budget and --max-blocks out, and state --blocks",
        )
    if any(profile.auto is not None for profile in study.profiles):
        raise UsageError(
            "rate = 'auto' means another rate on each machine, and blocks of one study must mean the same",
            hint="state one that every machine carries, such as --rate '200 Mbit/s'; `tunnelmark doctor --measure` says what one does",
        )
    if kernels == ("",):  # all workers boot the distribution's kernel that is current here
        kernels = (asyncio.run(kernel.current()),)
    asks = task_of(study, None, tuple(kernels))
    asked = {key: value for key, value in asdict(asks).items() if key != "inputs"}
    with GatheredRuns.begin(folder, study.inputs, asked) as gathered:
        _gather(study, gathered, folder, where, tuple(kernels), console, ways)


def go_on(folder: Path, where: BlockTarget, console: Console, ways: Ways) -> None:
    """Measure the blocks that a folder from `begin` still lacks, on the same or on other machines."""
    study = _begun(folder)
    with GatheredRuns(folder) as gathered:
        _gather(study, gathered, folder, where, tuple(gathered.asked["kernels"]), console, ways)


def left(folder: Path, console: Console) -> None:
    """Print which blocks a folder lacks, and change nothing."""
    study = _begun(folder)
    missing = _missing(study, blocks_of(folder))
    numbers = f": {', '.join(map(str, missing))}" if missing else ""
    console.print(f"{study.name}: {len(missing)} of {study.blocks} blocks to measure{numbers}", soft_wrap=True)


def _begun(folder: Path) -> Study:
    return study_of(asked_of(folder), folder / INPUTS, registry.catalogue())


def _missing(study: Study, there: frozenset[int]) -> list[int]:
    return [number for number in range(1, study.blocks + 1) if number not in there]


def _gather(
    study: Study,
    gathered: GatheredRuns,
    folder: Path,
    where: BlockTarget,
    kernels: tuple[str, ...],
    console: Console,
    ways: Ways,
) -> None:
    missing = _missing(study, gathered.blocks)
    again = f"tunnelmark run --resume {shlex.quote(str(folder))} {where.words()}"
    interrupts.goes_on(f"every finished block is kept. Go on with: {again}")
    console.print(
        f"{study.name}: {len(missing)} of {study.blocks} blocks to measure; results in {folder}", soft_wrap=True
    )
    if missing:
        listener = _Listener(console, gathered, counted=bool(kernels), wait=ways.wait)
        with _cluster(where, listener.left_out) as way:
            tasks = [task_of(study, number, kernels, measure=ways.measure, wait=ways.wait) for number in missing]
            watcher = Watcher(
                listener.done, listener.fit, listener.taken, listener.left_out, listener.waits, listener.held
            )
            asks = task_of(study, None, kernels)
            asyncio.run(dispatch.spread(tasks, asks, replace(way, at_once=None if kernels else 1), watcher))


class _Listener:
    """Decides which workers may measure, prints events, and stores blocks in the folder as they arrive.

    If the folder has blocks already, all further blocks must be measured with the same programs.
    """

    def __init__(self, console: Console, gathered: GatheredRuns, *, counted: bool, wait: bool) -> None:
        self._console, self._gathered, self._counted, self._wait = console, gathered, counted, wait
        begun = gathered.programs
        self._first = WorkerFacts("", begun, programs_hash(begun)) if begun is not None else None
        self._begun = time.monotonic()

    def fit(self, found: WorkerFacts, taken: Sequence[WorkerFacts]) -> str:
        """Return why the worker with the facts `found` may not measure; "" if it may.

        A worker may not measure if its programs differ from those of the first worker that may, if its machine has much
        other work, or if one of the workers that may measure already (`taken`) is on the same machine.
        """
        why = self._unfit(found, taken)
        if self._first is None and not why:
            self._first = found
        return why

    def _unfit(self, found: WorkerFacts, taken: Sequence[WorkerFacts]) -> str:
        if self._first is not None and found.programs != self._first.programs:
            return "; ".join(differing(self._first.environment, found.environment)) or "other programs"
        load = (found.environment.get("load") or {}).get("before") or {}
        cores = int(found.environment["machine"]["cores"])
        if self._counted:
            return ""
        if others := self._neighbours(found, taken):
            return f"it is on the same machine as {others[0]}, and a machine measures one block at a time"
        if not self._wait:
            return ""
        if load.get("busy", 0.0) > BUSY:
            return f"other work takes {load['busy']:.1f} of its {cores} cores"
        if load.get("steal", 0.0) > STEAL * cores:
            return f"its host takes {load['steal']:.1f} of its {cores} cores away"
        return ""

    def held(self, found: WorkerFacts, taken: Sequence[WorkerFacts]) -> bool:
        """Return whether the worker with the facts `found` must not be asked now.

        A question would disturb the measurement of another worker (one of `taken`) on the same machine.
        """
        return not self._counted and bool(self._neighbours(found, taken))

    def _neighbours(self, found: WorkerFacts, taken: Sequence[WorkerFacts]) -> list[str]:
        """Return the names of the workers on the same machine."""
        mine = machine_of(found.environment)
        return [each.worker for each in taken if machine_of(each.environment) == mine]

    def taken(self, found: WorkerFacts) -> None:
        machine = found.environment["machine"]
        self._say(f"worker {found.worker}: {machine['cores']} cores, {machine['cpu']}, Linux {machine['kernel']}")

    def left_out(self, name: str, why: str) -> None:
        self._say(f"worker {name} is left out: {why}", "yellow")

    def waits(self, why: str) -> None:
        self._say(why, "yellow")

    def done(self, block: BlockDone) -> None:
        if self._first is not None and not self._gathered.blocks:
            self._gathered.begun_with(self._first.environment)
        machine = machine_of(json.loads(block.environment))
        self._gathered.keep(machine, block.number, block.plan, block.environment, block.journal, block.raw)
        count = len(self._gathered.blocks)
        self._say(f"block {block.number} by worker {block.worker} in {clock(block.seconds)}; {count} blocks are there")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(f"  {clock(time.monotonic() - self._begun):>9}  {text}", style=style), soft_wrap=True)


@contextmanager
def _cluster(where: BlockTarget, said: Callable[[str, str], object]) -> Iterator[Way]:
    if where.hosts is not None:
        with (
            local_cluster.here(0) as (address, security),
            ssh_hosts.workers(ssh_hosts.read(where.hosts), address, security, said),
        ):
            yield Way(address, security)
        return
    if where.local is not None:
        with local_cluster.here(where.local) as (address, security):
            yield Way(address, security)
        return
    assert where.address is not None
    dispatch.require()
    yield Way(where.address, certificates.security(where.tls) if where.tls is not None else None)
