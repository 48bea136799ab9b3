"""CPU of the nodes: seconds, cores, per gigabyte through the overlay and per packet on the wire, sender and receiver apart.

Everything that runs on a node counts: the VPN, the workload's own programs, and the kernel's work for both, which on real
hosts would be paid for too. The accounts are the nodes' control groups (`cpu.stat`, exact to the microsecond), and of the
cores that are one node's own `ksoftirqd` and the softirq work that ran while they had no task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tunnelmark.errors import LabError
from tunnelmark.lab import cgroups, softirq
from tunnelmark.lab.lab import MIDDLE
from tunnelmark.run.watch import _counts
from tunnelmark.run.watch.base import Eye, Scene, Seen, Since, Watcher, both
from tunnelmark.workloads.base import Metric, Sample

METRICS = (
    *both("cpu_per_gb", "s/GB", "CPU per gigabyte", feels="processor"),
    *both("cpu_per_packet", "us", "CPU per wire packet", feels="processor"),
    *both("cpu", "ms/s", "CPU", feels="processor"),
    *both("cpu_user", "ms/s", "CPU in user space", feels="processor"),
    *both("cpu_kernel", "ms/s", "CPU in the kernel", feels="processor"),
    *both("cpu_softirq", "ms/s", "CPU in softirq on the node's cores", compare="difference", feels="processor"),
    *both("cpu_ksoftirqd", "ms/s", "CPU of ksoftirqd on the node's cores", compare="difference", feels="processor"),
    *both(
        "cpu_unbilled",
        "ms/s",
        "CPU in softirq while the node's cores had no task",
        compare="difference",
        feels="processor",
    ),
    Metric("cpu_links", "ms/s", "CPU of the links", "lower", "difference", feels="processor"),
)
EVERY = 0.5

LEAST, FEW = 1_000_000, 1000
"""Bytes through the overlay, and packets on the underlay, from which on their cost is told: below, what the nodes do
anyway is most of it."""

TOO_LITTLE = "less than 1 MB passed the overlay"
TOO_FEW = "fewer than 1,000 packets passed the underlay"
INCOMPLETE = "no cgroup v1 counts the tasks of a core here, so softirq work on idle cores is in no figure"
SHARED = "its cores are another node's too, so softirq work on them cannot be told apart"


@dataclass(frozen=True, slots=True)
class _Look:
    time: float
    used: dict[str, cgroups.Used]
    softirq: dict[str, float]  # of ksoftirqd
    unbilled: dict[str, float]  # in softirq with no task
    handling: dict[str, float]  # in softirq, in whatever context
    traffic: dict[str, _counts.Traffic]


class _Cpu:
    def __init__(self, scene: Scene) -> None:
        if scene.group(MIDDLE) is None:
            raise LabError("there is no cgroup v2 hierarchy to account CPU with", hint="mount cgroup2")
        self._scene = scene
        self._owners = softirq.owners(scene.lab.cores)
        self._complete = bool(softirq.unbilled())
        self._series: list[Sample] = []

    async def begin(self) -> None:
        self._since = Since()
        self._first = self._last = self._look()

    async def sample(self) -> None:
        look = self._look()
        self._series += [
            Sample(f"cpu_{end}", self._cpu(self._last, look, node), round(look.time, 3))
            for end, node in self._scene.ends.items()
        ]
        self._last = look

    async def end(self) -> Seen:
        look, first = self._look(), self._first
        took = look.time - first.time
        samples, notes = list(self._series), dict[str, str]()
        for end, node in self._scene.ends.items():
            user, kernel = (
                1000 * (getattr(look.used[node], kind) - getattr(first.used[node], kind)) / took
                for kind in ("user", "system")
            )
            values = {"cpu": self._cpu(first, look, node), "cpu_user": user, "cpu_kernel": kernel}
            if node in self._owners.values():
                values["cpu_softirq"] = 1000 * (look.handling[node] - first.handling[node]) / took
                values["cpu_ksoftirqd"] = 1000 * (look.softirq[node] - first.softirq[node]) / took
                if self._complete:
                    values["cpu_unbilled"] = 1000 * max(0.0, look.unbilled[node] - first.unbilled[node]) / took
                else:
                    notes[f"cpu_unbilled_{end}"] = INCOMPLETE
            else:
                notes |= {f"{name}_{end}": SHARED for name in ("cpu_softirq", "cpu_ksoftirqd", "cpu_unbilled")}
            seconds = values["cpu"] / 1000 * took
            passed = look.traffic[node].since(first.traffic[node])
            if passed.inner_bytes >= LEAST:
                values["cpu_per_gb"] = seconds / (passed.inner_bytes / 1e9)
            else:
                notes[f"cpu_per_gb_{end}"] = TOO_LITTLE
            if passed.wire_packets >= FEW:
                values["cpu_per_packet"] = seconds / passed.wire_packets * 1e6
            else:
                notes[f"cpu_per_packet_{end}"] = TOO_FEW
            samples += [Sample(f"{name}_{end}", value) for name, value in values.items()]
        links = look.used[MIDDLE].total - first.used[MIDDLE].total
        return Seen((*samples, Sample("cpu_links", 1000 * links / took)), notes)

    @staticmethod
    def _cpu(before: _Look, after: _Look, node: str) -> float:
        """Milliseconds of CPU a second, softirq work included where it is the node's own."""
        seconds = after.used[node].total - before.used[node].total + after.softirq[node] - before.softirq[node]
        seconds += max(0.0, after.unbilled[node] - before.unbilled[node])
        return 1000 * seconds / max(after.time - before.time, 1e-9)

    def _look(self) -> _Look:
        scene = self._scene
        groups = {node: group for node in (*scene.lab.nodes, MIDDLE) if (group := scene.group(node)) is not None}
        return _Look(
            self._since(),
            {node: cgroups.used(group) for node, group in groups.items()},
            self._owned(softirq.seconds()),
            self._owned(softirq.unbilled()),
            self._owned(softirq.handling()),
            {node: _counts.traffic(scene, node) for node in scene.ends.values()},
        )

    def _owned(self, by_core: Mapping[int, float]) -> dict[str, float]:
        """What belongs to each node, by the cores that are its alone."""
        own = dict.fromkeys(self._scene.lab.nodes, 0.0)
        for core, node in self._owners.items():
            own[node] += by_core.get(core, 0.0)
        return own


def _watch(scene: Scene) -> Eye:
    return _Cpu(scene)


WATCHER = Watcher("cpu", "CPU of the nodes", METRICS, _watch, every=EVERY, light=True)
