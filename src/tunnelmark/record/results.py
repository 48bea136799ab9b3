"""A results folder as frozen data: what was asked (`plan.json`), where it ran, and every attempt.

Layout of a results folder:

    plan.json           what was compared with what: arms, profiles, topologies, workloads, metrics, order
    environment.json    machine, kernel, settings, versions and hashes of programs
    journal.jsonl       one line an attempt, appended and synced as it ends: the source of truth
    inputs/             the study, profile and topology files as they were
    raw/TRIAL/          what every program of that trial printed; raw/TRIAL~2/ at its second attempt
    raw/link.WHEN.../   what the probers printed that verified a link; the name ends in `.blockN` where a cluster's blocks are gathered
    vm/                 what the virtual machine said, where there was one; vm.2/ ... of a run that was resumed
    samples.parquet, trials.parquet    the journal as tables (see `parquet_schema`), written at the end
    report.md, report.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tunnelmark.model.attempt import LinkCounts, folder_of
from tunnelmark.model.grades import Grade
from tunnelmark.model.yardstick_lengths import Length
from tunnelmark.plan.design import ALL, Design
from tunnelmark.plan.enough import Enough
from tunnelmark.record.link_check import LinkCheck

PLAN, ENVIRONMENT, JOURNAL = "plan.json", "environment.json", "journal.jsonl"
INPUTS, RAW, VM = "inputs", "raw", "vm"


@dataclass(frozen=True, slots=True)
class ArmInfo:
    """An arm as it was compared: its VPN, options, the arm it must equal, the VPN's title, and its nodes' kernel settings."""

    name: str
    vpn: str
    title: str
    options: Mapping[str, Any]
    same_as: str | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)
    inner: str = ""  # the network on top of it in which workloads ran, in words
    cascade: str = (
        ""  # how its tunnels followed each other on a chain: `series` or `nested`; empty: one, from end to end
    )
    programs: Mapping[str, str] = field(default_factory=dict)  # paths of programs of its own, by name
    behind_gateways: bool = False  # it joined two nodes that forward, and the ends were hosts behind those


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as its workload declared it (see `model.metrics.Metric`)."""

    name: str
    unit: str
    title: str
    better: Literal["higher", "lower"]
    compare: Literal["ratio", "difference"]
    primary: bool
    watcher: str = ""  # the collector that reports it (its former name, which results keep); empty: the workload itself
    fills: float = 0.95
    limited_by: str = ""
    feels: str = "transfer"


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """A workload as the study used it; `window` and `warmup` are the planned seconds of one trial.

    `offered`: the bit/s that it offers, None where it takes all that it gets; `offered_by` by profile, where it is a share
    of the link's rate. `short`: why the length that the study states is too short, by path, where it is. `window_by`: the
    window by path, where paths ask for another than the first's. A path is a profile, and a topology where there are several (`path_key`).
    """

    name: str
    workload: str
    title: str
    options: Mapping[str, Any]
    metrics: tuple[MetricInfo, ...]
    window: float
    warmup: float
    offered: float | None = None
    offered_by: Mapping[str, float] = field(default_factory=dict)
    short: Mapping[str, str] = field(default_factory=dict)
    window_by: Mapping[str, float] = field(default_factory=dict)

    def offers(self, profile: str) -> float | None:
        """The rate that the workload offers on links of a profile, in bit/s."""
        return self.offered_by.get(profile, self.offered)

    def window_over(self, profile: str, topology: str) -> float:
        """The planned seconds of one measuring window, without its warm-up, on links of that profile in that topology."""
        return self.window_by.get(path_key(profile, topology), self.window_by.get(profile, self.window))


def path_key(profile: str, topology: str) -> str:
    """How a plan of several topologies calls the way from the first node to the last."""
    return f"{profile} · {topology}"


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """A profile in figures: `rate` in bit/s and `queue` in bytes (forward), None where there is none.

    `impaired`: the link does more than shape, so one stream is not expected to fill it. `strikes` are the shares of
    packets that are lost, copied, corrupted, reordered in the long run (`plan.struck`), forward and back; old results have none.
    `drawn`: the share of lost packets where seed and number decide which are lost (`plan.struck.drawn`), forward and back.
    `wanders`: the mean delay and its deviation in seconds where a jitter is a process in time, forward and back.
    `carried`: the bit/s of full frames in that rate, less than it where frames have an overhead on the wire; None: all of it.
    `back`: rate and carried rate of what flows back, where that has another rate.
    """

    name: str
    title: str
    source: str
    rate: int | None
    queue: int | None
    impaired: bool = False
    strikes: tuple[Mapping[str, float], Mapping[str, float]] = field(default_factory=lambda: ({}, {}))
    carried: int | None = None
    wanders: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)
    drawn: tuple[float | None, float | None] = (None, None)
    back: tuple[int, int] | None = None

    def rate_of(self, *, back: bool = False) -> int | None:
        """The rate of one direction in bit/s."""
        return self.back[0] if back and self.back is not None else self.rate

    def carried_of(self, *, back: bool = False) -> int | None:
        """The bit/s of full frames in the rate of one direction."""
        return self.back[1] if back and self.back is not None else self.carried or self.rate


@dataclass(frozen=True, slots=True)
class TopologyInfo:
    """A topology: its nodes in order, and for each link the nodes and routers that it joins.

    `routers` are those between the nodes, with what each does beyond forwarding in words. `own` names the profile of each
    link that does not have the study's.
    """

    name: str
    title: str
    nodes: tuple[str, ...]
    links: Mapping[str, tuple[str, ...]]
    routers: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanInfo:
    """What was asked; `trials` are the ids of all trials in the order in which they run."""

    study: str
    title: str
    description: str
    seed: int
    blocks: int
    arms: tuple[ArmInfo, ...]
    profiles: tuple[ProfileInfo, ...]
    topologies: tuple[TopologyInfo, ...]
    workloads: tuple[WorkloadInfo, ...]
    trials: tuple[str, ...]
    smoke: bool = False
    full: bool = False
    watch: tuple[str, ...] = ()  # the collectors of every trial
    attempts: int = 3  # of a trial at most, where the laboratory has spoilt those before
    replacements: int = 0  # blocks at most beyond the planned ones
    # Of each node, as asked for; None: as many as the machine had for it, in results written before.
    cores: int | None = None
    extended: tuple[int, ...] = ()  # how many blocks it had before, each time that more were asked for
    enough: Enough | None = None  # until when it adds blocks by itself; `blocks` is then what it has come to
    design: Design = ALL  # what of all combinations is measured


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One value; `time` None means the whole window."""

    metric: str
    unit: str
    value: float
    time: float | None = None


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One attempt as it is in the journal (see `model.attempt.Attempt` for the meaning of each field)."""

    trial: str
    position: int
    block: int
    arm: str
    profile: str
    topology: str
    workload: str
    link: str
    outcome: Literal["ok", "failed", "void"]
    started: float
    phases: Mapping[str, float]
    samples: tuple[SampleRow, ...] = ()
    first_packet: Mapping[str, float] = field(default_factory=dict)
    host: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    message: str | None = None
    hint: str | None = None
    log: str | None = None
    raw: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 1
    grade: Grade | None = None  # of a result (see `model.grades`)
    causes: tuple[str, ...] = ()  # why it is not good
    grades: Mapping[str, Grade] = field(default_factory=dict)  # by what metrics feel, where not good
    wanting: bool = False  # a primary metric is void, though others may be used
    counted: tuple[LinkCounts, ...] = ()  # on emulated links
    limits: Mapping[str, float] = field(default_factory=dict)  # what held the traffic back (`run.collectors.limits`)

    @property
    def folder(self) -> str:
        """The name of its folder of raw output."""
        return folder_of(self.trial, self.attempt)


@dataclass(frozen=True, slots=True)
class Session:
    """One run or resumption of the study: when it began, and its wall seconds (None while it has no end).

    `boot` is the machine's id of that boot, empty where it was not recorded or has no meaning. What was measured in it, by the journal's order:
    `attempts` by trial and number, `looks` at links by profile, topology and when they began. Blocks of a cluster are sessions of their own, and may overlap in time.
    """

    started: float
    wall: float | None
    boot: str = ""
    attempts: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False)
    looks: frozenset[tuple[str, str, float]] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class YardstickRow:
    """A look at the machine: what each yardstick took in nanoseconds (median and quartiles of slices), and why one is not there."""

    when: Literal["before", "after"]
    started: float
    lengths: Mapping[str, Length] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    core: int | None = None
    other: int | None = None


@dataclass(frozen=True, slots=True)
class BlockDecision:
    """What a run decided after `blocks` blocks, and why in words: `more`, up to `to` blocks, or why it ended.

    `precise`: every ratio that can be is. `nothing`: none can be. `cap`: there are as many blocks as there may be. `budget`: the
    time is up. `found`: the change that was asked about is found or excluded. `spent` seconds since the run began, without pauses between its sessions.
    """

    blocks: int
    decided: Literal["more", "precise", "nothing", "cap", "budget", "found"]
    to: int
    spent: float
    why: str


@dataclass(frozen=True, slots=True)
class Results:
    """Everything a report needs; `finished` is false while trials of the plan have no attempt yet."""

    path: Path
    plan: PlanInfo
    environment: Mapping[str, Any]
    trials: tuple[TrialRow, ...]
    sessions: tuple[Session, ...]
    link_checks: tuple[LinkCheck, ...] = ()
    yardsticks: tuple[YardstickRow, ...] = ()
    decisions: tuple[BlockDecision, ...] = ()  # of a run that adds blocks by itself, in order

    @property
    def finished(self) -> bool:
        return {row.trial for row in self.trials} >= set(self.plan.trials)
