"""Hands out tasks over one connection to the scheduler of a cluster, and handles their results and failures."""

from __future__ import annotations

import asyncio
import heapq
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tunnelmark.cluster.roster import Roster
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import LabError, TunnelmarkError, again, plain

if TYPE_CHECKING:
    from distributed import Client, Future

    from tunnelmark.cluster.dispatch import Watcher, Way

LOOK = 0.5
"""Seconds between two requests to the scheduler for its list of workers."""

TRIES = 3
"""How often a block may fail on workers before the command gives up."""

_CONNECT = 5  # seconds for one try to connect


@dataclass
class BlocksLeft:
    """The state that outlasts a lost connection.

    `left`: by number, the blocks that have no result yet. `failed`: by a block's number, the names of the workers on
    which it has failed.
    """

    left: dict[int, BlockTask]
    failed: dict[int, list[str]] = field(default_factory=dict)


class SchedulerLost(Exception):
    """The connection to the scheduler has ended."""


@asynccontextmanager
async def connected(way: Way) -> AsyncIterator[Client]:
    """Yield a connection to the scheduler, which ends with the `async with` statement.

    SchedulerLost if the scheduler cannot be reached. Errors of the statement's body are raised unchanged.
    """
    from distributed import Client

    with _asking():
        client = Client(way.address, security=way.security, asynchronous=True, timeout=_CONNECT)  # type: ignore[no-untyped-call]
        await client.__aenter__()  # type: ignore[no-untyped-call]
    try:
        yield client
    finally:
        with suppress(OSError):  # it is gone already
            await client.__aexit__(*sys.exc_info())  # type: ignore[no-untyped-call]


@contextmanager
def _asking() -> Iterator[None]:
    """Raise SchedulerLost in place of an OSError of the `with` statement's body, which asks the scheduler something."""
    try:
        yield
    except OSError as error:  # also TimeoutError, and Dask's own CommClosedError
        raise SchedulerLost(str(error)) from error


@dataclass(frozen=True, slots=True, eq=False)
class _Out:
    """A task that a worker was given: to measure the block `number`, or, if that is None, to return its facts.

    `worker`: its name, or its address while the name is not known yet. `since`: when it was given, in seconds of
    CLOCK_MONOTONIC.
    """

    address: str
    worker: str
    number: int | None
    future: Future[Any]
    since: float


class SchedulerConnection:
    """One connection to a scheduler: the tasks that were given out over it, and the workers that it has seen.

    A coroutine follows each task, so many tasks do not make it slower to handle the end of one. A worker whose block
    has ended gets its next block before the result is fetched. The list of workers is read every `LOOK` seconds.
    """

    def __init__(self, client: Client, state: BlocksLeft, asks: BlockTask, way: Way, watcher: Watcher) -> None:
        self._client, self._state, self._asks, self._way, self._watcher = client, state, asks, way, watcher
        self._waiting = sorted(state.left)  # a heap: numbers of the blocks that no worker has
        self._out: dict[_Out, asyncio.Task[None]] = {}
        self._busy: defaultdict[str, set[_Out]] = defaultdict(set)
        self._roster = Roster(watcher, way.again)
        self._told: asyncio.Queue[Callable[[], object]] = asyncio.Queue()

    async def run(self) -> None:
        """Hand out blocks until none is left. SchedulerLost if the scheduler is gone, LabError if no fit worker comes
        in time.

        The error of a block is raised if it has failed `TRIES` times.
        """
        idle = time.monotonic()
        look = idle
        try:
            while self._state.left:
                if self._client.status != "running":
                    raise SchedulerLost("the connection has ended")
                if time.monotonic() >= look:
                    idle = time.monotonic() if await self._workers() else idle
                    look = time.monotonic() + LOOK
                    self._require_any(idle)
                    for address in self._roster.fit:
                        self._hand_out(address)
                try:
                    told = await asyncio.wait_for(self._told.get(), max(look - time.monotonic(), 0.001))
                except TimeoutError:
                    continue
                told()
                await asyncio.sleep(0)  # tasks that have ended meanwhile come first: their workers are idle
        finally:
            for follower in self._out.values():
                follower.cancel()
            await asyncio.gather(*self._out.values(), return_exceptions=True)

    def _require_any(self, idle: float) -> None:
        if time.monotonic() - idle > self._way.patience:
            raise LabError(
                "; ".join(["no worker that is fit for this study has come", *self._roster.reasons()]),
                hint="start one with `tunnelmark cluster worker`; what was measured is kept, go on with --resume",
            )

    def _hand_out(self, address: str) -> None:
        """Give a worker waiting blocks, as many as it may have at once, but none that another worker should get."""
        found = self._roster.fit.get(address)
        if found is None or self._client.status != "running":
            return
        room = (self._way.at_once or self._roster.seen[address]) - len(self._busy[address])
        kept = []
        while room > 0 and self._waiting:
            number = heapq.heappop(self._waiting)
            if self._rather_elsewhere(number, found.worker):
                kept.append(number)
                continue
            key = f"block-{number}-{uuid.uuid4().hex[:8]}"
            task = self._state.left[number]
            self._busy[address].add(self._submit(self._way.measure, task, key, address, found.worker))
            room -= 1
        for number in kept:
            heapq.heappush(self._waiting, number)

    def _rather_elsewhere(self, number: int, name: str) -> bool:
        """Return whether a block has failed on the worker `name`, and there is a fit worker on which it has not."""
        failed = self._state.failed.get(number, ())
        return name in failed and any(found.worker not in failed for found in self._roster.fit.values())

    def _submit(
        self, carry_out: Callable[[BlockTask, str], Any], task: BlockTask, key: str, address: str, name: str
    ) -> _Out:
        future = self._client.submit(
            _on_worker, carry_out, task, key=key, workers=[address], allow_other_workers=False, pure=False
        )
        out = _Out(address, name, task.number, future, time.monotonic())
        self._out[out] = asyncio.create_task(self._follow(out))
        return out

    async def _follow(self, out: _Out) -> None:
        """Wait until a task has ended, free its worker, and queue the call that handles the result."""
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
        """Note that the worker has finished this task, and give it another one."""
        if out in self._busy[out.address]:
            self._busy[out.address].remove(out)
            self._hand_out(out.address)

    async def _workers(self) -> bool:
        """Read the list of workers: ask new ones for their facts, and forget those that are gone.

        Return whether any of them is fit, is measuring, or is asked for the first time.
        """
        if self._client.scheduler is None:
            raise SchedulerLost("the connection has ended")
        with _asking():
            now = await self._client.scheduler.ncores()
        self._roster.look(now)
        await self._give_up([*self._gone(), *self._late()])
        asked = {out.address for out in self._out if out.number is None}
        for address in self._roster.to_ask(asked):
            key = f"facts-{address}-{uuid.uuid4().hex[:8]}"
            self._submit(self._way.facts, self._asks, key, address, address)
            asked.add(address)
        return self._roster.any_hope(asked) or any(self._busy.values())

    def _gone(self) -> list[_Out]:
        """Return the tasks that were lost with their workers, and put their blocks back among the waiting ones."""
        gone = [
            out
            for out, follower in self._out.items()
            if (out.address not in self._roster.seen or out.future.status == "lost") and not follower.done()
        ]
        for out in gone:
            self._lost(out)
            if out.number is not None:
                self._watcher.waits(
                    f"the worker at {out.address} is gone; block {out.number} is measured again by another"
                )
        return gone

    def _late(self) -> list[_Out]:
        """Return the requests for facts that were not answered in time, and leave their workers out.

        A worker is late if it measures for another command, or if its answer cannot be fetched.
        """
        since = time.monotonic() - self._way.patience
        late = [
            out
            for out, follower in self._out.items()
            if out.number is None and out.since < since and not follower.done()
        ]
        for out in late:
            self._forget(out)
            why = f"it has not said within {self._way.patience:g} s what it would measure with"
            self._roster.leave_out(out.address, out.worker, why)
        return late

    async def _give_up(self, given_up: Sequence[_Out]) -> None:
        """Make the scheduler forget tasks. Otherwise it would run them again if a worker came to the same address."""
        if not given_up:
            return
        with _asking():
            await self._client.cancel([out.future for out in given_up], force=True)  # type: ignore[no-untyped-call]

    def _forget(self, out: _Out) -> bool:
        """Stop waiting for a task; return whether it was still waited for."""
        self._busy[out.address].discard(out)
        return self._out.pop(out, None) is not None

    def _came(self, out: _Out, found: BlockDone | WorkerFacts) -> None:
        if not self._forget(out):
            return
        if isinstance(found, BlockDone):
            self._watcher.done(found)
            del self._state.left[found.number]
            return
        if self._roster.takes(out.address, found):
            self._hand_out(out.address)

    def _lost(self, out: _Out) -> None:
        """Handle a task that was lost with the scheduler or its worker: a block waits for a worker again."""
        if self._forget(out) and out.number is not None:
            heapq.heappush(self._waiting, out.number)

    def _broken(self, out: _Out, error: Exception) -> None:
        if self._forget(out):
            with _asking():
                raise error

    def _failed(self, out: _Out, error: BaseException | None) -> None:
        if not self._forget(out):
            return
        if out.number is None:
            self._roster.leave_out(out.address, out.worker, _words(error))
            return
        failed = self._state.failed.setdefault(out.number, [])
        failed.append(out.worker)
        if len(failed) >= TRIES:
            raise _failed_for_good(out.number, failed, error)
        self._watcher.waits(f"block {out.number} failed on worker {out.worker}; it is measured again")
        heapq.heappush(self._waiting, out.number)
        self._roster.leave_out(out.address, out.worker, f"block {out.number} failed there: {_words(error)}")


def _on_worker(carry_out: Callable[[BlockTask, str], Any], task: BlockTask) -> Any:
    """Carry out a task on the worker that it came to, and return its result; `carry_out` gets the worker's name."""
    from distributed import get_worker

    return carry_out(task, str(get_worker().name))


def _failed_for_good(number: int, workers: Sequence[str], error: BaseException | None) -> TunnelmarkError:
    """Return the last error of a block that has failed on these workers; it keeps its class if it is one of ours."""
    failed = f"block {number} failed {len(workers)} times, on {' and '.join(dict.fromkeys(workers))}"
    if isinstance(error, TunnelmarkError):
        return again({**plain(error), "message": f"{failed}: {error.message}"})
    return LabError(f"{failed}: {_words(error)}", hint="the worker's log says more")


def _words(error: BaseException | None) -> str:
    if isinstance(error, TunnelmarkError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
