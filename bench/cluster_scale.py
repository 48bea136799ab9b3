"""What spreading blocks over workers costs: simulated clusters of 10, 100 and 1,000 workers on a real scheduler of Dask; and what a study costs.

    .venv/bin/python bench/cluster_scale.py [--workers 10 100 1000] [--each 20] [--seconds S] [--seed 1]
    .venv/bin/python bench/cluster_scale.py --price [0.10]

Scheduler, workers, threads, connections and their TLS are real, and so is `dispatch.spread`, which hands the blocks out. Blocks only wait: for a time
drawn by the seed, a 100th, 50th and 12th of ten minutes on average (longer for more workers, because all share the cores of this machine), and
one in a hundred fails in the middle, alone or with its worker. It prints these bars and ends with 1 when one is not met:

- each block is there once;
- overhead, the mean time between the end of a block on a worker and the start of its next: under 1 % of a block of ten minutes.
  What it takes does not shrink with the blocks, so it is compared with a real one; its share of the shortened block is told beside it;
- the time until all are there is within 10 % of blocks over workers times the mean length of a block.

`--price` prints what a full-length study of 20 VPNs takes on so many machines, at a price of a machine-hour; `--arms` and others change it (docs/scale.md).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from statistics import fmean, median, quantiles

import _cluster_virtual as virtual

from tunnelmark.cluster import certificates, dispatch
from tunnelmark.cluster.dispatch import Watcher, Way
from tunnelmark.cluster.tasks import BlockDone

OVERHEAD, FINISH = 0.01, 0.10
REAL = 600.0
"""Seconds of a real block that overhead is compared with; longer ones have less of it."""

SHORT = {10: 6.0, 100: 12.0, 1000: 50.0}
"""Mean seconds of a simulated block for so many workers: they all share the cores of this machine with scheduler and client, and a block costs some 20 ms of CPU."""

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
    """Between two blocks of a worker."""
    first: list[float]
    """From the start until a worker's first block begins."""
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
        factor = REAL / self.mean
        real = (self.best * factor + self.total - self.best) / (self.share * factor)
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
                    f" ({self.total / self.best:.3f} of that); first blocks began after {median(self.first):.1f} s (median)"
                ),
                f"  with blocks of ten minutes and the same delays: finished {100 * (real - 1):+.1f} % from blocks over workers",
                (
                    f"  {self.lost} times a worker was lost, {self.failed} blocks failed; CPU a block: client {client:.1f} ms,"
                    f" scheduler {scheduler:.1f} ms, all workers {workers:.1f} ms"
                ),
            ]
        )


@dataclass(frozen=True)
class Length:
    """How long a study is: what each of its blocks has, and how many there are; times in seconds (docs/scale.md says whence)."""

    arms: int = 22  # 20 VPNs, and the bare link twice
    conditions: int = 4
    workloads: int = 7
    blocks: int = 20
    traffic: float = 20.4  # of a trial, on average: 6 h 12 min in the 1,092 trials of `mesh-vpns --full`
    besides: float = 5.0  # of a trial: its lab, the VPN's start until it is ready, the end
    start: float = 15.0  # of a block: a process of its own, which looks at the machine and the links

    @property
    def block(self) -> float:
        """Seconds of one block."""
        return self.start + self.arms * self.conditions * self.workloads * (self.traffic + self.besides)

    def hours(self, machines: int, studies: int = 1) -> float:
        """Hours until the last block is there, of so many studies of this length at once: whole rounds of blocks."""
        return ceil(studies * self.blocks / machines) * self.block / 3600

    def machine_hours(self, machines: int, studies: int = 1) -> tuple[float, float]:
        """What is paid for: where a machine is given back when no block is left for it, and where all are kept until the end."""
        return studies * self.blocks * self.block / 3600, machines * self.hours(machines, studies)


def print_prices(hour: float, whole: Length) -> None:
    """The table of time and price, of one study and of a study for each condition; `hour` is the price of a machine-hour."""
    parts = replace(whole, conditions=1)
    print(
        f"a machine-hour at {hour:g}; {whole.arms} arms, {whole.conditions} conditions, {whole.workloads} workloads, {whole.blocks} blocks:"
        f" {whole.blocks * whole.arms * whole.conditions * whole.workloads:,} trials of {whole.traffic + whole.besides:.1f} s\n"
    )
    print(
        "| machines | one study: hours | price, given back | price, kept | a study a condition: hours | price, given back | price, kept |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for machines in (1, 2, 4, 5, 7, 10, 20, 40, 80):
        row = [str(machines)]
        for length, studies in ((whole, 1), (parts, whole.conditions)):
            back, kept = length.machine_hours(machines, studies)
            row += [f"{length.hours(machines, studies):.1f}", f"{hour * back:.2f}", f"{hour * kept:.2f}"]
        print(f"| {' | '.join(row)} |")


def simulated(workers: int, each: int, mean: float, seed: int) -> Found:
    """One study of `each` blocks a worker over a cluster."""
    blocks, away = workers * each, AWAY * mean / REAL
    done: list[BlockDone] = []
    waits: list[str] = []
    watcher = Watcher(done.append, lambda *_: "", waits=waits.append)
    with cluster(workers, away) as (keys, address, processes):
        again = dispatch.AGAIN * mean / REAL
        way = Way(address, certificates.security(keys), virtual.measured, virtual.facts, again=again)
        tasks = [virtual.task_of(seed, mean, number) for number in range(1, blocks + 1)]
        before, begun = [_cpu(each) for each in processes], time.monotonic()
        asyncio.run(dispatch.spread(tasks, virtual.task_of(seed, mean, None), way, watcher))
        total = time.monotonic() - begun
        used = [(_cpu(each) - was) / blocks for each, was in zip(processes, before, strict=True)]
    told = [json.loads(one.environment) for one in done]
    return Found(
        workers,
        blocks,
        mean,
        total,
        sum(virtual.length(seed, mean, number) for number in range(1, blocks + 1)) / workers,
        virtual.at_best(seed, mean, blocks, workers, away),
        [each["waited"] for each in told if each["waited"] is not None],
        [each["begun"] - begun for each in told if each["waited"] is None],
        Counter(one.number for one in done),
        sum("is gone" in why for why in waits),
        sum("failed" in why for why in waits),
        (used[0], used[1], sum(used[2:])),
    )


@contextmanager
def cluster(workers: int, away: float) -> Iterator[tuple[Path, str, list[int]]]:
    """A scheduler and so many workers that are all there: their keys, the address, and the numbers of processes: this one, the scheduler, those of workers."""
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
        yield keys, address, [os.getpid(), scheduler.pid, *(host.pid for host in hosts)]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise SystemExit("a process of the cluster has ended")
    return line


def _cpu(process: int) -> float:
    """Seconds of CPU that a process has used, all its threads together (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Simulate each cluster, or print the prices; 1 if a bar is not met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--each", type=int, default=20, help="blocks a worker")
    parser.add_argument("--seconds", type=float, help="mean length of a block, of all clusters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--price", type=float, nargs="?", const=0.10, help="print prices instead, for this price of a machine-hour"
    )
    for name, value in asdict(Length()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"of --price; {value} unless stated")
    asked = parser.parse_args()
    if asked.price is not None:
        print_prices(asked.price, Length(**{name: getattr(asked, name) for name in asdict(Length())}))
        return 0
    met = []
    for workers in asked.workers:
        found = simulated(workers, asked.each, asked.seconds or SHORT.get(workers, REAL / 10), asked.seed)
        print(found, flush=True)
        met += [each for _, each in found.bars]
    print(f"{sum(met)} of {len(met)} bars are met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
