"""Workers of a simulated cluster: real workers of Dask, many in one process, whose blocks only take time; and by what each block's fate is drawn.

    _cluster_virtual.py scheduler KEYS
    _cluster_virtual.py workers KEYS ADDRESS FIRST COUNT AWAY

are the processes of such a cluster (`cluster_scale.py` starts them): the scheduler as `tunnelmark cluster scheduler` runs it, which prints
its address, and `COUNT` workers, which print a line when all are there. A worker that was lost comes again after `AWAY` seconds.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import logging
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tunnelmark.cluster import certificates, nodes
from tunnelmark.cluster.tasks import BlockDone, BlockTask, WorkerFacts
from tunnelmark.errors import LabError

if TYPE_CHECKING:
    from distributed import Worker

SCATTER = 0.05
"""Standard deviation of the logarithm of a block's length; the eight blocks of docs/demo took 61.5 to 62.1 s."""

REPEATED, LONGER = 0.05, 1.5
"""The share of blocks with void trials that are measured again, and how much longer those take."""

LOST, FAILED = 0.005, 0.005
"""The share of blocks that lose their worker somewhere in the middle, and of those that fail there."""

ENVIRONMENT, JOURNAL = 40_000, 300_000
"""Bytes of what a worker tells of itself, and of a block that comes back: docs/demo has 42 kB, and 15 kB of journal for a trial."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a block: how long it takes in seconds, and after which share of that its worker is lost, or it fails; None: neither."""

    seconds: float
    lost: float | None = None
    failed: float | None = None

    @property
    def ends(self) -> float:
        """Seconds until the worker does nothing for it any more."""
        return self.seconds * (self.lost or self.failed or 1.0)


def length(seed: int, mean: float, number: int) -> float:
    """The seconds that a block takes, wherever it is measured; `mean` of them on average."""
    random = Random(f"length {seed} {number}")
    longer = LONGER if random.random() < REPEATED else 1.0
    return mean * longer * random.lognormvariate(-(SCATTER**2) / 2, SCATTER) / (1 + REPEATED * (LONGER - 1))


def fate(seed: int, mean: float, number: int, worker: str, turn: int) -> Fate:
    """What becomes of a block on a worker that has begun `turn` blocks before it."""
    random = Random(f"fate {seed} {number} {worker} {turn}")
    drawn, share = random.random(), random.uniform(0.01, 1)
    return Fate(
        length(seed, mean, number),
        share if drawn < LOST else None,
        share if LOST <= drawn < LOST + FAILED else None,
    )


def at_best(seed: int, mean: float, blocks: int, workers: int, away: float) -> float:
    """Seconds until all blocks are there if handing one out took no time: each worker takes the first that nobody has, as `dispatch` does."""
    waiting, out = list(range(1, blocks + 1)), blocks
    free: list[tuple[float, int, int, int, int]] = [(0.0, worker, 0, 0, 0) for worker in range(workers)]
    idle: list[tuple[int, int, int]] = []
    now = 0.0
    while out:
        now, worker, life, turn, back = heapq.heappop(free)
        if back < 0:
            out -= 1
        elif back:
            heapq.heappush(waiting, back)
        if worker >= 0:
            idle.append((worker, life, turn))
        while idle and waiting:
            worker, life, turn = idle.pop()
            number = heapq.heappop(waiting)
            drawn = fate(seed, mean, number, name_of(worker, life), turn)
            if drawn.lost is not None:  # the block is free then, by an entry of no worker; the worker is later
                heapq.heappush(free, (now + drawn.ends, -1, 0, 0, number))
                heapq.heappush(free, (now + drawn.ends + away, worker, life + 1, 0, 0))
            else:
                came = number if drawn.failed is not None else -number
                heapq.heappush(free, (now + drawn.ends, worker, life, turn + 1, came))
    return now


def name_of(worker: int, life: int) -> str:
    """The name of a worker that was lost so many times."""
    return f"w{worker}.{life}"


def task_of(seed: int, mean: float, number: int | None) -> BlockTask:
    """A block of a simulated study."""
    return BlockTask("scale", {}, {"seed": seed, "mean": mean}, number)


def facts(task: BlockTask, name: str) -> WorkerFacts:
    """Programs that are the same everywhere, in an environment as large as a real one."""
    return WorkerFacts(name, {"tunnelmark": "0.1.0", "rest": "x" * ENVIRONMENT}, "same")


def measured(task: BlockTask, name: str) -> BlockDone:
    """A block that takes the time that is drawn for it, fails or loses its worker; it says when it began, and how long the worker had waited, in seconds."""
    from distributed import get_worker

    assert task.number is not None
    begun, here = time.monotonic(), get_worker()
    turns: list[float] = here.__dict__.setdefault("virtual_turns", [])
    waited = begun - turns[-1] if turns else None
    drawn = fate(**task.settings, number=task.number, worker=name, turn=len(turns))
    time.sleep(drawn.ends)
    if drawn.lost is not None:
        here.loop.add_callback(_lose, here)
        time.sleep(drawn.seconds - drawn.ends)
    turns.append(time.monotonic())
    if drawn.failed is not None or drawn.lost is not None:
        raise LabError("drawn to fail", hint="none is needed")
    environment = json.dumps({"waited": waited, "begun": begun})
    return BlockDone(task.number, name, "", environment, (), bytes(JOURNAL), turns[-1] - begun)


def _lose(worker: Worker) -> None:
    """Cut a worker off without a word, as a machine that fails."""
    if worker.batched_stream.comm is not None:
        worker.batched_stream.comm.abort()


async def _workers(keys: Path, address: str, first: int, count: int, away: float) -> None:
    """So many workers, until this process is stopped. Threads and connections are real; what Dask would watch of each process is left out, for it is one."""
    import dask

    logging.disable()  # each line would go to a list of each worker in the process
    dask.config.set(
        {
            "distributed.worker.profile.enabled": False,
            "distributed.admin.system-monitor.interval": "60s",
            "distributed.admin.tick.interval": "60s",
            "distributed.admin.tick.limit": "3600s",
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False,
        }
    )
    limit, there = asyncio.Semaphore(20), []
    with tempfile.TemporaryDirectory(prefix="tunnelmark-scale-") as scratch:

        async def live(number: int) -> None:
            from distributed import Worker

            life = 0
            while True:
                settings: Mapping[str, Any] = {
                    "name": name_of(number, life),
                    "nthreads": 1,
                    "host": nodes.LOOPBACK,
                    "protocol": "tls://",
                    "security": certificates.security(keys),
                    "dashboard": False,
                    "memory_limit": 0,
                    "local_directory": scratch,
                }
                async with limit:
                    made = await Worker(address, **settings)
                if not life:
                    there.append(number)
                    if len(there) == count:
                        print("all there", flush=True)
                await made.finished()
                life += 1
                await asyncio.sleep(away)

        await asyncio.gather(*[live(number) for number in range(first, first + count)])


def main(arguments: Sequence[str]) -> None:
    """Be a scheduler, or workers."""
    kind, keys, *rest = arguments
    if kind == "scheduler":
        security = certificates.security(Path(keys))
        asyncio.run(nodes.scheduler(f"{nodes.LOOPBACK}:0", None, security, lambda own: print(own, flush=True)))
    else:
        address, first, count, away = rest
        asyncio.run(_workers(Path(keys), address, int(first), int(count), float(away)))


if __name__ == "__main__":
    main(sys.argv[1:])
