"""Hands blocks to the workers of a Dask cluster and their results on, until every block is measured.

Dask carries them there and back, tells which workers there are, and keeps connections, keys and logs. Which worker gets which block is decided
here: one that was found fit and is free, for a block is measured alone on its machine, and Dask would give a worker as many as it thinks that it can
queue. A block whose worker is lost goes to another one; if the scheduler itself is lost, all that are not there yet are handed out again by the next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from tunnelmark.cluster import nodes, worker
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import LabError, MissingPart, TunnelmarkError

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.security import Security

LOOK = 0.5
"""Seconds between two looks at which workers there are."""

PATIENCE = 120.0
"""Seconds for which a scheduler may be away, or no worker be there, before the command gives up; what was measured stays."""

_CONNECT = 5  # seconds for one try to connect

AGAIN = 30.0
"""Seconds after which a worker that was left out is asked once more: other work on its machine may have ended."""

_LOGS = "DASK_LOGGING__DISTRIBUTED"  # Dask's own variable for how much it says

_NUMBER = re.compile(r"[\d.]+")

TRIES = 3
"""How often a block may fail by the fault of the machines that it was on, before the command gives up."""


@dataclass(frozen=True, slots=True)
class Way:
    """How blocks get to workers: the scheduler's address, its TLS; what measures a block and tells a worker's facts (others for tests and simulations).

    `at_once`: blocks that a worker measures at a time; None: as many as it has threads. `patience` and `again`, after which one that was left out is asked once more, in seconds.
    """

    address: str
    security: Security | None = None
    measure: Callable[[BlockTask, str], BlockDone] = worker.measure
    facts: Callable[[BlockTask, str], WorkerFacts] = worker.facts
    at_once: int | None = 1
    patience: float = PATIENCE
    again: float = AGAIN


@dataclass
class Watcher:
    """Who hears what happens: a block that is there, a worker that is taken, or left out with the reason, and waiting."""

    done: Callable[[BlockDone], object]
    fit: Callable[[WorkerFacts, Sequence[WorkerFacts]], str]
    """Why a worker may not measure next to those that do; "" where it may."""
    taken: Callable[[WorkerFacts], object] = lambda _: None
    left_out: Callable[[str, str], object] = lambda *_: None
    waits: Callable[[str], object] = lambda _: None


@dataclass
class _State:
    """What is known over all connections: blocks that are not there yet, and how often each has failed."""

    left: dict[int, BlockTask]
    failed: dict[int, int] = field(default_factory=dict)


class _SchedulerLost(Exception):
    """The connection to the scheduler has ended."""


def require() -> None:
    """MissingPart where Dask is not installed."""
    try:
        import distributed  # noqa: F401 (whether it is there)

        if _LOGS not in os.environ:  # what ends and comes again is said by us, in a line
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
    except ImportError:
        raise MissingPart(
            "a study over several machines needs Dask, which is not installed", hint="pip install 'tunnelmark[cluster]'"
        ) from None


async def spread(tasks: Sequence[BlockTask], asks: BlockTask, way: Way, watcher: Watcher) -> None:
    """Have all blocks measured; each is handed to `watcher.done` once, as soon as it is there.

    `asks` is the task by which workers say what they would measure with. The error of a block that failed `TRIES` times; LabError
    where the scheduler, or every worker, stays away.
    """
    require()
    from distributed import Client

    state = _State({task.number: task for task in tasks if task.number is not None})
    away: float | None = None
    while state.left:
        try:
            async with Client(  # type: ignore[no-untyped-call]
                way.address, security=way.security, asynchronous=True, timeout=_CONNECT
            ) as client:
                away = None
                await _Connection(client, state, asks, way, watcher).run()
        except (OSError, TimeoutError, _SchedulerLost) as error:
            away = away if away is not None else time.monotonic()
            if time.monotonic() - away > way.patience:
                raise LabError(
                    f"the scheduler at {way.address} does not answer: {error}",
                    hint="start it again and go on with --resume; every finished block is kept",
                ) from error
            watcher.waits(f"the scheduler at {way.address} does not answer; blocks that are there are kept")
            await asyncio.sleep(LOOK)


class _Connection:
    """One connection to a scheduler: what was submitted by it, and the workers that it has seen."""

    def __init__(self, client: Client, state: _State, asks: BlockTask, way: Way, watcher: Watcher) -> None:
        self._client, self._state, self._asks, self._way, self._watcher = client, state, asks, way, watcher
        self._blocks: dict[Future[Any], tuple[int, str]] = {}
        self._looks: dict[Future[Any], str] = {}
        self._seen: dict[str, int] = {}
        self._fit: dict[str, WorkerFacts] = {}
        self._unfit: dict[str, tuple[float, str]] = {}

    async def run(self) -> None:
        """Until no block is left; _SchedulerLost where the scheduler is gone."""
        idle = time.monotonic()
        while self._state.left:
            if self._client.status != "running":
                raise _SchedulerLost("the connection has ended")
            if await self._workers():
                idle = time.monotonic()
            elif time.monotonic() - idle > self._way.patience:
                raise LabError(
                    "; ".join(
                        ["no worker that is fit for this study has come", *{why for _, why in self._unfit.values()}]
                    ),
                    hint="start one with `tunnelmark cluster worker`; what was measured is kept, go on with --resume",
                )
            self._hand_out()
            await self._ended()

    def _hand_out(self) -> None:
        """Give each worker that is free the next block that no worker has."""
        taken = {number for number, _ in self._blocks.values()}
        waiting = iter(sorted(set(self._state.left) - taken))
        busy = Counter(address for _, address in self._blocks.values())
        for address in self._fit:
            for number in islice(waiting, max((self._way.at_once or self._seen[address]) - busy[address], 0)):
                name = f"block-{number}-{uuid.uuid4().hex[:8]}"
                self._blocks[self._submit(self._way.measure, self._state.left[number], name, address)] = number, address

    def _submit(
        self, carry_out: Callable[[BlockTask, str], Any], task: BlockTask, name: str, address: str
    ) -> Future[Any]:
        return self._client.submit(
            _on_worker, carry_out, task, key=name, workers=[address], allow_other_workers=False, pure=False
        )

    async def _workers(self) -> bool:
        """Look which workers there are, ask new ones what they have, forget those that are gone; whether any is fit, or is asked for the first time."""
        from distributed.comm.core import CommClosedError

        if self._client.scheduler is None:
            raise _SchedulerLost("the connection has ended")
        try:
            now: dict[str, int] = await self._client.scheduler.ncores()
        except (OSError, CommClosedError) as error:
            raise _SchedulerLost(str(error)) from error
        long_ago = time.monotonic() - self._way.again
        again = {address for address, (asked, _) in self._unfit.items() if asked < long_ago} - {*self._looks.values()}
        for address in sorted(now.keys() & (again | (now.keys() - self._seen.keys()))):
            name = f"facts-{address}-{uuid.uuid4().hex[:8]}"
            self._looks[self._submit(self._way.facts, self._asks, name, address)] = address
        self._seen = now
        self._fit = {address: found for address, found in self._fit.items() if address in now}
        self._unfit = {address: asked for address, asked in self._unfit.items() if address in now}
        self._looks = {look: address for look, address in self._looks.items() if address in now}
        for future, (number, address) in [*self._blocks.items()]:
            if address not in now:
                del self._blocks[future]
                self._watcher.waits(f"the worker at {address} is gone; block {number} is measured again by another")
        return bool(self._fit or {*self._looks.values()} - self._unfit.keys())

    async def _ended(self) -> None:
        """Wait a moment for anything to end, and see to it."""
        from distributed import wait
        from distributed.client import FuturesCancelledError

        with suppress(TimeoutError, FuturesCancelledError):
            pending = [*self._blocks, *self._looks]
            if not pending:
                await asyncio.sleep(LOOK)
            await wait(pending, timeout=LOOK, return_when="FIRST_COMPLETED")  # type: ignore[no-untyped-call]
        for look in [each for each in self._looks if each.status != "pending"]:
            await self._asked(look, self._looks.pop(look))
        for future in [each for each in self._blocks if each.status != "pending"]:
            await self._block(future, self._blocks.pop(future)[0])

    async def _asked(self, look: Future[Any], address: str) -> None:
        why = ""
        if look.status == "finished":
            found: WorkerFacts = await look.result()
            why = self._watcher.fit(found, [*self._fit.values()])
            if not why:
                self._unfit.pop(address, None)
                self._fit[address] = found
                self._watcher.taken(found)
        elif look.status == "error":
            why = _words(await look.exception())  # type: ignore[no-untyped-call]
        if why:  # else it is taken, or was lost with its worker
            if _NUMBER.sub("", self._unfit.get(address, (0.0, ""))[1]) != _NUMBER.sub("", why):  # said once
                self._watcher.left_out(found.worker if look.status == "finished" else address, why)
            self._unfit[address] = time.monotonic(), why

    async def _block(self, future: Future[Any], number: int) -> None:
        if future.status == "finished":
            done: BlockDone = await future.result()
            self._watcher.done(done)
            del self._state.left[number]
            return
        if future.status in ("lost", "cancelled"):  # with the scheduler, or a worker: it is handed out again
            return
        error = await future.exception()  # type: ignore[no-untyped-call]
        self._state.failed[number] = self._state.failed.get(number, 0) + 1
        if self._state.failed[number] >= TRIES:
            if isinstance(error, TunnelmarkError):
                raise error
            raise LabError(f"block {number} failed {TRIES} times: {_words(error)}", hint="the worker's log says more")
        self._watcher.waits(f"block {number} failed ({_words(error)}); it is measured again")


def _on_worker(carry_out: Callable[[BlockTask, str], Any], task: BlockTask) -> Any:
    """Carry a task out with the name of the worker that it came to."""
    from distributed import get_worker

    return carry_out(task, str(get_worker().name))


def _words(error: BaseException | None) -> str:
    if isinstance(error, TunnelmarkError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"


@contextmanager
def here(count: int) -> Iterator[tuple[str, Security]]:
    """A cluster of so many workers on this machine, for as long as it is needed: its address, and its TLS with keys of its own."""
    require()
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    dask.config.set(nodes.SETTINGS)
    security: Security = Security.temporary()  # type: ignore[no-untyped-call]
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=security,
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address, security
