"""Makes `Results` of a known truth: every arm has a true effect, every block and trial its noise, from one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tunnelmark.record.results import (
    ArmInfo,
    MetricInfo,
    PlanInfo,
    ProfileInfo,
    Results,
    SampleRow,
    Session,
    TopologyInfo,
    TrialRow,
    WorkloadInfo,
)

ARMS = ("direct", "direct-again", "wireguard-go", "tinc", "openvpn", "nebula", "yggdrasil")
RATE, OFFERED = 1_000_000_000, 200_000_000

TCP = WorkloadInfo(
    "tcp",
    "tcp",
    "TCP, one stream",
    {},
    (
        MetricInfo("goodput", "bit/s", "TCP goodput", "higher", "ratio", True),
        MetricInfo("retransmits", "1/GB", "retransmitted segments", "lower", "difference", False),
    ),
    window=3.0,
    warmup=1.0,
)
PING = WorkloadInfo(
    "ping",
    "ping",
    "ping",
    {"size": 56},
    (
        MetricInfo("rtt_p50", "ms", "round-trip time, median", "lower", "ratio", True),
        MetricInfo("rtt_p99", "ms", "round-trip time, 99th percentile", "lower", "ratio", False),
        MetricInfo("loss", "%", "pings lost", "lower", "difference", False),
        MetricInfo("rtt", "ms", "round-trip time", "lower", "ratio", False),
    ),
    window=2.0,
    warmup=0.0,
)
UDP = WorkloadInfo(
    "udp",
    "udp",
    "UDP at a fixed rate",
    {"rate": "200 Mbit/s"},
    (
        MetricInfo("delivered", "bit/s", "UDP delivered", "higher", "ratio", True),
        MetricInfo("loss", "%", "UDP packets lost", "lower", "difference", True),
        MetricInfo("jitter", "ms", "UDP jitter", "lower", "difference", False),
    ),
    window=3.0,
    warmup=0.5,
    offered=OFFERED,
)
PROFILE = ProfileInfo("gigabit", "1 Gbit/s with a queue of 1 MiB", "made for this project", RATE, 1 << 20)
TOPOLOGY = TopologyInfo("pair", "two hosts", ("a", "b"), {"wire": ("a", "b")})


@dataclass
class Study:
    """A study with known truth; effects of 1 (ratio) and 0 (loss) unless said otherwise.

    `tcp` and `rtt` are true ratios to direct by arm, `loss` true per cents of UDP by arm; `noise` is the relative noise
    of a value and `block_noise` that of a whole block, which pairing must cancel; `fails` are (arm, workload, block).
    """

    arms: tuple[str, ...] = ARMS
    vpns: Mapping[str, str] = field(default_factory=dict)
    same_as: Mapping[str, str] = field(default_factory=lambda: {"direct-again": "direct"})
    workloads: tuple[WorkloadInfo, ...] = (PING, TCP, UDP)
    profiles: tuple[ProfileInfo, ...] = (PROFILE,)
    blocks: int = 5
    tcp: Mapping[str, float] = field(default_factory=dict)
    rtt: Mapping[str, float] = field(default_factory=dict)
    loss: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.03
    block_noise: float = 0.2
    fails: tuple[tuple[str, str, int], ...] = ()
    series: bool = False
    seed: int = 7
    stop_after: int | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)

    def results(self) -> Results:
        """The results of this study, as if it had been run and read back."""
        random = np.random.default_rng(self.seed)
        ids: list[str] = []
        trials: list[TrialRow] = []
        clock = 1_790_000_000.0
        for block in range(1, self.blocks + 1):
            luck = float(np.exp(random.normal(0, self.block_noise)))
            cells = [(p, w, arm) for p in self.profiles for w in self.workloads for arm in self.arms]
            for index in random.permutation(len(cells)):
                profile, workload, arm = cells[index]
                row = self._trial(random, len(trials), block, luck, arm, profile, workload, clock)
                clock += sum(row.phases.values()) + 0.05
                ids.append(row.trial)
                trials.append(row)
        done = trials if self.stop_after is None else trials[: self.stop_after]
        start = trials[0].started - 1.0
        wall = done[-1].started + sum(done[-1].phases.values()) + 0.5 - start if done else 0.0
        finished = len(done) == len(trials)
        return Results(
            path=Path("results/demo"),
            plan=self._plan(tuple(ids)),
            environment=self.environment,
            trials=tuple(done),
            sessions=(Session(start, wall if finished else None),),
        )

    def _plan(self, ids: tuple[str, ...]) -> PlanInfo:
        infos = tuple(
            ArmInfo(
                arm,
                vpn=self._vpn(arm),
                title="the bare link" if self._vpn(arm) == "direct" else arm,
                options={},
                same_as=self.same_as.get(arm),
            )
            for arm in self.arms
        )
        return PlanInfo(
            study="quick",
            title="Five VPNs and the bare link",
            description="What a gigabit link keeps of its throughput and latency inside five VPNs.",
            seed=self.seed,
            blocks=self.blocks,
            arms=infos,
            profiles=self.profiles,
            topologies=(TOPOLOGY,),
            workloads=self.workloads,
            trials=ids,
        )

    def _vpn(self, arm: str) -> str:
        return self.vpns.get(arm, "direct" if arm.startswith("direct") else arm)

    def _trial(
        self,
        random: np.random.Generator,
        position: int,
        block: int,
        luck: float,
        arm: str,
        profile: ProfileInfo,
        workload: WorkloadInfo,
        clock: float,
    ) -> TrialRow:
        name = f"{block:03d}.{arm}.{profile.name}.pair.{workload.name}"
        row = TrialRow(
            trial=name,
            position=position,
            block=block,
            arm=arm,
            profile=profile.name,
            topology="pair",
            workload=workload.name,
            link="a>b",
            outcome="ok",
            started=clock,
            phases={
                "lab": 0.15,
                "deploy": 0.1,
                "ready": 0.2,
                "server": 0.05,
                "warmup": workload.warmup,
                "measure": workload.window,
                "collect": 0.1,
            },
            samples=self._samples(random, arm, luck, workload),
            first_packet={"a>b": float(random.uniform(0.1, 0.3)), "b>a": float(random.uniform(0.1, 0.3))},
            host={"other_cpu": 0.02, "steal": 0.01},
            raw=(f"raw/{name}/client.json", f"raw/{name}/server log.txt"),
        )
        if (arm, workload.name, block) in self.fails:
            return replace(
                row,
                outcome="failed",
                samples=(),
                first_packet={},
                phases={"lab": 0.15, "deploy": 0.1, "ready": 10.0},
                reason="not-ready",
                message=f"{arm}: no ping from a to b within 10 s",
                hint="look at the daemon's log",
                log="starting\n<error> handshake timed out & gave up\n",
            )
        return row

    def _samples(
        self, random: np.random.Generator, arm: str, luck: float, workload: WorkloadInfo
    ) -> tuple[SampleRow, ...]:
        def noise() -> float:
            return float(np.exp(random.normal(0, self.noise)))

        if workload.workload == "tcp":
            goodput = 600e6 * luck * self.tcp.get(arm, 1.0) * noise()
            rows = [SampleRow("goodput", "bit/s", goodput), SampleRow("retransmits", "1/GB", float(random.poisson(3)))]
            if self.series:
                for step in range(30):
                    value = goodput * float(np.exp(random.normal(0, 0.05)))
                    rows.append(SampleRow("goodput", "bit/s", value, round(0.1 * step, 1)))
            return tuple(rows)
        if workload.workload == "ping":
            middle = 0.2 * luck * self.rtt.get(arm, 1.0) * noise()
            pings = middle * np.exp(np.abs(random.normal(0, 0.15, 200))) if self.series else np.array([middle])
            rows = [
                SampleRow("rtt_p50", "ms", middle),
                SampleRow("rtt_p99", "ms", middle * 1.6 * noise()),
                SampleRow("loss", "%", 0.0),
            ]
            rows += [SampleRow("rtt", "ms", float(ping), 0.01 * step) for step, ping in enumerate(pings)]
            return tuple(rows)
        true = self.loss.get(arm, 0.0)
        lost = max(0.0, true * noise()) if true else 0.0
        return (
            SampleRow("delivered", "bit/s", OFFERED * (1 - lost / 100)),
            SampleRow("loss", "%", lost),
            SampleRow("jitter", "ms", 0.02 * noise()),
        )
