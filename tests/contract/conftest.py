"""What the contract suites share: one lab server a module, labs with a VPN, and which of the tests every change must pass."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from contract.lab_of_three import CONTRACT, READY, TRIO, UNSHAPED, NamedArm, Together, installed, promised
from tunnelmark.cli import other_work
from tunnelmark.cli.measurement_lock import quiet
from tunnelmark.cli.retry_options import NO_WAIT
from tunnelmark.errors import TrialError
from tunnelmark.host.programs import Requirement
from tunnelmark.lab.client import LabClient
from tunnelmark.lab.labs import Lab, Labs
from tunnelmark.lab.ssh.inventory import read
from tunnelmark.lab.ssh.ssh_labs import SshLabs
from tunnelmark.plan.model import Topology
from tunnelmark.run.deploy import RunningDeployment, deploy, log_end
from tunnelmark.vpns.base import Driver


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--arm", action="append", default=[], help="test this arm of the VPNs only; repeatable")
    parser.addoption("--inventory", type=Path, help="run the suite on the hosts of this inventory, not on this machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        arm = getattr(getattr(item, "callspec", None), "params", {}).get("arm")
        if isinstance(arm, NamedArm) and (arm.name != arm.driver.name or not promised(arm.part)):
            item.add_marker(pytest.mark.proof(CONTRACT), append=False)
    if (file := config.getoption("--inventory", default=None)) is not None:
        _without_what_hosts_lack(items, len(read(file).nodes))
    wanted = config.getoption("--arm", default=[])
    if not wanted:
        return
    arms = [getattr(getattr(item, "callspec", None), "params", {}).get("arm") for item in items]
    chosen = [item for item, arm in zip(items, arms, strict=True) if getattr(arm, "name", None) in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def _without_what_hosts_lack(items: list[pytest.Item], hosts: int) -> None:
    """Skip what needs more hosts, or looks into the kernel of this machine, where the nodes are not."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("count", 0) > hosts:
            item.add_marker(pytest.mark.skip(reason=f"the inventory has {hosts} hosts for nodes"))
        if getattr(item, "originalname", "") == "test_nothing_is_left_behind":
            item.add_marker(
                pytest.mark.skip(reason="looks into this kernel; tests/lab/test_real_hosts.py looks at hosts")
            )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Wait until nobody measures on this machine: here, because no test's time runs yet."""
    if os.geteuid() != 0 or not any(item.path.is_relative_to(Path(__file__).parent) for item in session.items):
        return
    with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        quiet(Console(stderr=True, highlight=False), "the contract suite", otherwise=f"{NO_WAIT}=1 in the environment")


@pytest.fixture(scope="package", autouse=True)
def told() -> Iterator[None]:
    """Whoever begins to measure meanwhile is told what disturbs it."""
    with other_work.told("the contract suite"):
        yield


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Any], Any]]:
    """Runs a coroutine on the module's event loop, to which its lab server and labs belong."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def labs(run: Callable[[Any], Any], request: pytest.FixtureRequest) -> Iterator[Labs]:
    installed(Requirement("the contract suite", ("ip", "ping", "iperf3", "tcpdump", "bash"), ()))
    hosts = request.config.getoption("--inventory", default=None)
    labs = SshLabs(read(hosts)) if hosts is not None else LabClient()
    run(labs.__aenter__())
    yield labs
    run(labs.__aexit__())


@pytest.fixture(scope="module")
def together(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Together:
    """Makes fresh labs with a VPN; where the VPN does not come up, the error shows the end of its logs."""

    @asynccontextmanager
    async def lab_and_tunnel(
        driver: Driver, *, topology: Topology = TRIO, ipv6: bool = False, normalised: bool = False, **options: Any
    ) -> AsyncIterator[tuple[Lab, RunningDeployment]]:
        logs = tmp_path_factory.mktemp(driver.name)
        chosen = driver.options(**options)
        ready = READY + driver.start_of(len(topology.nodes))
        try:
            async with (
                labs.lab(topology, UNSHAPED, ipv6=ipv6) as lab,
                deploy(lab, driver, chosen, logs=logs, ready_timeout=ready, normalised=normalised, ipv6=ipv6) as tunnel,
            ):
                yield lab, tunnel
        except TrialError as error:
            error.add_note(log_end(logs))
            raise

    return lab_and_tunnel
