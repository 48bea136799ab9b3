"""An arm's own programs are what its daemons, commands and staging find first, whatever else is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

from tunnelmark import registry
from tunnelmark.lab.labs import Lab
from tunnelmark.plan.model import Link, Topology
from tunnelmark.run.deploy import prepare

PAIR = Topology("pair", "two nodes", ("a", "b"), (Link("link", ("a", "b")),))


@dataclass
class Nodes:
    """The nodes of a lab that is not there."""

    topology: Topology = PAIR
    nodes: Mapping[str, None] = field(default_factory=lambda: {"a": None, "b": None})

    def address(self, name: str) -> IPv4Address:
        return IPv4Address("10.50.0.1") if name == "a" else IPv4Address("10.50.0.2")


def path(arm: str, logs: Path, **more: Any) -> list[str]:
    """The folders in which an arm's programs are looked for."""
    driver, options = registry.arm(arm)
    running = prepare(cast(Lab, Nodes()), driver, options, logs, **more)
    return running._steps._env["PATH"].split(":")


def test_the_folder_of_its_own_programs_comes_first(tmp_path: Path):
    own = {"wireguard-go": "/opt/mine/wireguard-go"}
    assert path("wireguard-go", tmp_path, programs=own)[0] == "/opt/mine"
    assert path("wireguard-go-2022", tmp_path, programs=own)[0] == "/opt/mine"
    assert "/opt/mine" not in path("wireguard-go", tmp_path)
