"""WireGuard's implementations: which build an arm asks for, what is left as shipped, and underlays of IPv6."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Address

import pytest

from tunnelmark import registry
from tunnelmark.model.steps import Daemon
from tunnelmark.vpns import boringtun, gotatun, wireguard_go
from tunnelmark.vpns.base import Deployment, Mesh
from unit.vpns.test_drivers import build, deployed, mesh, steps

FAMILY = ("wireguard-go", "boringtun", "gotatun")


def daemon(deployment: Deployment) -> Daemon:
    return next(step for step in steps(deployment) if isinstance(step, Daemon))


@pytest.mark.parametrize("year", ["2022", "2023", "2026"])
def test_each_build_comes_from_its_own_recipe_and_from_nowhere_else(year: str) -> None:
    part = registry.parts()[f"wireguard-go-{year}"]
    assert part.recipe == f"wireguard-go-{year}"
    assert part.strict


def test_without_a_build_it_is_debians() -> None:
    assert build("wireguard-go").recipe == ""
    assert "wireguard-go" in build("wireguard-go").packages


@pytest.mark.parametrize("arm", FAMILY)
def test_endpoints_of_ipv6_stand_in_brackets(arm: str) -> None:
    hosts = tuple(replace(host, underlay=IPv6Address(f"fd50::{n}")) for n, host in enumerate(mesh(3).hosts, start=1))
    driver, options = registry.arms()[arm]
    deployment = driver.deploy(Mesh(hosts, mesh(3).staging), driver.options(**options))
    assert "Endpoint = [fd50::2]:51820\n" in deployment.files[0].content


def test_threads_are_as_shipped_unless_chosen() -> None:
    assert "--threads" not in daemon(deployed("boringtun")).argv
    assert not daemon(deployed("gotatun")).env
    chosen = daemon(boringtun.deploy(mesh(2), boringtun.BoringTunOptions(threads=2)))
    assert chosen.argv[chosen.argv.index("--threads") + 1] == "2"
    told = daemon(gotatun.deploy(mesh(2), gotatun.GotaTunOptions(threads=2)))
    assert told.env == {"TOKIO_WORKER_THREADS": "2"}


@pytest.mark.parametrize("arm", FAMILY)
def test_no_implementation_is_given_an_mtu(arm: str) -> None:
    assert "mtu" not in repr(deployed(arm).phases)


def test_every_year_is_a_variant() -> None:
    assert set(wireguard_go.DRIVER.variants) == {f"wireguard-go-{year}" for year in wireguard_go.DRIVER.builds}
