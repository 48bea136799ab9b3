"""Names of overlay interfaces that cannot be are refused before anything is started."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import PurePosixPath

import pytest

from tunnelmark.errors import SetupFailed
from tunnelmark.model.steps import Daemon, Interface
from tunnelmark.run.overlay_interfaces import check
from tunnelmark.vpns import tinc
from tunnelmark.vpns.base import Deployment, Mesh, MeshNode, Overlay, interface_fault


def deployment() -> Deployment:
    hosts = tuple(
        MeshNode(name, IPv4Address(f"10.50.0.{n}"), PurePosixPath("/run/x"), IPv4Interface(f"10.60.0.{n}/24"))
        for n, name in ((1, "a"), (2, "b"))
    )
    return tinc.DRIVER.deploy(Mesh(hosts, PurePosixPath("/run/x/staging")), tinc.DRIVER.options())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a:b", "a b", "sixteen-letters-", "fünfzehn-letter"])
def test_a_name_that_linux_refuses(name: str) -> None:
    assert interface_fault(name)


@pytest.mark.parametrize("name", ["wg0", "fifteen-letters", "eth0.5"])
def test_a_name_that_linux_takes(name: str) -> None:
    assert not interface_fault(name)


def test_a_driver_s_overlay_is_named_with_its_node() -> None:
    check(deployment())
    wrong = replace(deployment(), overlays={"a": Overlay("tun0"), "b": Overlay("an-overlay-of-mine")})
    with pytest.raises(SetupFailed, match=r"node b: .*'an-overlay-of-mine' has 18 bytes, and Linux takes 15"):
        check(wrong)


def test_so_is_what_a_daemon_waits_for() -> None:
    waits = Daemon("b", "vpn", ("true",), Interface("an-overlay-of-mine"))
    with pytest.raises(SetupFailed, match=r"node b: .*Linux takes 15"):
        check(replace(deployment(), phases=((waits,),)))
