"""Every workload through one suite: over real VPNs, on a clean and a lossy link, against an independent look at its traffic.

What is looked at stands in `looks`, a file a workload. A mesh stands for all workloads that it carries one after the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.crosschecks import Crosscheck, Seen, all_crosschecks
from contract.lab_of_three import READY, TRIO, installed
from support.host import queue_drops
from support.machine_stall import unless_starved
from tunnelmark import registry
from tunnelmark.errors import TrialVoid, WorkloadFailed
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_profile
from tunnelmark.record.environment import socket_buffer_limit
from tunnelmark.run.assets import make
from tunnelmark.run.collection import Collection
from tunnelmark.run.collectors import collectors
from tunnelmark.run.collectors._proc import udp_drops, udp_errors
from tunnelmark.run.deploy import RunningDeployment, deploy
from tunnelmark.run.observed import observed
from tunnelmark.run.workload_runner import WorkloadRunner
from tunnelmark.workloads.base import Endpoints

pytestmark = pytest.mark.root

Run = Callable[[Any], Any]
ARMS = ("direct", "wireguard-go", "nebula", "tinc", "openvpn", "vpncloud")
LINKS = {"clean": "gigabit", "lossy": "edge-loss-1+fast-ethernet"}
"""A link that loses nothing but what its queue cannot hold, and one that loses one wire packet of a hundred.

With a rate each: what is under way when a program stops is counted and never read, and without one that is a lot.
"""
EVERY_CHANGE = (("direct", "clean"), ("wireguard-go", "lossy"))
"""The meshes on which `make test` looks; the others belong to the proof of `CLAIM`."""

CLAIM = "what a workload says agrees with an independent count, over every kind of VPN, with and without loss"
_COUNTED = ("rx_bytes", "rx_packets", "tx_bytes", "tx_packets")
UNREAD = "unread"


class Standing:
    """A mesh that stands: its lab, its tunnel, and whether its link loses packets."""

    lab: Lab
    tunnel: RunningDeployment

    def __init__(self, labs: LabClient, arm: str, link: str, logs: Path) -> None:
        self._labs, self._logs = labs, logs
        self._driver, self._options = registry.arm(arm)
        installed(self._driver.part(self._options))
        self._profile = load_profile(LINKS[link], Files.standard())
        self._block: AbstractAsyncContextManager[Lab] | None = None
        self.lossy = link == "lossy"

    async def renew(self) -> None:
        """A fresh lab with a fresh deployment, as every trial of a study has, in place of the one before."""
        await self.end()
        self._block = self._labs.lab(TRIO, self._profile)
        self.lab = await self._block.__aenter__()
        ready = READY + self._driver.startup_time
        deployed = deploy(self.lab, self._driver, self._options, logs=self._logs, ready_timeout=ready)
        self.tunnel = await deployed.__aenter__()
        await self.tunnel.wait_converged(READY)

    async def end(self) -> None:
        """End the lab, if one stands."""
        block, self._block = self._block, None
        if block is not None:
            await block.__aexit__(None, None, None)


def _params() -> Iterator[Any]:
    """Every mesh for the proof, and those of every change once more."""
    for arm, link in EVERY_CHANGE:
        yield pytest.param((arm, link), id=f"{arm}-{link}")
    for arm in ARMS:
        for link in LINKS:
            yield pytest.param((arm, link), id=f"{arm}-{link}-quiet", marks=pytest.mark.proof(CLAIM))


@pytest.fixture(scope="module", params=_params())
def mesh(
    request: pytest.FixtureRequest, labs: LabClient, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Standing]:
    arm, link = request.param
    labs.watch()
    standing = Standing(labs, arm, link, tmp_path_factory.mktemp(f"{arm}-{link}"))
    try:
        run(standing.renew())
        yield standing
    finally:
        run(standing.end())


@pytest.mark.parametrize("look", all_crosschecks(), ids=lambda look: str(look.id))
def test_what_a_workload_says_is_true(
    mesh: Standing,
    look: Crosscheck,
    run: Run,
    tmp_path: Path,
    report: Callable[[str], None],
    request: pytest.FixtureRequest,
) -> None:
    quiet = request.node.get_closest_marker("proof") is not None
    workload = registry.workload(look.workload)
    installed(workload.part)
    options = workload.options.model_validate(look.options)
    if look.alone:
        run(mesh.renew())
    lab, tunnel = mesh.lab, mesh.tunnel
    source, target = TRIO.nodes[0], TRIO.nodes[-1]
    ends = Endpoints(
        source,
        target,
        tunnel.address[source],
        tunnel.address[target],
        socket_buffer_limit(),
        tunnel.address,
        tunnel.interface,
        {asset.name: make(asset, workload.recipe) for asset in workload.assets_with(options)},
    )

    async def carried(raw: Path) -> Seen:
        raw.mkdir()
        stage = WorkloadRunner(lab, tunnel, workload.traffic(ends, options), raw, workload.recipe)
        needed = [collectors()[name] for name in workload.watch]
        watching = Collection(observed(lab, tunnel, source, target, raw), needed)
        await tunnel.unless_dead(stage.serve())
        before, dropped, begun = await counters(lab, tunnel), queue_drops(), time.monotonic()
        await watching.begin()
        await tunnel.unless_dead(stage.drive())
        watched = await watching.end()
        await tunnel.unless_dead(stage.finish())
        after = await counters(lab, tunnel)
        kinds = {node: await lab.nodes[node].read(f"/sys/class/net/{at}/type") for node, at in tunnel.interface.items()}
        outputs = stage.outputs()
        try:
            reading = workload.read(outputs, options)
        except WorkloadFailed:  # one in hundreds, and then what the programs said is the only evidence
            for name, text in outputs.items():
                print(f"{name}:\n{text[-5000:]}")
            raise
        if look.in_time:
            unless_starved(reading)
        mine = [sample for sample in watched if sample.metric in {metric.name for metric in workload.metrics}]
        return Seen(
            reading=replace(reading, samples=(*reading.samples, *mine)),
            outputs=outputs,
            counted={
                node: {key: after[node][key] - before[node][key] for key in (*_COUNTED, UNREAD)} for node in after
            },
            ends=ends,
            header={
                node: dict(
                    zip(
                        ("rx", "tx"),
                        lab.counted_headers(node).get(
                            tunnel.interface[node], (14, 14) if kind.strip() == "1" else (0, 0)
                        ),
                        strict=True,
                    )
                )
                for node, kind in kinds.items()
            },
            mtu=int(await lab.nodes[source].read(f"/sys/class/net/{tunnel.interface[source]}/mtu")),
            lossy=mesh.lossy,
            quiet=quiet,
            queue_drops=queue_drops() - dropped,
            paused=(await lab.stood_still(begun, time.monotonic())).get("pause_longest", 0.0),
            raw=raw,
        )

    seen = first_valid(lambda take: run(carried(tmp_path / str(take))), report, f"{look.id} {tmp_path.name}")
    declared = {metric.name for metric in workload.metrics_with(options)}
    assert {sample.metric for sample in seen.reading.samples} <= declared
    assert {metric.name for metric in workload.metrics_with(options) if metric.primary} <= {
        sample.metric for sample in seen.reading.samples if sample.time is None
    }
    look.agrees(seen)


def first_valid(carry: Callable[[int], Seen], report: Callable[[str], None], name: str) -> Seen:
    """What the first of three runs said that is not void.

    A run that a busy machine made void says nothing of its workload, true or false, and says so itself; a study has more
    than one block for that. Voids are told at the end of the suite, and three of them are a failure.
    """
    for take in range(3):
        try:
            return carry(take)
        except TrialVoid as void:
            report(f"{name}: void: {void.message}")
            last = void
    raise last


async def counters(lab: Lab, tunnel: RunningDeployment) -> Mapping[str, Mapping[str, int]]:
    """What every node's overlay interface has counted up to now.

    And as `unread` how often UDP found no room in the socket of a program which has ended: not in a daemon's, for before a
    workload begins and after it ends only daemons have sockets.
    """

    async def of(node: str) -> dict[str, int]:
        folder, read = f"/sys/class/net/{tunnel.interface[node]}/statistics", lab.nodes[node].read
        counted = {key: int(await read(f"{folder}/{key}")) for key in _COUNTED}
        refused = sum([udp_errors(await read(f"/proc/net/{file}"))[0] for file in ("snmp", "snmp6")])
        by_daemons = [
            drops for file in ("udp", "udp6") for drops in udp_drops(await read(f"/proc/net/{file}")).values()
        ]
        return counted | {UNREAD: refused - sum(by_daemons)}

    found = await asyncio.gather(*(of(node) for node in lab.nodes))
    return dict(zip(lab.nodes, found, strict=True))
