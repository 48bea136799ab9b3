"""What is done to a deployment during a trial, on real daemons, and the gap that the probes of `connect` see of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from support.beginnings import came
from support.events import READY, connected, with_vpn
from support.labs import TRIO
from support.trials import measured
from tunnelmark import registry
from tunnelmark.errors import DaemonDied, WorkloadFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.files import Files
from tunnelmark.plan.load import load_study
from tunnelmark.plan.order import order
from tunnelmark.run.deploy import FOLDER, RunningDeployment
from tunnelmark.run.events import happen
from tunnelmark.workloads.base import Event

pytestmark = pytest.mark.root

FLAPS = """
[study]
name = "flaps"
title = "A link with a delay and without a rate, which goes away"
blocks = 1
watch = []
profiles = ["edge-delay-50"]
topologies = ["pair"]

[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"

[[workload]]
workload = "connect"
options = { event = "link-flap", outage = "0.4 s", duration = "4 s", node = "target" }
"""

INTERVAL = 0.005  # seconds between two probes
LATE = 0.1  # seconds that a machine which runs may add to a gap whose length is known
IN_TIME = pytest.mark.proof("the gap that `connect` sees is that of the event, to a tenth of a second")


@pytest.mark.parametrize("node", ["source", "target"])
def test_a_link_that_is_away_makes_a_gap(node: str, tmp_path: Path) -> None:
    values, (down, up) = connected("direct", tmp_path, event="link-flap", outage="0.4 s", node=node)
    assert (down["kind"], up["kind"]) == ("link-down", "link-up")
    assert up["begun"] - down["ended"] - 0.01 <= values["gap"]
    assert values["lost"] > 0


def test_what_is_sent_into_an_emulated_link_that_is_away_makes_no_trial_void(tmp_path: Path) -> None:
    """The kernel counts it at the emulator's port, as it does what the emulator itself could not send."""
    (tmp_path / "flaps.toml").write_text(FLAPS)
    plan = order(load_study(str(tmp_path / "flaps.toml"), Files.standard(), registry.catalogue()))
    trial = next(one for one in plan.trials if one.arm.name == "direct")
    assert trial.profile.forward.delay is not None and trial.profile.forward.rate is None
    attempt, raw = measured(plan, trial, tmp_path)
    assert attempt.outcome == "ok", attempt.failure
    said = map(json.loads, (raw / "emulator.middle.out").read_text().splitlines())
    # The trial is judged by what it asked for at its end; later ones come while the interfaces go.
    report = [line["report"] for line in said if "report" in line and line["report"]["request"]][-1]
    lost = {port["name"]: port["tx_dropped"] + port["refused"] for port in report["ports"]}
    assert lost["b.0"] > 0, "else nothing was sent while the link was away, and the test shows nothing"
    assert lost["a.0"] == 0


@IN_TIME
@pytest.mark.parametrize("node", ["source", "target"])
def test_a_link_that_is_away_makes_a_gap_of_just_that(node: str, tmp_path: Path) -> None:
    values, (down, up) = connected("direct", tmp_path, event="link-flap", outage="0.4 s", node=node)
    assert (down["kind"], up["kind"]) == ("link-down", "link-up")
    assert up["begun"] - down["ended"] - 0.01 <= values["gap"] <= up["ended"] - down["begun"] + LATE
    assert values["gap_to_target"] == pytest.approx(values["gap_to_source"], abs=LATE)
    assert values["lost"] == pytest.approx(2 * 200 * values["gap"], rel=0.1)


@pytest.mark.parametrize("kind", ["restart", "restart-fresh"])
def test_the_bare_link_has_nothing_to_restart(kind: str, tmp_path: Path) -> None:
    values, (event,) = connected("direct", tmp_path, event=kind)
    assert event["kind"] == kind
    assert values["lost"] <= values["queue_drops"]


RESTARTS = [(arm, kind) for arm in ("wireguard-go", "nebula") for kind in ("restart", "restart-fresh", "link-flap")]


@pytest.mark.parametrize(("arm", "kind"), [RESTARTS[0], RESTARTS[-2]])
def test_a_vpn_comes_back(arm: str, kind: str, tmp_path: Path) -> None:
    values, events = connected(arm, tmp_path, event=kind)
    assert values["gap"] > 0
    assert values["lost"] > 0
    assert values["event"] >= events[0]["ended"] - events[0]["begun"]


@IN_TIME
@pytest.mark.parametrize(("arm", "kind"), RESTARTS)
def test_a_vpn_comes_back_in_time(arm: str, kind: str, tmp_path: Path) -> None:
    outage: dict[str, Any] = {"outage": "0.4 s"} if kind == "link-flap" else {}
    values, events = connected(arm, tmp_path, event=kind, **outage)
    assert 0 < values["gap"] <= values["back"] + INTERVAL < 2
    assert values["lost"] > 0
    assert values["event"] >= events[0]["ended"] - events[0]["begun"]


def test_a_node_with_another_address_is_lost_to_those_who_know_only_the_first(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFailed, match="did not come back within 1 s"):
        connected("direct", tmp_path, event="change-address", duration="1 s")


@IN_TIME
@pytest.mark.parametrize("arm", ["nebula", "wireguard-go-2026"])
def test_a_vpn_that_roams_survives_another_address(arm: str, tmp_path: Path) -> None:
    values, _ = connected(arm, tmp_path, event="change-address")
    assert values["gap"] < 1


def test_an_arm_without_a_control_service_says_so(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFailed, match="no control service"):
        connected("wireguard-go", tmp_path, event="restart-control")


def test_a_control_service_is_restarted_alone(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[str, str, str, str]:
        async def running(name: str) -> str:
            return (await lab.nodes["a"].run(["pidof", name])).stdout.strip()

        before = await running("supernode"), await running("edge")
        await tunnel.unless_dead(happen(lab, tunnel, [Event(0.0, "restart-control", "a")], tmp_path / "events"))
        return *before, await running("supernode"), await running("edge")

    supernode, edge, next_supernode, next_edge = with_vpn("n2n", tmp_path, body)
    assert supernode and next_supernode and next_supernode != supernode
    assert next_edge == edge


def test_the_source_s_restart_is_no_death_but_a_daemon_s_own_end_after_it_is(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        async def during() -> None:
            await happen(lab, tunnel, [Event(0.0, "restart", "a")], tmp_path / "events")
            await asyncio.sleep(0.5)  # time in which the end of the first life would be noticed
            await lab.nodes["a"].run(["sh", "-c", "kill -9 $(pidof nebula)"])  # only those of the node, its own PIDs
            await asyncio.sleep(READY)

        with pytest.raises(DaemonDied, match="nebula on a ended by itself with signal 9"):
            await tunnel.unless_dead(during())
        assert "restart" in (tmp_path / "events").read_text()

    with_vpn("nebula", tmp_path, body)


def test_a_node_that_starts_afresh_has_forgotten_what_was_written(tmp_path: Path) -> None:
    places = [f"{FOLDER}/state", "/tmp/state", "/var/lib/tunnelmark-state", "/run/of-a-vpn"]

    async def body(lab: Lab, tunnel: RunningDeployment) -> list[str]:
        async def there() -> list[str]:
            looked = await lab.nodes["b"].run(["ls", "-d", *places, f"{FOLDER}/wg.conf", "/run/workload/mine"])
            return looked.stdout.split()

        await lab.nodes["b"].run(["mkdir", "-p", "/run/workload"])
        await lab.nodes["b"].run(["touch", *places, "/run/workload/mine"])
        assert len(await there()) == len(places) + 2
        await tunnel.restart("b")
        assert len(await there()) == len(places) + 2
        await tunnel.restart("b", fresh=True)
        await tunnel.answer(READY)
        return await there()

    assert sorted(with_vpn("wireguard-go", tmp_path, body)) == [f"{FOLDER}/wg.conf", "/run/workload/mine"]


def test_a_link_comes_back_with_its_addresses_and_routes(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> tuple[str, str]:
        async def settings() -> str:
            words = "ip -o -6 address show dev eth0 scope global | cut -d' ' -f7; ip route show dev eth0; ip -6 route show dev eth0"
            return (await lab.nodes["b"].run(["sh", "-c", words])).stdout

        for words in (
            "address add fd01::2/64 dev eth0",
            "route add 10.99.0.0/16 via 10.50.0.1",
            "-6 route add fd99::/64 via fd01::1",
        ):
            done = await lab.nodes["b"].run(["ip", *words.split()])
            assert done.code == 0, done.stderr
        before = await settings()
        await happen(lab, tunnel, [Event(0.0, "link-down", "b"), Event(0.1, "link-up", "b")], tmp_path / "events")
        return before, await settings()

    before, after = with_vpn("direct", tmp_path, body)
    assert sorted(after.split("\n")) == sorted(before.split("\n"))
    assert "10.99.0.0/16" in after
    assert "fd99::/64" in after


def test_a_node_with_another_address_is_reached_there_at_once(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        await happen(lab, tunnel, [Event(0.0, "change-address", "b")], tmp_path / "events")
        shown = await lab.nodes["b"].run(["ip", "-4", "-o", "address", "show", "dev", "eth0"])
        assert "10.50.0.102/24" in shown.stdout
        assert "10.50.0.2/24" not in shown.stdout
        for node in ("a", "c"):
            done = await lab.nodes[node].run(["ping", "-n", "-q", "-c1", "-w20", "10.50.0.102"])
            assert done.code == 0, done.stdout

    with_vpn("direct", tmp_path, body, TRIO)


def test_what_takes_longer_than_the_trial_has_no_end_in_the_record(tmp_path: Path) -> None:
    async def body(lab: Lab, tunnel: RunningDeployment) -> None:
        begun, restart = asyncio.Event(), tunnel.restart

        async def told(*asked: Any, **more: Any) -> None:
            begun.set()
            await restart(*asked, **more)

        tunnel.restart = told  # type: ignore[method-assign]
        doing = asyncio.ensure_future(
            happen(lab, tunnel, [Event(0.0, "restart", "b"), Event(60.0, "restart", "a")], tmp_path / "events")
        )
        assert await came(begun.is_set, doing)
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)

    with_vpn("nebula", tmp_path, body)
    deployed, *events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert set(deployed["first_packet"]) == {"a>b", "b>a"}
    assert [(one["kind"], one["ended"]) for one in events] == [("restart", None)]
