"""What is done to a deployment while a trial runs, and when: restarts, link flaps, changes of address."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.lab.client import Lab
from tunnelmark.run import holdings
from tunnelmark.run.tunnel import RunningDeployment
from tunnelmark.vpns.direct import UNDERLAY_INTERFACE as UNDERLAY
from tunnelmark.workloads.base import ENDINGS, Event

DEPLOYED = "deployed"
"""The `kind` of the first line: how long the deployment took to its `first_packet`, in seconds by direction."""

_FURTHER = 100  # from a node's address to the other one that it gets: no node of a topology has that
_PATIENCE = 3600.0  # seconds that a step of a restart may take: the trial's own end comes first
_HINT = "the event could not be done as asked; the link may have lost its interface"
_Address = IPv4Interface | IPv6Interface


async def happen(
    lab: Lab,
    tunnel: RunningDeployment,
    events: Sequence[Event],
    file: Path,
    programs: Callable[[], holdings.Programs] = dict,
) -> None:
    """Do each event at its time from now on, and append to the file what was done and when.

    A line is a JSON object: `kind`, `node`, and `begun` and `ended` in seconds of CLOCK_MONOTONIC, the clock of every
    node; `ended` is null where the trial was over first. The first line says how the deployment began (DEPLOYED). `programs`
    says which programs are not the VPN's, where holdings are counted: that line has them as `held`, by node.
    WorkloadFailed if the VPN does not have what is to be restarted.
    """
    start = time.monotonic()
    _write(file, {"kind": DEPLOYED, "first_packet": dict(tunnel.first_packet)})
    hand = _Hand(lab, tunnel, programs)
    await hand.prepare(events)
    late = 0.0
    for event in sorted(events, key=lambda event: event.at):
        behind = late if event.kind in ENDINGS else 0.0
        await asyncio.sleep(max(0.0, start + event.at + behind - time.monotonic()))
        begun = time.monotonic()
        late = begun - start - event.at
        done: dict[str, Any] = {"kind": event.kind, "node": event.node, "begun": begun, "ended": None}
        try:
            done |= await hand.do(event)
            done["ended"] = time.monotonic()
        finally:
            _write(file, done)


def _write(file: Path, line: dict[str, Any]) -> None:
    with file.open("a") as record:
        record.write(json.dumps(line) + "\n")


@dataclass(slots=True)
class _Hand:
    """Does events. By node, as commands of ip(8): what brings its link back (`kept`), its other addresses (`moves`), and its own (`returns`)."""

    lab: Lab
    tunnel: RunningDeployment
    programs: Callable[[], holdings.Programs]
    kept: dict[str, list[str]] = field(default_factory=dict)
    moves: dict[str, list[str]] = field(default_factory=dict)
    returns: dict[str, list[str]] = field(default_factory=dict)

    async def prepare(self, events: Sequence[Event]) -> None:
        """Everything that can be done before their time, so that they then take no longer than they must.

        Links last: what comes back with a link is also what was made for the other events.
        """
        each = {(event.kind, event.node): event for event in events}.values()
        for event in sorted(each, key=lambda event: event.kind == "link-down"):
            await self._prepare(event)

    async def _prepare(self, event: Event) -> None:
        match event.kind:
            case "restart-control":
                self.tunnel.require_control()
            case "link-down":
                addresses = await self._addresses(event.node)
                await self._acquaint(event.node, addresses)
                self.kept[event.node] = await self._settings(event.node, addresses)
            case "change-address":
                changes = [(old, _further(old)) for old in await self._addresses(event.node)]
                await self._acquaint(event.node, [one for pair in changes for one in pair])
                # A secondary address is deleted with its primary unless promote_secondaries is set.
                setting = f"echo 1 > /proc/sys/net/ipv4/conf/{UNDERLAY}/promote_secondaries"
                await self.lab.nodes[event.node].run(["sh", "-c", setting])
                self.moves[event.node] = [line for old, new in changes for line in _exchange(old, new)]
                self.returns[event.node] = [line for old, new in changes for line in _exchange(new, old)]

    async def do(self, event: Event) -> dict[str, Any]:
        """The event itself; what it brought to light."""
        match event.kind:
            case "restart":
                await self.tunnel.restart(event.node, patience=_PATIENCE)
            case "restart-fresh":
                await self.tunnel.restart(event.node, fresh=True, patience=_PATIENCE)
            case "restart-control":
                await self.tunnel.restart_control(patience=_PATIENCE)
            case "link-down":
                await self._batch(event.node, [f"link set dev {UNDERLAY} down"])
            case "link-up":
                up = f"link set dev {UNDERLAY} up"
                await self._batch(event.node, [up, *self.kept.get(event.node, [])])
            case "change-address":
                await self._batch(event.node, self.moves[event.node])
            case "restore-address":
                await self._batch(event.node, self.returns[event.node])
            case "count-holdings":
                return {"held": await holdings.look(self.lab, self.programs())}
        return {}

    async def _acquaint(self, node: str, addresses: Sequence[_Address]) -> None:
        """Have a node and the others on its link know each other's Ethernet addresses for good.

        A request or an answer that is lost while a link comes up would cost a second, by the neighbour table's timers. No path
        of routers has that, and the link represents the whole path.
        """
        mac = await self._mac(node, UNDERLAY)
        theirs: list[str] = []
        for other in self.lab.nodes:
            for line in await self._lines(other, "-o", "address", "show", "scope", "global") if other != node else ():
                _, device, _, found, *_ = line.split()
                there = ip_interface(found)
                here = [address for address in addresses if address.ip in there.network and there.ip != address.ip]
                for address in here:
                    await self._batch(other, [_neighbour(address.ip, mac, device)])
                if here:
                    theirs.append(_neighbour(there.ip, await self._mac(other, device), UNDERLAY))
        await self._batch(node, theirs)

    async def _settings(self, node: str, addresses: Sequence[_Address]) -> list[str]:
        """What a network manager would bring back with the link.

        The kernel forgets its neighbours, its IPv6 addresses, and all routes but those that addresses bring.
        """
        kept = [_address("replace", address) for address in addresses]
        for line in await self._lines(node, "neighbour", "show", "dev", UNDERLAY, "nud", "permanent"):
            address, _, mac, *_ = line.split()  # ADDRESS lladdr MAC PERMANENT
            kept.append(_neighbour(address, mac, UNDERLAY))
        for family in ("-4", "-6"):
            for line in await self._lines(node, family, "route", "show", "dev", UNDERLAY):
                if "proto kernel" not in line:
                    kept.append(f"route replace {line.strip()} dev {UNDERLAY}")
        return kept

    async def _addresses(self, node: str) -> list[_Address]:
        lines = await self._lines(node, "-o", "address", "show", "dev", UNDERLAY, "scope", "global")
        return [ip_interface(line.split()[3]) for line in lines]

    async def _mac(self, node: str, device: str) -> str:
        return (await self.lab.nodes[node].read(f"/sys/class/net/{device}/address")).strip()

    async def _lines(self, node: str, *words: str) -> list[str]:
        done = await self.lab.nodes[node].run(["ip", *words])
        if done.code != 0:
            raise LabError(f"`ip {' '.join(words)}` on {node}: {done.stderr.strip()}", hint=_HINT)
        return done.stdout.splitlines()

    async def _batch(self, node: str, lines: Sequence[str]) -> None:
        """Have ip(8) carry several commands out at once: as close together as a host's own network manager has them."""
        done = await self.lab.nodes[node].run(["ip", "-force", "-batch", "-"], stdin="\n".join(lines) + "\n")
        if done.code != 0:
            raise LabError(f"ip on {node} refused one of {lines}: {done.stderr.strip()}", hint=_HINT)


def _address(verb: str, address: _Address) -> str:
    # Without "nodad" an IPv6 address is tentative, and a bind() to it refused, until a kernel worker has run.
    return f"address {verb} {address} dev {UNDERLAY}" + (" nodad" if address.version == 6 else "")


def _exchange(old: _Address, new: _Address) -> tuple[str, str]:
    return _address("add", new), f"address delete {old} dev {UNDERLAY}"


def _neighbour(address: object, mac: str, device: str) -> str:
    return f"neighbour replace {address} lladdr {mac} dev {device} nud permanent"


def _further(address: _Address) -> _Address:
    """Another address of the same network."""
    return ip_interface(f"{address.ip + _FURTHER}/{address.network.prefixlen}")
