"""The content of a results folder as frozen data: the plan, the environment in which it ran, and every attempt.

Layout of a results folder:

    plan.json           what was compared with what: arms, profiles, topologies, workloads, metrics, order
    environment.json    machine, kernel, settings, versions and hashes of programs
    journal.jsonl       one line per attempt, appended and synced when it ends: the source of truth
    inputs/             the study, profile and topology files as they were when the run began
    raw/TRIAL/          the output of every program of that trial; raw/TRIAL~2/ is that of its second attempt
    raw/link.WHEN.../   the output of the probers that checked a link; the name ends in `.blockN` in a cluster
    vm/                 the output of the virtual machine, if there was one; vm.2/ ... after the run was resumed
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
    """An arm as it was compared.

    `title`: the arm's own title, or that of its VPN. `same_as`: the arm that it must equal (A/A); None if it has no
    twin. `sysctls`: the kernel settings of its nodes.
    """

    name: str
    vpn: str
    title: str
    options: Mapping[str, Any]
    same_as: str | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)
    inner: str = ""  # the network on top of the VPN in which the workloads ran, in words
    cascade: str = (
        ""  # how its tunnels followed each other on a chain: `series` or `nested`; empty: one, from end to end
    )
    programs: Mapping[str, str] = field(default_factory=dict)  # the paths of the arm's own programs, by name
    behind_gateways: bool = False  # the VPN joined two gateways, and the traffic was between hosts behind them


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as its workload or its collector declared it (see `model.metrics.Metric`)."""

    name: str
    unit: str
    title: str
    better: Literal["higher", "lower"]
    compare: Literal["ratio", "difference"]
    primary: bool
    watcher: str = ""  # the collector that reports it; "" if the workload does
    fills: float = 0.95
    limited_by: str = ""
    feels: str = "transfer"


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """A workload as the study used it; `window` and `warmup` are the planned seconds of one trial.

    `offered`: the bit/s that it offers; None if it takes all that it can get, or if `offered_by` has the rates.
    `offered_by`: the bit/s by profile, if they are a share of the link's rate.
    `short`: the reason for each condition in which the length that the study states is too short.
    `window_by`, `warmup_by`: the planned seconds for each condition in which they differ from `window` or `warmup`.
    The key of a condition is the name of its profile; in a plan of several topologies, it is made by `path_key`.
    `serves`: what people do whose traffic is like this; "" if that is not known.
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
    warmup_by: Mapping[str, float] = field(default_factory=dict)
    serves: str = ""

    def offers(self, profile: str) -> float | None:
        """Return the rate in bit/s that the workload offers on links of a profile.

        None if it takes all that it can get.
        """
        return self.offered_by.get(profile, self.offered)

    def window_over(self, profile: str, topology: str) -> float:
        """Return the planned seconds of one measuring window, without warm-up, on links of that profile in that topology."""
        return self.window_by.get(path_key(profile, topology), self.window_by.get(profile, self.window))

    def warmup_over(self, profile: str, topology: str) -> float:
        """Return the planned seconds of the warm-up of one trial on links of that profile in that topology."""
        return self.warmup_by.get(path_key(profile, topology), self.warmup_by.get(profile, self.warmup))

    @property
    def windows(self) -> tuple[float, ...]:
        """The planned seconds of a measuring window in all conditions, each length once, the shortest first."""
        return tuple(sorted({self.window, *self.window_by.values()}))

    @property
    def warmups(self) -> tuple[float, ...]:
        """The planned seconds of a warm-up in all conditions, each length once, the shortest first."""
        return tuple(sorted({self.warmup, *self.warmup_by.values()}))


def path_key(profile: str, topology: str) -> str:
    """Return the key of a condition in the mappings of `WorkloadInfo`, as `profile · topology`.

    A plan with one topology has the name of the profile as the key instead.
    """
    return f"{profile} · {topology}"


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """A profile in figures. `strikes`, `drawn` and `wanders` are pairs: for the forward and for the back direction.

    `rate`: the forward rate in bit/s; None without a rate. `queue`: the forward queue in bytes; None if none is stated.
    `impaired`: the link does more than shape, so one stream is not expected to fill it.
    `strikes`: the long-run shares of packets that are lost, copied, corrupted or reordered, by the keys that
    `plan.struck.shares` names; empty in old results.
    `drawn`: the share of lost packets, if seed and packet number alone decide which packets are lost; else None.
    `wanders`: mean and standard deviation of the delay in seconds, if the jitter is a process in time; else None.
    `carried`: the bit/s of full Ethernet frames that `rate` carries: less than `rate` if each frame has an overhead on
    the wire. None without a rate, and in old results, which count the whole rate as carried.
    `back`: `rate` and `carried` of the back direction; None if the back direction has no rate, or the forward rate.
    `undelayed`: jitter puts packets out of order and lets some pass without any delay (`plan.struck.overtakes_undelayed`);
    False in old results.
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
    undelayed: bool = False

    def rate_of(self, *, back: bool = False) -> int | None:
        """Return the rate of one direction in bit/s; None if the profile has no rate.

        A back direction without a rate gets the forward rate, because results do not distinguish the two cases.
        """
        return self.back[0] if back and self.back is not None else self.rate

    def carried_of(self, *, back: bool = False) -> int | None:
        """Return the bit/s of full Ethernet frames that the rate of one direction carries; None without a rate.

        Old results do not record these bit/s: the whole rate is returned for them.
        """
        return self.back[1] if back and self.back is not None else self.carried or self.rate


@dataclass(frozen=True, slots=True)
class TopologyInfo:
    """A topology: its nodes in order, and for each link the nodes and routers that it joins.

    `routers`: the routers between the nodes, each with a text that says what it does beyond forwarding.
    `own`: for each link that does not have the study's profile, the name of the profile that it has.
    """

    name: str
    title: str
    nodes: tuple[str, ...]
    links: Mapping[str, tuple[str, ...]]
    routers: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanInfo:
    """The plan of a run; `trials` are the ids of all trials in the order in which they run."""

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
    attempts: int = 3  # how many attempts a trial may have if the laboratory spoils them
    replacements: int = 0  # how many blocks may be added to replace spoilt ones
    # The cores of each node, as asked for. None in older results: each node had as many as the machine could give.
    cores: int | None = None
    extended: tuple[int, ...] = ()  # the number of blocks before each time that a user asked for more
    enough: Enough | None = None  # when it stops adding blocks by itself; `blocks` is then their present number
    design: Design = ALL  # which of all combinations are measured


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One value of a metric. `time`: seconds since the window began; None if the value is that of the whole window."""

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
    grade: Grade | None = None  # of the result (see `model.grades`); None if there is none
    causes: tuple[str, ...] = ()  # why it is not good
    grades: Mapping[str, Grade] = field(default_factory=dict)  # by what metrics are sensitive to (`feels`), if not good
    wanting: bool = False  # a primary metric is void, though others may be used
    counted: tuple[LinkCounts, ...] = ()  # on emulated links
    limits: Mapping[str, float] = field(default_factory=dict)  # what held the traffic back (`run.collectors.limits`)

    @property
    def folder(self) -> str:
        """The name of the attempt's folder of raw output."""
        return folder_of(self.trial, self.attempt)


@dataclass(frozen=True, slots=True)
class Session:
    """One run or resumption of the study. `wall`: how many seconds it took; None if it was broken off.

    `started`: when the session began, in seconds since the Unix epoch.
    `boot`: the id of the machine's boot; "" if it was not recorded, and in a virtual machine, which boots for each run.
    `attempts`: the trial id and the number of each attempt in the session.
    `looks`: the profile, the topology and the start (`LinkCheck.started`) of each link check in the session.
    Each block of a cluster is a session, so sessions may overlap in time.
    """

    started: float
    wall: float | None
    boot: str = ""
    attempts: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False)
    looks: frozenset[tuple[str, str, float]] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class YardstickRow:
    """The yardsticks of a machine, measured once. `lengths`: the nanoseconds that an operation of each yardstick took.

    `absent`: for each yardstick that could not be measured: the reason. `core`, `other`: the cores that were used, the
    second one for work on two cores; None if nothing was measured.
    """

    when: Literal["before", "after"]
    started: float
    lengths: Mapping[str, Length] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    core: int | None = None
    other: int | None = None


@dataclass(frozen=True, slots=True)
class BlockDecision:
    """The decision of a run, after `blocks` blocks, whether it measures more blocks; `why` gives the reason in words.

    `decided`: `more`, or a reason to end. `precise`: every ratio that can become precise enough is precise enough.
    `nothing`: no ratio can become precise enough, or the change can neither be found nor excluded. `cap`: the run has
    the most blocks that it may have. `budget`: the time is up. `found`: the change is found or excluded.
    `to`: the number of blocks after which the next decision is due; equal to `blocks` if the run ends.
    `spent`: seconds since the run began, without the time between its sessions.
    """

    blocks: int
    decided: Literal["more", "precise", "nothing", "cap", "budget", "found"]
    to: int
    spent: float
    why: str


@dataclass(frozen=True, slots=True)
class Results:
    """All data of a results folder that a report needs.

    `finished` is False if a trial of the plan has no attempt yet.
    """

    path: Path
    plan: PlanInfo
    environment: Mapping[str, Any]
    trials: tuple[TrialRow, ...]
    sessions: tuple[Session, ...]
    link_checks: tuple[LinkCheck, ...] = ()
    yardsticks: tuple[YardstickRow, ...] = ()
    decisions: tuple[BlockDecision, ...] = ()  # in order; only of a run that adds blocks by itself

    @property
    def finished(self) -> bool:
        return {row.trial for row in self.trials} >= set(self.plan.trials)

    @property
    def not_carried(self) -> Mapping[str, Mapping[str, Any]]:
        """The profiles of which this machine did not carry a full load on time, by the test before the run, with what it found."""
        measured = self.environment.get("measured")
        looked = measured.get("links", {}) if isinstance(measured, Mapping) else {}
        return {profile: found for profile, found in looked.items() if found["state"] != "fits"}
