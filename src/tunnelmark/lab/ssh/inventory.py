"""Reads an inventory: the hosts that nodes run on, how OpenSSH reaches them, and the network between them."""

from __future__ import annotations

import shlex
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tunnelmark.errors import UsageError
from tunnelmark.plan.problems import Problems, parse

Role = Literal["node", "middle"]
"""What a host is for: nodes of a topology, or the middle node that all links run through, with the topology's routers."""


class InventoryHost(BaseModel):
    """One host of an inventory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """Its name in messages and results."""

    ssh: str
    """What ssh(1) takes to reach it, the destination last: `root@192.0.2.11`, or `-p 2222 user@host`."""

    address: IPv4Address
    """Its address on the network between the hosts, which carries the links."""

    interface: str
    """Its network interface with that address."""

    roles: tuple[Role, ...] = ("node",)
    """What it is for."""

    nodes: int = Field(1, ge=1, le=100)
    """How many nodes it may have. Nodes of one host share its cores, so what one costs the other is in their figures."""

    command: str = "tunnelmark"
    """The words that start tunnelmark there as root: `sudo -n tunnelmark` for a user who may do so."""

    @field_validator("ssh", "command")
    @classmethod
    def _words(cls, value: str) -> str:
        if not shlex.split(value):
            raise ValueError("must not be empty")
        return value


class Network(BaseModel):
    """How links are kept apart on the network that carries them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["vxlan", "vlan"] = "vxlan"
    """`vxlan` works wherever hosts reach each other by UDP, and takes 50 bytes of each packet; `vlan` needs a switch that passes
    802.1Q tags, and takes none."""

    numbers: tuple[int, int] = (3000, 3999)
    """The first and the last VXLAN or VLAN number to use, which nothing else may use on that network: two labs are up at once, each
    with one for every node on a link, and a number is used again only when all others have been."""

    port: int = Field(4789, ge=1, le=65535)
    """The UDP port of VXLAN."""

    @model_validator(mode="after")
    def _range(self) -> Network:
        first, last = self.numbers
        most = {"vxlan": (1 << 24) - 1, "vlan": 4094}[self.kind]
        if not 1 <= first <= last <= most:
            raise ValueError(f"{self.kind} has the numbers 1 to {most}, and the first must not be above the last")
        return self


class Inventory(BaseModel):
    """The hosts of a laboratory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: tuple[InventoryHost, ...] = Field(min_length=1)
    network: Network = Network()

    @property
    def nodes(self) -> tuple[InventoryHost, ...]:
        """The hosts that nodes run on, in order."""
        return tuple(host for host in self.hosts if "node" in host.roles)

    @property
    def middle(self) -> InventoryHost:
        """The host that all links run through: the one of that role, else the first."""
        return next((host for host in self.hosts if "middle" in host.roles), self.hosts[0])


def read(file: Path) -> Inventory:
    """The inventory in a TOML file. PlanError or UsageError that say what is wrong in it."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="name a TOML file of hosts (docs/hosts.md)") from None
    found = parse(text, str(file), Inventory)
    problems = Problems(str(file))
    for what in ("name", "address"):
        seen: set[object] = set()
        for place, host in enumerate(found.hosts):
            if (value := getattr(host, what)) in seen:
                problems.add(("hosts", place, what), f"{value} is another host's, too", "give each host its own")
            seen.add(value)
    if not found.nodes:
        problems.add(("hosts",), "none has the role node", 'add roles = ["node"] to those that nodes run on')
    problems.raise_if_any()
    return found
