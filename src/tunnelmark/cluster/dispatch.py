"""Hands blocks to the workers of a Dask cluster and their results on, until every block is measured.

Dask carries them there and back, tells which workers there are, and keeps connections, keys and logs. Which worker gets which block is decided
here (`scheduler_connection`): one that was found fit (`roster`) and is free, for a block is measured alone on its machine, and Dask would give a worker as many as it thinks that it can
queue. A block whose worker is lost goes to another one, and so does one that has failed, as long as there is one on which it has not; the worker that it failed on
is left out for a while. If the scheduler itself is lost, all that are not there yet are handed out again by the next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunnelmark.cluster import worker
from tunnelmark.cluster.scheduler_connection import LOOK, SchedulerConnection, SchedulerLost, State, connected
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import LabError, MissingPart

if TYPE_CHECKING:
    from distributed.security import Security

PATIENCE = 120.0
"""Seconds for which a scheduler may be away, or no worker be there, before the command gives up; what was measured stays. A worker has so
long to say what it would measure with."""

AGAIN = 30.0
"""Seconds after which a worker that was left out is asked once more: other work on its machine may have ended, or what made a block fail there."""

_LOGS = "DASK_LOGGING__DISTRIBUTED"  # Dask's own variable for how much it says


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
    held: Callable[[WorkerFacts, Sequence[WorkerFacts]], bool] = lambda *_: False
    """Whether to ask a worker again would disturb those that measure, and change nothing as long as they do."""


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

    `asks` is the task by which workers say what they would measure with. The error of a block that failed `scheduler_connection.TRIES` times; LabError
    where the scheduler, or every worker, stays away.
    """
    require()
    state = State({task.number: task for task in tasks if task.number is not None})
    away: float | None = None
    while state.left:
        try:
            async with connected(way) as client:
                away = None
                await SchedulerConnection(client, state, asks, way, watcher).run()
        except SchedulerLost as error:
            away = away if away is not None else time.monotonic()
            if time.monotonic() - away > way.patience:
                raise LabError(
                    f"the scheduler at {way.address} does not answer: {error}",
                    hint="start it again and go on with --resume; every finished block is kept",
                ) from error
            watcher.waits(f"the scheduler at {way.address} does not answer; blocks that are there are kept")
            await asyncio.sleep(LOOK)
