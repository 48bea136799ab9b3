"""What spreading blocks over workers costs: simulated clusters of 10, 100 and 1,000 workers on a real scheduler of Dask; and what a study costs.

    .venv/bin/python bench/cluster_scale.py [--workers 10 100 1000] [--each 20] [--seconds 6] [--seed 1]
    .venv/bin/python bench/cluster_scale.py --price [0.10]

Scheduler, workers, threads, connections and their TLS are real, and so is `dispatch.spread`, which hands the blocks out. Blocks only wait: for a time
drawn by the seed, a hundredth of ten minutes on average (with 1,000 workers a thirtieth, because all of them share this machine), and
one in a hundred fails in the middle, alone or with its worker. It prints these bars and ends with 1 when one is not met:

- each block is there once;
- overhead, the mean time between the end of a block on a worker and the start of its next: under 1 % of a block of ten minutes.
  What it takes does not shrink with the blocks, so it is compared with a real one; its share of the shortened block is told beside it;
- the time until all are there is within 10 % of blocks over workers times the mean length of a block.

`--price` prints what a full-length study of 20 VPNs takes on so many machines, at a price of a machine-hour (docs/scale.md).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles

import _cluster_virtual as virtual
import psutil

from tunnelmark.cluster import certificates, dispatch
from tunnelmark.cluster.dispatch import Watcher, Way
from tunnelmark.cluster.tasks import BlockDone

OVERHEAD, FINISH = 0.01, 0.10
REAL = 600.0
"""Seconds of a real block that overhead is compared with; longer ones have less of it."""

MOST = 80
"""Blocks a second that all workers together end at most, so that two cores can be scheduler, client and workers at once."""

AWAY = 60.0  # seconds that a lost worker of real blocks stays away
HOSTED = 250
"""Workers in one process."""


@dataclass(frozen=True)
class Found:
    """What came of one cluster. Times in seconds; `cpu` of this process, of the scheduler and of the workers' processes, in seconds a block."""

    workers: int
    blocks: int
    mean: float
    total: float
    share: float
    """Seconds of all blocks over workers."""
    best: float
    """Seconds until the end if handing out took no time, with the same draws."""
    waited: list[float]
    times: Counter[int]
    lost: int
    failed: int
    cpu: tuple[float, float, float]

    @property
    def bars(self) -> Iterator[tuple[str, bool]]:
        """What is judged, in words, and whether it is met."""
        once = len(self.times) == self.blocks and set(self.times.values()) == {1}
        yield f"{len(self.times)} of {self.blocks} blocks are there, each once", once
        overhead, later = fmean(self.waited), self.total / self.share - 1
        yield (
            f"overhead {1000 * overhead:.1f} ms a block: {100 * overhead / REAL:.4f} % of ten minutes (bound 1 %)",
            overhead < OVERHEAD * REAL,
        )
        yield (
            f"finished {100 * later:+.1f} % from blocks over workers times their mean (bound 10 %)",
            abs(later) <= FINISH,
        )

    def __str__(self) -> str:
        tenths = quantiles(self.waited, n=100)
        client, scheduler, workers = (1000 * each for each in self.cpu)
        verdicts = [f"  {words:<88} {'met' if met else 'NOT MET'}" for words, met in self.bars]
        return "\n".join(
            [
                f"{self.workers} workers, {self.blocks} blocks of {self.mean:g} s (1 to {REAL / self.mean:.0f}):",
                *verdicts,
                (
                    f"  a worker waits {1000 * median(self.waited):.1f} ms (median), {1000 * tenths[94]:.1f} (95 of 100),"
                    f" {1000 * max(self.waited):.0f} at most; {100 * fmean(self.waited) / self.mean:.2f} % of the shortened block"
                ),
                (
                    f"  {self.total:.1f} s; blocks over workers {self.share:.1f} s; if handing out took no time {self.best:.1f} s"
                    f" ({self.total / self.best:.3f} of that)"
                ),
                (
                    f"  {self.lost} times a worker was lost, {self.failed} blocks failed; CPU a block: client {client:.1f} ms,"
                    f" scheduler {scheduler:.1f} ms, all workers {workers:.1f} ms"
                ),
            ]
        )


def simulated(workers: int, each: int, mean: float, seed: int) -> Found:
    """One study of `each` blocks a worker over a cluster."""
    blocks, away = workers * each, AWAY * mean / REAL
    done: list[BlockDone] = []
    waits: list[str] = []
    watcher = Watcher(done.append, lambda *_: "", waits=waits.append)
    with cluster(workers, away) as (keys, address, processes):
        way = Way(address, certificates.security(keys), virtual.measured, virtual.facts)
        tasks = [virtual.task_of(seed, mean, number) for number in range(1, blocks + 1)]
        before, begun = [_cpu(each) for each in processes], time.monotonic()
        asyncio.run(dispatch.spread(tasks, virtual.task_of(seed, mean, None), way, watcher))
        total = time.monotonic() - begun
        used = [(_cpu(each) - was) / blocks for each, was in zip(processes, before, strict=True)]
    told = [json.loads(one.environment)["waited"] for one in done]
    return Found(
        workers,
        blocks,
        mean,
        total,
        sum(virtual.length(seed, mean, number) for number in range(1, blocks + 1)) / workers,
        virtual.at_best(seed, mean, blocks, workers, away),
        [waited for waited in told if waited is not None],
        Counter(one.number for one in done),
        sum("is gone" in why for why in waits),
        sum("failed" in why for why in waits),
        (used[0], used[1], sum(used[2:])),
    )


@contextmanager
def cluster(workers: int, away: float) -> Iterator[tuple[Path, str, list[psutil.Process]]]:
    """A scheduler and so many workers that are all there: their keys, the address, and the processes: this one, the scheduler, those of workers."""
    with ExitStack() as stack:
        keys = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tunnelmark-scale-"))) / "keys"
        certificates.make(keys)

        def start(*arguments: object) -> subprocess.Popen[str]:
            line = [sys.executable, virtual.__file__, *map(str, arguments)]
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        scheduler = start("scheduler", keys)
        address = _line(scheduler)
        hosts = [
            start("workers", keys, address, first, min(HOSTED, workers - first), away)
            for first in range(0, workers, HOSTED)
        ]
        for host in hosts:
            _line(host)
        pids = [None, scheduler.pid, *(host.pid for host in hosts)]
        yield keys, address, [psutil.Process(pid) for pid in pids]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise SystemExit("a process of the cluster has ended")
    return line


def _cpu(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def main() -> int:
    """Simulate each cluster, or print the prices; 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--each", type=int, default=20, help="blocks a worker")
    parser.add_argument("--seconds", type=float, default=REAL / 100, help="mean length of a block, at least")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    met = []
    for workers in asked.workers:
        found = simulated(workers, asked.each, max(asked.seconds, workers / MOST), asked.seed)
        print(found, flush=True)
        met += [each for _, each in found.bars]
    print(f"{sum(met)} of {len(met)} bars are met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
