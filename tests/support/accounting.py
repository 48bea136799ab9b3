"""Where the machine's CPU goes while a lab works: nodes, links, the command with its helpers, the kernel's threads, all else.

Each part is counted in another way than the machine's own total, so that the two can be compared.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from tunnelmark.host import keep_awake, softirq
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import MIDDLE, Lab
from tunnelmark.linux import cgroups

OTHERS = "everybody else"
IDLE = "softirq without a task"
SAMPLED = "/proc/stat, busy"
"""What the machine did as its ticks saw it: off by up to 8 % here, both ways, where work goes with the ticks' beat."""

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Look:
    """CPU seconds up to now by part, and by the machine's own counts (`busy`: what it did; `awake`: what it did not idle).

    The loops that keep cores awake are in none of them.
    """

    time: float
    parts: dict[str, float]
    busy: float
    awake: float
    exact: float | None  # of all tasks, and softirq without, to the nanosecond, where the kernel counts them
    forks: int  # tasks that were made on this machine since it started


@dataclass(frozen=True)
class Account:
    """The CPU seconds between two looks."""

    seconds: float
    parts: dict[str, float]
    totals: dict[str, float] = field(default_factory=dict)
    cores: int = 1
    forks: int = 0

    @property
    def sum(self) -> float:
        """All parts together."""
        return sum(self.parts.values())

    @property
    def others(self) -> float:
        """The share of the machine's busy time that other processes are seen to have used."""
        return self.parts[OTHERS] / self.totals[SAMPLED]

    def disagreements(self, tolerance: float = 0.05) -> dict[str, float]:
        """The machine's totals from which the sum of the parts is farther than so much, and how far it is.

        The sampled one counts only where the kernel has no exact count of all tasks.
        """
        exact = len(self.totals) > 2
        apart = {name: self.sum / total - 1 for name, total in self.totals.items() if name != SAMPLED or not exact}
        return {name: share for name, share in apart.items() if abs(share) > tolerance}

    @property
    def disturbed(self) -> bool:
        """Whether others worked so much that a disagreement may be theirs: by what is seen of them, and not by the disagreement.

        Programs that come and go with their parents are in nobody's account, and so is what another lab did that ended:
        the kernel forgets the CPU of processes that end with their PID namespace (pid_namespaces(7), `zap_pid_ns_processes`).
        A busy lab itself makes no task.
        """
        return self.others > 0.1 or self.forks > 5 * self.seconds

    def lines(self) -> list[str]:
        """The account for people."""
        said = [f"{self.seconds:.2f} s of {self.cores} cores, {self.forks} tasks made"]
        said += [f"  {name:<24} {spent:7.3f} s" for name, spent in self.parts.items()]
        said += [f"  {'all of these':<24} {self.sum:7.3f} s"]
        said += [
            f"  {name:<24} {total:7.3f} s, differs by {100 * (self.sum / total - 1):+.2f} %"
            for name, total in self.totals.items()
        ]
        return said


def look(labs: LabClient, lab: Lab) -> Look:
    """Look now; the machine must have cgroup v2."""
    group = {name: lab.group(name) for name in (*lab.nodes, MIDDLE)}
    parts = {
        ("links (middle node)" if name == MIDDLE else f"node {name}"): cgroups.used(folder).total
        for name, folder in group.items()
        if folder is not None
    }
    assert labs.unified is not None
    parts["server"] = cgroups.used(labs.unified / "server").total
    parts["command"] = keep_awake.process_seconds()
    parts["ksoftirqd"] = sum(softirq.seconds().values())
    parts["kernel workers"] = sum(softirq.workers().values())
    instead = sum(keep_awake.interrupted().values())  # which the kernel has billed to the loops
    parts[IDLE] = sum(softirq.unbilled().values())
    parts[OTHERS] = _others(labs.unified.name)
    loops = keep_awake.own_seconds()
    counted = Path("/proc/stat").read_text()
    fields = [int(word) / _TICK for word in counted.split("\n", 1)[0].split()[1:9]]
    user, nice, system, idle, waiting, irq, soft, _ = fields
    now = time.monotonic()
    ran = softirq.ran()
    return Look(
        now,
        parts,
        user + nice + system + irq + soft - loops,
        now * (os.cpu_count() or 1) - idle - waiting - loops,
        None if ran is None else ran - loops + parts[IDLE] - instead,
        next(int(line.split()[1]) for line in counted.splitlines() if line.startswith("processes ")),
    )


def between(before: Look, after: Look) -> Account:
    """What was used between two looks."""
    totals = {
        SAMPLED: after.busy - before.busy,
        "/proc/stat, not idle": after.awake - before.awake,
    }
    if before.exact is not None and after.exact is not None:
        totals["all tasks, and softirq without"] = after.exact - before.exact
    return Account(
        after.time - before.time,
        {name: after.parts[name] - before.parts[name] for name in after.parts},
        totals,
        os.cpu_count() or 1,
        after.forks - before.forks,
    )


async def busy(labs: LabClient, lab: Lab, address: str, seconds: float) -> Account:
    """The account of so many seconds in which four TCP streams fill the path from node a to an address of node b."""
    server = await lab.nodes["b"].spawn(["iperf3", "-s", "-1"])
    await lab.nodes["b"].until({"kind": "tcp-port", "port": 5201}, 5)
    argv = ["iperf3", "-t", str(round(seconds + 1)), "-P", "4", "-c", address]
    client = asyncio.ensure_future(lab.nodes["a"].run(argv, timeout=seconds + 20))
    await asyncio.sleep(0.5)
    before = look(labs, lab)
    await asyncio.sleep(seconds)
    account = between(before, look(labs, lab))
    assert (await client).code == 0
    await server.wait()
    return account


def _others(lab: str) -> float:
    """CPU seconds of every process outside a command's control groups, and of the children that it has waited for.

    Without the command itself and the kernel's threads that have a part of their own. A difference of two such sums is right also for processes that ended between.
    """
    apart = {os.getpid(), *softirq.threads()}
    total = 0.0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in apart:
            continue
        try:
            groups = Path("/proc", name, "cgroup").read_text()
            if f"/{lab}/" in groups or f"/{lab}{keep_awake.SUFFIX}" in groups:
                continue
            words = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(word) for word in words[11:15]) / _TICK  # utime, stime, cutime, cstime: proc_pid_stat(5)
    return total
