"""Measures the CPU of sender and receiver: per second, per gigabyte through the overlay, and per packet on the wire.

Everything that runs on a node counts: the VPN, the workload's programs, and the kernel's work for both, which real
hosts would need as well. The figures are from the nodes' control groups (`cpu.stat`, exact to the microsecond). They
lack some work of the kernel, which is added for each core that only one node uses: `ksoftirqd`, the workers bound to
the core, and softirq work that ran while the core had no task. The CPU of the links, which are not part of a host, is
measured separately in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from tunnelmark.errors import LabError
from tunnelmark.host import softirq
from tunnelmark.lab.labs import MIDDLE
from tunnelmark.linux import cgroups
from tunnelmark.model.metrics import Metric, Sample
from tunnelmark.run.collectors import _counts
from tunnelmark.run.collectors.base import Collected, Collector, CollectorContext, Stopwatch, both

METRICS = (
    *both("cpu_per_gb", "s/GB", "CPU per gigabyte", feels="processor"),
    Metric(
        "cpu_per_gb_shared",
        "s/GB",
        "CPU per gigabyte of the kernel on cores that nodes share",
        "lower",
        feels="processor",
    ),
    Metric(
        "cpu_per_gb_lab", "s/GB", "CPU per gigabyte of the laboratory's links", "lower", "difference", feels="processor"
    ),
    Metric(
        "cpu_per_gb_others",
        "s/GB",
        "CPU per gigabyte of all nodes but the ends",
        "lower",
        "difference",
        feels="processor",
    ),
    *both("cpu_per_packet", "us", "CPU per wire packet", feels="processor"),
    *both("cpu", "ms/s", "CPU", feels="processor"),
    *both("cpu_user", "ms/s", "CPU in user space", feels="processor"),
    *both("cpu_kernel", "ms/s", "CPU in the kernel", feels="processor"),
    *both(
        "cpu_softirq",
        "ms/s",
        "softirq work on the node's cores, whatever it was for",
        compare="difference",
        feels="processor",
    ),
    *both("cpu_ksoftirqd", "ms/s", "CPU of ksoftirqd on the node's cores", compare="difference", feels="processor"),
    *both("cpu_workers", "ms/s", "CPU of kernel workers on the node's cores", compare="difference", feels="processor"),
    *both(
        "cpu_unbilled",
        "ms/s",
        "CPU in softirq while the node's cores had no task",
        compare="difference",
        feels="processor",
    ),
    Metric("cpu_links", "ms/s", "CPU of the links", "lower", "difference", feels="processor"),
    Metric(
        "cpu_workers_elsewhere",
        "ms/s",
        "CPU of kernel workers on cores of no node",
        "lower",
        "difference",
        feels="processor",
    ),
)
EVERY = 0.5

LEAST, FEW = 1_000_000, 1000
"""The least overlay bytes and underlay packets for which a cost is reported: fewer mostly show what nodes do anyway."""

TOO_LITTLE = "less than 1 MB passed the overlay"
TOO_FEW = "fewer than 1,000 packets passed the underlay"
INCOMPLETE = "softirq work that interrupts no task is in no figure"
SHARED = (
    "its cores are shared with another node: what the kernel's threads and softirq work do there cannot be separated; it is in "
    "neither node's figures, but in cpu_per_gb_shared"
)
BESIDE = (
    "the links have no core of their own: what the kernel does for them is in the figures of the core's node, and only their "
    "emulator is counted apart"
)

SECONDS = "seconds_"
"""The prefix of keys of `Collected.sums` that hold an end's CPU seconds.

The other keys are: an end's wire packets (`_counts.PACKETS`), `bytes` through the sender's overlay interface, `UNKNOWN` if
these are only those since the interface was created again, the CPU seconds of the `links`, of `others` (the nodes between) and `shared` (shared cores), and the number of the links' own
cores (`apart`).
"""

UNKNOWN = "bytes_unknown"
"""The key of `Collected.sums` that is 1 if the sender's overlay interface was created again during the traffic, else 0."""

_EVERYBODY = ""
"""The name under which cores are listed that several nodes share; no node has this name."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """CPU seconds of the kernel's work on some cores that no control group is charged for."""

    softirq: float = 0.0  # of ksoftirqd
    workers: float = 0.0
    unbilled: float = 0.0  # in softirq with no task
    handling: float = 0.0  # all softirq work, in any context; most of it is contained in other figures

    @property
    def seconds(self) -> float:
        """The seconds that must be added to those of a control group."""
        return self.softirq + self.workers + max(self.unbilled, 0.0)

    def since(self, before: _Kernel) -> _Kernel:
        """Return the CPU seconds since an earlier look."""
        return _Kernel(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class _Look:
    time: float
    used: dict[str, cgroups.Used]
    kernel: dict[str, _Kernel]
    elsewhere: float  # of workers on cores of no node
    traffic: dict[str, _counts.TrafficCounts]


class _Cpu:
    def __init__(self, context: CollectorContext) -> None:
        members = dict(context.nodes) | ({} if context.middle is None else {MIDDLE: context.middle})
        self._groups = {name: each.group for name, each in members.items() if each.group is not None}
        if len(self._groups) < len(members):
            raise LabError("there is no cgroup v2 hierarchy to account CPU with", hint="mount cgroup2")
        self._context = context
        placed = {name: tuple(node.cores) for name, node in context.nodes.items()}
        self._nodes_cores = {core for own in placed.values() for core in own}
        owners = softirq.owners(placed)
        self._owned: dict[str, Sequence[int]] = {_EVERYBODY: tuple(sorted(self._nodes_cores - set(owners)))}
        for core, node in owners.items():
            self._owned[node] = (*self._owned.get(node, ()), core)
        if context.middle is not None:
            self._owned[MIDDLE] = tuple(context.middle.cores)
        self._lacking = softirq.lacking()
        self._series: list[Sample] = []

    async def begin(self) -> None:
        self._since = Stopwatch()
        self._first = self._last = self._look()

    async def sample(self) -> None:
        look = self._look()
        self._series += [
            Sample(f"cpu_{end}", self._cpu(self._last, look, node), round(look.time, 3))
            for end, node in self._context.ends.items()
        ]
        self._last = look

    async def end(self) -> Collected:
        look, first = self._look(), self._first
        took = look.time - first.time
        samples, notes, sums = list(self._series), dict[str, str](), dict[str, float]()
        passed = {end: look.traffic[node].since(first.traffic[node]) for end, node in self._context.ends.items()}
        for end, node in self._context.ends.items():
            user, kernel = (
                1000 * (getattr(look.used[node], kind) - getattr(first.used[node], kind)) / took
                for kind in ("user", "system")
            )
            values = {"cpu": self._cpu(first, look, node), "cpu_user": user, "cpu_kernel": kernel}
            if node in self._owned:
                spent = look.kernel[node].since(first.kernel[node])
                values["cpu_softirq"] = 1000 * spent.handling / took
                values["cpu_ksoftirqd"] = 1000 * spent.softirq / took
                values["cpu_workers"] = 1000 * spent.workers / took
                if self._lacking is None:
                    values["cpu_unbilled"] = 1000 * max(0.0, spent.unbilled) / took
                else:
                    notes[f"cpu_unbilled_{end}"] = f"{INCOMPLETE}: {self._lacking}"
            else:
                kinds = ("cpu_softirq", "cpu_ksoftirqd", "cpu_workers", "cpu_unbilled")
                notes |= {f"{name}_{end}": SHARED for name in kinds}
            seconds = values["cpu"] / 1000 * took
            if passed[end].overlay:
                notes[f"cpu_per_gb_{end}"] = _counts.CREATED_AGAIN
            elif passed[end].inner_bytes >= LEAST:
                values["cpu_per_gb"] = seconds / (passed[end].inner_bytes / 1e9)
            else:
                notes[f"cpu_per_gb_{end}"] = TOO_LITTLE
            sums[f"{SECONDS}{end}"] = seconds
            samples += [Sample(f"{name}_{end}", value) for name, value in values.items()]
        sums |= _counts.wire_packets(self._context.card, passed)
        if "source" in passed:
            sums["bytes"], sums[UNKNOWN] = passed["source"].inner_bytes, float(bool(passed["source"].overlay))
        if self._context.middle is not None:
            links = self._cpu(first, look, MIDDLE)
            samples += [
                Sample("cpu_links", links),
                Sample("cpu_workers_elsewhere", 1000 * (look.elsewhere - first.elsewhere) / took),
            ]
            sums["links"], sums["apart"] = links / 1000 * took, len(self._owned[MIDDLE])
        if between := set(self._context.nodes) - set(self._context.ends.values()):
            sums["others"] = sum(self._cpu(first, look, node) for node in between) / 1000 * took
        if self._owned[_EVERYBODY]:
            sums["shared"] = look.kernel[_EVERYBODY].since(first.kernel[_EVERYBODY]).seconds
        return Collected(tuple(samples), notes, sums=sums)

    @staticmethod
    def _cpu(before: _Look, after: _Look, node: str) -> float:
        """Return a node's CPU in ms per second; the kernel's work is included on cores that only this node uses."""
        seconds = after.used[node].total - before.used[node].total
        if node in after.kernel:
            seconds += after.kernel[node].since(before.kernel[node]).seconds
        return 1000 * seconds / max(after.time - before.time, 1e-9)

    def _look(self) -> _Look:
        context = self._context
        now, used = self._since(), {node: cgroups.used(group) for node, group in self._groups.items()}
        kinds = (softirq.seconds(), workers := softirq.workers(), softirq.unbilled(), softirq.handling())
        kernel = {owner: _Kernel(*(_sum(by_core, cores) for by_core in kinds)) for owner, cores in self._owned.items()}
        if MIDDLE in kernel:
            kernel[MIDDLE] = replace(
                kernel[MIDDLE], workers=0.0
            )  # links have no work for them: it is a VPN's, or others'
        return _Look(
            now,
            used,
            kernel,
            sum(spent for core, spent in workers.items() if core not in self._nodes_cores),
            {node: _counts.traffic(context, node) for node in context.ends.values()},
        )


def conclude(seen: Collected) -> Collected:
    """Return samples of the CPU per wire packet of each end, and of the CPU per gigabyte of all that is not an end.

    There are three figures per gigabyte through the sender's overlay interface: for the other nodes, for the links, and
    for the kernel's work on cores that nodes share. The samples of `seen` are not repeated.
    """
    sums = seen.sums
    samples, notes = list[Sample](), dict[str, str]()
    for end in ("source", "target"):
        if (packets := sums.get(f"{_counts.PACKETS}{end}", 0.0)) < FEW:
            notes[f"cpu_per_packet_{end}"] = TOO_FEW
        elif (seconds := sums.get(f"{SECONDS}{end}")) is not None:
            samples.append(Sample(f"cpu_per_packet_{end}", seconds / packets * 1e6))
    enough, gigabytes = sums.get("bytes", 0.0) >= LEAST, sums.get("bytes", 0.0) / 1e9
    if not sums.get("apart"):
        notes["cpu_per_gb_lab"] = BESIDE
    if sums.get(UNKNOWN):
        enough, notes["cpu_per_gb_lab"] = False, _counts.CREATED_AGAIN
    elif not enough:
        notes["cpu_per_gb_lab"] = TOO_LITTLE
    elif sums.get("links", 0.0) > 0 or sums.get("apart"):
        samples.append(Sample("cpu_per_gb_lab", sums["links"] / gigabytes))
    for kind in ("others", "shared"):
        if enough and kind in sums:
            samples.append(Sample(f"cpu_per_gb_{kind}", sums[kind] / gigabytes))
    return Collected(tuple(samples), notes)


def _sum(by_core: Mapping[int, float], cores: Sequence[int]) -> float:
    return sum(by_core.get(core, 0.0) for core in cores)


COLLECTOR = Collector(
    "cpu", "CPU of the nodes", METRICS, _Cpu, every=EVERY, light=True, looks_at="all", conclude=conclude
)
