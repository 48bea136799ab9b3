"""Runs the collectors of a trial whose nodes are on several hosts.

Each host measures the nodes that are on it. The results of all hosts are joined here.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.lab.labs import Lab
from tunnelmark.model import grades
from tunnelmark.model.metrics import Sample
from tunnelmark.plan.routes import further_ways
from tunnelmark.run import collected_plain
from tunnelmark.run.collection import Collection, CollectorFinding, concluded
from tunnelmark.run.collectors._link_drops import LinkDrops
from tunnelmark.run.collectors.base import Collector
from tunnelmark.run.deploy import RunningDeployment
from tunnelmark.run.observed import described_nodes, observed

_OF_ALL = ("lab_cpu", "softirq_cpu")
_PAUSED = 0.005  # pauses of a host are mentioned if they are more than this share of a trial
MACHINE = "each node has the cores and the memory of a host of its own"


class CollectionOverHosts:
    """The collectors of one trial on all hosts of its lab, used like a `Collection` after `prepare` was called."""

    def __init__(self, lab: Lab, source: str, target: str, raw: Path, collectors: Sequence[Collector]) -> None:
        self._lab, self._raw = lab, raw
        self._collectors = {each.name: each for each in collectors if each.looks_at != "machine"}
        self.notes = {each.name: MACHINE for each in collectors if each.looks_at == "machine"}
        self.refused: dict[str, str] = {}
        """For each collector that could not measure on one of the hosts, or whose host was lost: the reason."""

        self.limits: dict[str, float] = {}
        self.machine: dict[str, float] = {}
        """What the hosts did besides the lab, in the form of `Attempt.host`; empty until `end`."""
        ends = {"source": source, "target": target}
        self._drops = LinkDrops(lab, ends, further_ways(lab.topology, source, target))
        self._links = "limits" in self._collectors
        self._lost: dict[str, str] = {}

    async def prepare(self, asked: Mapping[str, Any]) -> None:
        """Let every host make its collectors; call it while the mesh is idle.

        `asked`: what the hosts need for that. `source` and `target`: the names of both ends. `nodes`: as
        `observed.described_nodes` returns them. `card`: that of the profile. `begun`: when the VPN was started, in
        seconds of the nodes' CLOCK_MONOTONIC.
        """
        await self._ask("prepare", collectors=list(self._collectors), **asked)

    async def begin(self) -> None:
        """Let every host begin to collect; call it when the traffic's client is about to start."""
        if self._links:
            await self._drops.begin()
        await self._ask("begin")

    async def end(self) -> tuple[Sample, ...]:
        """Stop the collectors of all hosts, and return their joined samples; call it when the traffic is over.

        The times of series count from `begin`. Now these are complete: `notes` (why a metric is absent), `refused` (why
        a collector could not measure), `limits` (what held the traffic back), and `machine` (what the hosts did besides
        the lab, in the form of `Attempt.host`).
        """
        answers = await self._ask("end")
        if self._links:
            self.limits |= await self._drops.since()
        machines = {host: answer["machine"] for host, answer in answers.items()}
        self.machine = of_hosts(machines)
        if disturbed := disturbances(machines):
            self.notes["hosts"] = disturbed
        files: dict[str, str] = {}
        for answer in answers.values():
            for name, text in answer["files"].items():
                files[name] = collected_plain.joined(files[name], text) if name in files else text
        for name, text in files.items():
            (self._raw / name).write_text(text)
        said = {host: [collected_plain.read(each) for each in answer["findings"]] for host, answer in answers.items()}
        findings = together(said, self._lost)
        self.refused = {each.collector.name: each.refused for each in findings if each.refused}
        notes, limits, samples = concluded(findings, self._raw)
        self.notes |= notes
        self.limits |= limits
        return samples

    async def _ask(self, what: str, **fields: Any) -> dict[str, dict[str, Any]]:
        """Send a request to each host, and return the answers. A host that refuses or is lost does not fail a trial."""
        found = {}
        for host, answer in (await self._lab.ask_hosts("collect", what=what, **fields)).items():
            if isinstance(answer, LabError):
                self._lost.setdefault(host, answer.message)
            else:
                found[host] = answer
        return found


def of_hosts(machines: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Join the figures of several hosts to one set of figures, in the form of `Attempt.host`.

    `machines`: the figures of each host. The CPU of the lab and of softirq work is added up. Of any other figure, the
    highest value of a host is taken, because the most disturbed host decides.
    """
    names = dict.fromkeys(name for machine in machines.values() for name in machine)
    return {
        name: (sum if name in _OF_ALL else max)(machine[name] for machine in machines.values() if name in machine)
        for name in names
    }


def disturbances(machines: Mapping[str, Mapping[str, float]]) -> str:
    """Say which hosts were disturbed, and how much; "" if none was.

    `machines`: the figures of each host, in the form of `Attempt.host`. A host was disturbed if other work took more
    than `QUIET` cores, or if it paused for more than 0.5 % of the time.
    """
    said = []
    for host, machine in machines.items():
        if (taken := grades.others(machine)) > grades.QUIET:
            said.append(f"other work took {taken:.2f} cores of host {host}")
        if (share := machine.get("pause_share", 0.0)) > _PAUSED:
            said.append(f"host {host} paused for {100 * share:.2g} % of the time")
    return "; ".join(said)


def together(said: Mapping[str, Sequence[CollectorFinding]], lost: Mapping[str, str]) -> list[CollectorFinding]:
    """Join the findings of all hosts to one finding for each collector.

    `said`: the findings of each host. `lost`: for each host that was lost, the reason. If a collector could not measure
    on one of the hosts, or a host was lost, the sums of the other hosts are dropped: they are not those of the whole
    lab.
    """
    found: dict[str, CollectorFinding] = {}
    for host, findings in said.items():
        for each in findings:
            refused = f"host {host}: {each.refused}" if each.refused else ""
            before = found.get(each.collector.name, CollectorFinding(each.collector))
            found[each.collector.name] = CollectorFinding(
                each.collector,
                before.seen.joined(each.seen),
                before.cost + each.cost,
                "; ".join(filter(None, (before.refused, refused))),
            )
    return [_noted(each, "; ".join(filter(None, (each.refused, *lost.values())))) for each in found.values()]


def _noted(finding: CollectorFinding, why: str) -> CollectorFinding:
    if not why:
        return finding
    seen, present = finding.seen, {sample.metric for sample in finding.seen.samples}
    notes = {metric.name: why for metric in finding.collector.metrics if metric.name not in present}
    return replace(finding, seen=replace(seen, notes={**notes, **seen.notes}, sums={}), refused=why)


async def collection_of(
    lab: Lab,
    tunnel: RunningDeployment,
    source: str,
    target: str,
    raw: Path,
    collectors: Sequence[Collector],
    further_ends: Names[str] = frozenset(),
) -> Collection | CollectionOverHosts:
    """Make the collectors of a trial, on this machine or on the hosts of its nodes; call it while the mesh is idle.

    They collect nothing until `begin` is called. `further_ends`: nodes other than `source` and `target` that send and
    receive traffic of the workload, as in a ring.
    """
    if lab.here:
        return Collection(observed(lab, tunnel, source, target, raw, further_ends), collectors)
    made = CollectionOverHosts(lab, source, target, raw, collectors)
    nodes = described_nodes(lab, tunnel, source, target, further_ends)
    await made.prepare(
        {"source": source, "target": target, "card": lab.profile.card, "begun": tunnel.begun, "nodes": nodes}
    )
    return made
