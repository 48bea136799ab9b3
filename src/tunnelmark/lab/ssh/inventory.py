"""Reads an inventory: the file of the hosts for nodes, how OpenSSH reaches them, and the network between them."""

from __future__ import annotations

import shlex
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tunnelmark.errors import UsageError
from tunnelmark.plan.problems import Problems, parse

Role = Literal["node", "middle"]
"""The use of a host: for nodes of a topology, or for the middle node, through which all links run, and the routers."""


class InventoryHost(BaseModel):
    """One host of an inventory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """Its name in messages and results."""

    ssh: str
    """The arguments with which ssh(1) reaches it, the destination last: `root@192.0.2.11`, or `-p 2222 user@host`."""

    address: IPv4Address
    """Its IPv4 address on the network between the hosts, which carries the links."""

    interface: str
    """The name of its network interface that has the address."""

    roles: tuple[Role, ...] = ("node",)
    """What the host is used for."""

    nodes: int = Field(1, ge=1, le=100)
    """How many nodes it may have. Nodes of one host share its cores, so one's load affects the other's results."""

    command: str = "tunnelmark"
    """The words that start tunnelmark as root on that host: `sudo -n tunnelmark` for a user who may do so."""

    @field_validator("ssh", "command")
    @classmethod
    def _words(cls, value: str) -> str:
        if not shlex.split(value):
            raise ValueError("must not be empty")
        return value


class Network(BaseModel):
    """How the hosts' network carries the links, and keeps them apart."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["vxlan", "vlan"] = "vxlan"
    """`vxlan` works wherever hosts reach each other by UDP, and adds 50 bytes to each packet. `vlan` adds none to an IP
    packet, but needs a switch that passes 802.1Q tags."""

    numbers: tuple[int, int] = (3000, 3999)
    """The first and the last VXLAN or VLAN number to use. Nothing else may use these numbers on that network.

    Two labs may be up at once; each needs up to one number for each node of each link. A number is used again only
    after all others."""

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
        """The hosts that nodes run on, in the order of the file."""
        return tuple(host for host in self.hosts if "node" in host.roles)

    @property
    def middle(self) -> InventoryHost:
        """The host of the middle node, which all links run through: the first with the role `middle`, else the first."""
        return next((host for host in self.hosts if "middle" in host.roles), self.hosts[0])


def read(file: Path) -> Inventory:
    """Return the inventory in a TOML file. UsageError if it cannot be read, PlanError with all that is wrong in it."""
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
