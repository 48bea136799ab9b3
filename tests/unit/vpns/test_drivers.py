"""Every driver as the pure function it is: what a Deployment of it must hold, without root and without a daemon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import PurePosixPath

import pytest

from tunnelmark import registry
from tunnelmark.model.steps import (
    Command,
    CopyFile,
    Daemon,
    File,
    Interface,
    LogMatch,
    Step,
    TcpPort,
    UdpPort,
    UnixSocket,
)
from tunnelmark.vpns.base import OVERLAY, Build, Converged, Deployment, Driver, Mesh, MeshNode, interface_fault

LARGEST_FILE = 100 * 1024  # bytes; a file travels to its node in one message
SECRET = re.compile(r"PRIVATE KEY|[A-Za-z0-9+/]{43}=|[0-9a-fA-F]{64,}")

DRIVERS = list(registry.vpns().values())
every_driver = pytest.mark.parametrize("driver", DRIVERS, ids=[driver.name for driver in DRIVERS])
every_arm = pytest.mark.parametrize("arm", registry.arms())
every_size = pytest.mark.parametrize("size", [2, 3, 4, 9])


def mesh(size: int, folder: str = "/run/lab") -> Mesh:
    """A mesh whose nodes have names and folders that are unlike each other."""
    hosts = tuple(
        MeshNode(
            name=f"node-{place}",
            underlay=IPv4Address(f"10.50.0.{place}"),
            dir=PurePosixPath(folder, f"host {place}"),
            overlay=IPv4Interface(f"10.60.0.{place}/{OVERLAY.partition('/')[2]}"),
        )
        for place in range(1, size + 1)
    )
    return Mesh(hosts, PurePosixPath(folder, "staging"))


def deployed(arm: str, size: int = 3) -> Deployment:
    driver, options = registry.arms()[arm]
    return driver.deploy(mesh(size), driver.options(**options))


def build(arm: str) -> Build:
    driver, options = registry.arms()[arm]
    return driver.build(driver.options(**options))


def steps(deployment: Deployment) -> Iterator[Step]:
    for phase in deployment.phases:
        yield from phase


def private(file: File) -> bool:
    return "PRIVATE KEY" in file.content or "PrivateKey" in file.content or file.from_staging.endswith(".key")


@every_arm
@every_size
def test_every_node_has_an_overlay_and_no_two_share_an_address(arm: str, size: int) -> None:
    overlays = deployed(arm, size).overlays
    assert list(overlays) == [host.name for host in mesh(size).hosts]
    known = [overlay.address for overlay in overlays.values() if overlay.address is not None]
    assert len(set(known)) == len(known)
    for overlay in overlays.values():
        assert not interface_fault(overlay.interface)


@every_arm
@every_size
def test_files_and_steps_stand_on_nodes_of_the_mesh(arm: str, size: int) -> None:
    nodes = mesh(size)
    deployment = deployed(arm, size)
    folders = {host.name: host.dir for host in nodes.hosts}
    for file in deployment.files:
        assert file.path.is_relative_to(folders[file.node]), "a file outside of its host's folder"
    assert len({(file.node, file.path) for file in deployment.files}) == len(deployment.files)
    assert all(step.node in folders for step in steps(deployment))
    if deployment.encrypted and not registry.arms()[arm][0].kernel:  # a VPN in the kernel has no daemon
        assert {step.node for step in steps(deployment) if isinstance(step, Daemon)} == set(folders)


@every_arm
def test_files_are_small_and_secrets_are_private(arm: str) -> None:
    deployment = deployed(arm, 9)
    for file in deployment.files:
        assert len(file.content.encode()) <= LARGEST_FILE
        assert bool(file.content) != bool(file.from_staging), f"{file.path}: content, or a file of the staging folder"
        assert file.mode & 0o077 == 0 or not private(file), f"{file.path} can be read by others"


@every_arm
def test_no_secret_stands_in_a_command_line_or_in_what_is_printed(arm: str) -> None:
    deployment = deployed(arm, 4)
    lines = [" ".join(argv) for argv in deployment.staging]
    lines += [" ".join(step.argv) for step in steps(deployment) if not isinstance(step, CopyFile)]
    lines += [
        f"{key}={value}" for step in steps(deployment) if isinstance(step, Daemon) for key, value in step.env.items()
    ]
    for line in [*lines, repr(deployment)]:
        assert not SECRET.search(line)


@every_arm
def test_two_deployments_share_no_secret(arm: str) -> None:
    first, second = deployed(arm), deployed(arm)
    for one, other in zip(first.files, second.files, strict=True):
        assert one.path == other.path
        if private(one) and one.content:
            assert one.content != other.content, f"{one.path} holds the same key twice"


@every_arm
def test_programs_and_conditions_are_stated(arm: str) -> None:
    deployment = deployed(arm)
    used = {argv[0] for argv in deployment.staging} | {
        step.argv[0] for step in steps(deployment) if not isinstance(step, CopyFile)
    }
    assert used <= set(build(arm).programs), "every program that a step starts is listed, so that it can be looked for"
    for step in steps(deployment):
        if isinstance(step, Daemon) and step.ready is not None:
            assert isinstance(step.ready, UdpPort | TcpPort | Interface | UnixSocket | LogMatch)
    for step in steps(deployment):
        assert not (isinstance(step, Command) and step.argv[0] == "sleep"), "wait for a condition, never for a time"


@every_arm
def test_a_vpn_that_settles_says_how_and_how_long(arm: str) -> None:
    deployment = deployed(arm)
    driver = registry.arms()[arm][0]
    assert driver.convergence_time or not deployment.converged
    assert deployment.converged or deployment.relayed or not driver.convergence_time, "how is it seen?"
    daemons = {(step.node, step.name) for phase in deployment.phases for step in phase if isinstance(step, Daemon)}
    assert {(one.node, one.daemon) for one in deployment.converged if isinstance(one, Converged)} <= daemons


@every_arm
def test_the_names_of_a_node_daemon_are_unique(arm: str) -> None:
    daemons = [(step.node, step.name) for step in steps(deployed(arm)) if isinstance(step, Daemon)]
    assert len(set(daemons)) == len(daemons), "a log file is named after them"


@every_arm
def test_everything_on_the_desk_is_relative_to_it(arm: str) -> None:
    for file in deployed(arm).files:
        assert not file.from_staging.startswith("/")
        assert ".." not in PurePosixPath(file.from_staging).parts


@every_driver
def test_the_driver_introduces_itself(driver: Driver) -> None:
    assert driver.title
    assert driver.homepage.startswith("https://")
    assert driver.programs
    assert driver.packages or driver.recipe, "say what brings its programs"
    assert re.compile(driver.version_pattern).groups == 1
    assert driver.options() == driver.options(), "all options have defaults"


@pytest.mark.parametrize(("nodes", "seconds"), [(2, 12), (3, 12), (9, 12 + 6 * 6)])
def test_a_start_takes_longer_where_nodes_are_let_in_one_by_one(nodes: int, seconds: float) -> None:
    zerotier, _ = registry.arms()["zerotier"]
    assert replace(zerotier, startup_time=12.0, startup_per_node=6.0).start_of(nodes) == seconds
    assert replace(zerotier, startup_time=12.0, startup_per_node=0.0).start_of(nodes) == 12
