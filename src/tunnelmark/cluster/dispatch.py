"""Has all blocks of a study measured by the workers of a Dask cluster, and passes on each result.

Dask transports blocks and results, knows which workers there are, and handles connections, keys and logs. But this
package decides which worker gets which block (`scheduler_connection`): a worker that is fit (`roster`) and free. A block
must be alone on its machine, and Dask would queue several blocks at a worker.
If a worker is lost, another one gets its block. A block that failed goes to a worker on which it has not failed, if there
is one; the worker on which it failed is left out for a while. If the scheduler is lost, all blocks without a result are
handed out again when it is back.
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
from tunnelmark.cluster.scheduler_connection import LOOK, BlocksLeft, SchedulerConnection, SchedulerLost, connected
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import LabError, MissingPart

if TYPE_CHECKING:
    from distributed.security import Security

PATIENCE = 120.0
"""Seconds without a scheduler, or without a fit worker, after which the command gives up; measured blocks are kept.

A worker must also answer a request for its facts (`WorkerFacts`) within that time."""

AGAIN = 30.0
"""Seconds after which a worker that was left out is asked again: the reason, such as other work, may have ended."""

_LOGS = "DASK_LOGGING__DISTRIBUTED"  # Dask's own variable for how much it logs


@dataclass(frozen=True, slots=True)
class Way:
    """How blocks get to workers: the scheduler's address, and its TLS settings (None: without TLS).

    `measure`, `facts`: the functions that a worker runs to measure a block and to report its facts; tests use others.
    `at_once`: how many blocks a worker measures at a time; None: as many as it has threads.
    `patience`: seconds without a scheduler, or without a fit worker, after which the command gives up. `again`: seconds
    after which a worker that was left out is asked again.
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
    """The functions that `spread` calls on events, and to decide which workers may measure.

    `done` gets each block's result. `taken` gets the facts of a worker that may measure from now on. `left_out` gets
    the name of a worker that may not measure, and the reason. `waits` gets a sentence for people when a block must be
    measured again, or when the scheduler does not answer. `fit` and `held` get the facts of one worker, and those of
    all workers that may measure already.
    """

    done: Callable[[BlockDone], object]
    fit: Callable[[WorkerFacts, Sequence[WorkerFacts]], str]
    """Returns why the first worker may not measure while the others do; "" if it may."""
    taken: Callable[[WorkerFacts], object] = lambda _: None
    left_out: Callable[[str, str], object] = lambda *_: None
    waits: Callable[[str], object] = lambda _: None
    held: Callable[[WorkerFacts, Sequence[WorkerFacts]], bool] = lambda *_: False
    """Returns whether to wait before the first worker is asked again, because a question would disturb the others."""


def require() -> None:
    """Raise MissingPart if Dask is not installed; else silence its log, unless the user has configured that."""
    try:
        import distributed  # noqa: F401 (whether it is there)

        if _LOGS not in os.environ:  # what ends and comes again is said by us, in a line
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
    except ImportError:
        raise MissingPart(
            "a study over several machines needs Dask, which is not installed", hint="pip install 'tunnelmark[cluster]'"
        ) from None


async def spread(tasks: Sequence[BlockTask], asks: BlockTask, way: Way, watcher: Watcher) -> None:
    """Have all blocks measured; `watcher.done` gets each block once, when its result arrives.

    `asks`: the task that asks a worker for its facts. If a block has failed `scheduler_connection.TRIES`
    times, its error is raised. LabError if the scheduler, or every fit worker, is missing for `way.patience` seconds.
    """
    require()
    state = BlocksLeft({task.number: task for task in tasks if task.number is not None})
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
