"""Hands blocks to the workers of a Dask cluster and their results on, until every block is measured.

Dask carries them there and back, tells which workers there are, and keeps connections, keys and logs. Which worker gets which block is decided
here: one that was found fit and is free, for a block is measured alone on its machine, and Dask would give a worker as many as it thinks that it can
queue. A block whose worker is lost goes to another one; if the scheduler itself is lost, all that are not there yet are handed out again by the next.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import os
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tunnelmark.cluster import worker
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


@dataclass(frozen=True, slots=True, eq=False)
class _Out:
    """What a worker was given: the block of that number, or (None) the question what it would measure with."""

    address: str
    number: int | None
    future: Future[Any]


class _Connection:
    """One connection to a scheduler: what was submitted by it, and the workers that it has seen.

    Each thing that is out has a coroutine that follows it, so that what ends costs the same however much is out. A worker whose block has
    ended gets its next one before the result of the last is fetched; a look at which workers there are is taken each `LOOK` seconds.
    """

    def __init__(self, client: Client, state: _State, asks: BlockTask, way: Way, watcher: Watcher) -> None:
        self._client, self._state, self._asks, self._way, self._watcher = client, state, asks, way, watcher
        self._waiting = sorted(state.left)  # a heap: the blocks that no worker has
        self._out: dict[_Out, asyncio.Task[None]] = {}
        self._busy: defaultdict[str, set[_Out]] = defaultdict(set)
        self._seen: dict[str, int] = {}
        self._fit: dict[str, WorkerFacts] = {}
        self._unfit: dict[str, tuple[float, str]] = {}
        self._told: asyncio.Queue[Callable[[], object]] = asyncio.Queue()

    async def run(self) -> None:
        """Until no block is left; _SchedulerLost where the scheduler is gone."""
        idle = time.monotonic()
        look = idle
        try:
            while self._state.left:
                if self._client.status != "running":
                    raise _SchedulerLost("the connection has ended")
                if time.monotonic() >= look:
                    idle = time.monotonic() if await self._workers() else idle
                    look = time.monotonic() + LOOK
                    self._require_any(idle)
                    for address in self._fit:
                        self._hand_out(address)
                try:
                    told = await asyncio.wait_for(self._told.get(), max(look - time.monotonic(), 0.001))
                except TimeoutError:
                    continue
                told()
                await asyncio.sleep(0)  # what has ended meanwhile comes first: its worker is idle
        finally:
            for follower in self._out.values():
                follower.cancel()
            await asyncio.gather(*self._out.values(), return_exceptions=True)

    def _require_any(self, idle: float) -> None:
        if time.monotonic() - idle > self._way.patience:
            reasons = ["no worker that is fit for this study has come", *{why for _, why in self._unfit.values()}]
            raise LabError(
                "; ".join(reasons),
                hint="start one with `tunnelmark cluster worker`; what was measured is kept, go on with --resume",
            )

    def _hand_out(self, address: str) -> None:
        """Give a worker as many blocks that no worker has as it has room for."""
        if address not in self._fit or self._client.status != "running":
            return
        room = (self._way.at_once or self._seen[address]) - len(self._busy[address])
        for _ in range(min(room, len(self._waiting))):
            number = heapq.heappop(self._waiting)
            name = f"block-{number}-{uuid.uuid4().hex[:8]}"
            out = self._submit(self._way.measure, self._state.left[number], name, address)
            self._busy[address].add(out)

    def _submit(self, carry_out: Callable[[BlockTask, str], Any], task: BlockTask, name: str, address: str) -> _Out:
        future = self._client.submit(
            _on_worker, carry_out, task, key=name, workers=[address], allow_other_workers=False, pure=False
        )
        out = _Out(address, task.number, future)
        self._out[out] = asyncio.create_task(self._follow(out))
        return out

    async def _follow(self, out: _Out) -> None:
        """Wait until it has ended, free its worker, and tell what came of it."""
        from distributed import wait
        from distributed.client import FutureCancelledError, FuturesCancelledError

        told: Callable[[], object] = partial(self._lost, out)
        try:
            await wait([out.future])  # type: ignore[no-untyped-call]
            if out.future.status == "finished":
                self._free(out)
                told = partial(self._came, out, await out.future.result())
            elif out.future.status == "error":
                told = partial(self._failed, out, await out.future.exception())  # type: ignore[no-untyped-call]
        except (FutureCancelledError, FuturesCancelledError):  # with the scheduler, or a worker
            pass
        except Exception as error:
            told = partial(self._broken, out, error)
        self._told.put_nowait(told)

    def _free(self, out: _Out) -> None:
        """The worker does nothing for it any more."""
        if out in self._busy[out.address]:
            self._busy[out.address].remove(out)
            self._hand_out(out.address)

    async def _workers(self) -> bool:
        """Look which workers there are, ask new ones what they have, forget those that are gone; whether any is fit, or is asked for the first time."""
        from distributed.comm.core import CommClosedError

        if self._client.scheduler is None:
            raise _SchedulerLost("the connection has ended")
        try:
            now: dict[str, int] = await self._client.scheduler.ncores()
        except (OSError, CommClosedError) as error:
            raise _SchedulerLost(str(error)) from error
        self._seen, seen = now, self._seen
        self._fit = {address: found for address, found in self._fit.items() if address in now}
        self._unfit = {address: asked for address, asked in self._unfit.items() if address in now}
        gone = [
            out
            for out, follower in self._out.items()
            if (out.address not in now or out.future.status == "lost") and not follower.done()
        ]
        for out in gone:
            self._lost(out)
            if out.number is not None:
                self._watcher.waits(
                    f"the worker at {out.address} is gone; block {out.number} is measured again by another"
                )
        if gone:  # or the scheduler would have it measured, should a worker come to the same address
            await self._client.cancel([out.future for out in gone], force=True)  # type: ignore[no-untyped-call]
        long_ago = time.monotonic() - self._way.again
        asked = {out.address for out in self._out if out.number is None}
        again = {address for address, (when, _) in self._unfit.items() if when < long_ago} - asked
        for address in sorted(now.keys() & (again | (now.keys() - seen.keys()))):
            self._submit(self._way.facts, self._asks, f"facts-{address}-{uuid.uuid4().hex[:8]}", address)
            asked.add(address)
        return bool(self._fit or asked - self._unfit.keys())

    def _forget(self, out: _Out) -> bool:
        """Whether it was still waited for; now it is not any more."""
        self._busy[out.address].discard(out)
        return self._out.pop(out, None) is not None

    def _came(self, out: _Out, found: BlockDone | WorkerFacts) -> None:
        if not self._forget(out):
            return
        if isinstance(found, BlockDone):
            self._watcher.done(found)
            del self._state.left[found.number]
            return
        if why := self._watcher.fit(found, [*self._fit.values()]):
            self._leave_out(out.address, found.worker, why)
            return
        self._unfit.pop(out.address, None)
        self._fit[out.address] = found
        self._watcher.taken(found)
        self._hand_out(out.address)

    def _leave_out(self, address: str, name: str, why: str) -> None:
        if _NUMBER.sub("", self._unfit.get(address, (0.0, ""))[1]) != _NUMBER.sub("", why):  # said once
            self._watcher.left_out(name, why)
        self._unfit[address] = time.monotonic(), why

    def _lost(self, out: _Out) -> None:
        """With the scheduler, or its worker: a block is handed out again."""
        if self._forget(out) and out.number is not None:
            heapq.heappush(self._waiting, out.number)

    def _broken(self, out: _Out, error: Exception) -> None:
        if self._forget(out):
            raise error

    def _failed(self, out: _Out, error: BaseException | None) -> None:
        if not self._forget(out):
            return
        if out.number is None:
            self._leave_out(out.address, out.address, _words(error))
            return
        self._state.failed[out.number] = self._state.failed.get(out.number, 0) + 1
        if self._state.failed[out.number] >= TRIES:
            if isinstance(error, TunnelmarkError):
                raise error
            raise LabError(
                f"block {out.number} failed {TRIES} times: {_words(error)}", hint="the worker's log says more"
            )
        self._watcher.waits(f"block {out.number} failed ({_words(error)}); it is measured again")
        heapq.heappush(self._waiting, out.number)
        self._hand_out(out.address)


def _on_worker(carry_out: Callable[[BlockTask, str], Any], task: BlockTask) -> Any:
    """Carry a task out with the name of the worker that it came to."""
    from distributed import get_worker

    return carry_out(task, str(get_worker().name))


def _words(error: BaseException | None) -> str:
    if isinstance(error, TunnelmarkError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
