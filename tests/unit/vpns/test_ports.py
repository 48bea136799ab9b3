"""Ports where a VPN listens, among those that the kernel would give to others."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tunnelmark import vpns
from tunnelmark.lab.labs import HOST_SYSCTLS

EPHEMERAL = range(32768, 61000)  # ip-sysctl.rst, ip_local_port_range
INSTANCES = 8  # of one VPN on a node, as long cascades have them


def listening() -> dict[str, int]:
    """The port of each module in `vpns` that has a usual one."""
    names = [found.name for found in pkgutil.iter_modules(vpns.__path__)]
    ports = {name: getattr(importlib.import_module(f"tunnelmark.vpns.{name}"), "PORT", 0) for name in names}
    return {name: port for name, port in ports.items() if port in EPHEMERAL}


def reserved() -> set[int]:
    ports: set[int] = set()
    for part in HOST_SYSCTLS["net.ipv4.ip_local_reserved_ports"].split(","):
        first, _, last = part.partition("-")
        ports.update(range(int(first), int(last or first) + 1))
    return ports


@pytest.mark.parametrize(("name", "port"), sorted(listening().items()))
def test_no_other_socket_gets_the_port_of_a_vpn_by_chance(name: str, port: int) -> None:
    assert port in reserved()


def test_all_tunnels_of_a_cascade_have_reserved_ports() -> None:
    """wireguard-go opens an ephemeral port before it is configured; `wg setconf` of another instance then found its port in use."""
    first = listening()["_wg"]
    assert set(range(first, first + INSTANCES)) <= reserved()
