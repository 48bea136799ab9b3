"""Takes a node's underlay interfaces down, brings them back as a network manager would, and changes their addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface, ip_interface

from tunnelmark.errors import LabError, NodeGone
from tunnelmark.lab.labs import Lab
from tunnelmark.run.background import to_its_end
from tunnelmark.vpns.direct import UNDERLAY_INTERFACE as UNDERLAY

_FURTHER = 100  # the difference between a node's address and its second one; no topology has so many nodes
_HINT = "the event could not be done as asked; the link may have lost its interface"
_Address = IPv4Interface | IPv6Interface


@dataclass(slots=True)
class NodeLinks:
    """The underlay interfaces of a lab's nodes, with prepared commands for ip(8).

    `kept`: by node and interface, the commands that restore the interface's settings. `moves`: by node, the commands
    that give it other addresses. `returns`: by node, the commands that give it its first addresses again. `away`: the
    interfaces that are down, each with its node.
    """

    lab: Lab
    kept: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    moves: dict[str, list[str]] = field(default_factory=dict)
    returns: dict[str, list[str]] = field(default_factory=dict)
    away: set[tuple[str, str]] = field(default_factory=set)

    def devices(self, node: str) -> list[str]:
        """Return the names of all underlay interfaces of a node."""
        return list(self.lab.interfaces(node))

    async def remember(self, node: str, devices: Sequence[str]) -> None:
        """Store the settings that `up` restores on these interfaces of a node; call it before `down`."""
        for device in devices:
            await self._acquaint(node, device, await self._addresses(node, device))
        for device in devices:
            self.kept[node, device] = await self._settings(node, device, await self._addresses(node, device))

    async def down(self, node: str, devices: Sequence[str]) -> None:
        """Take interfaces down."""
        self.away.update((node, device) for device in devices)
        await self._batch(node, [f"link set dev {device} down" for device in devices])

    async def up(self, node: str, devices: Sequence[str]) -> None:
        """Bring interfaces up, with the settings that `remember` stored."""
        ups = [f"link set dev {device} up" for device in devices]
        await self._batch(node, ups + [line for device in devices for line in self.kept.get((node, device), ())])
        self.away.difference_update((node, device) for device in devices)

    async def up_all(self) -> None:
        """Bring up all interfaces that are still down; nodes that have ended are skipped."""
        for node, device in tuple(self.away):
            with contextlib.suppress(NodeGone):
                await self.up(node, [device])

    async def prepare_move(self, node: str) -> None:
        """Prepare other addresses for a node, and make them known to all other nodes and routers on its link."""
        changes = [(old, _further(old)) for old in await self._addresses(node, UNDERLAY)]
        await self._acquaint(node, UNDERLAY, [one for pair in changes for one in pair])
        # A secondary address is deleted with its primary unless promote_secondaries is set.
        setting = f"echo 1 > /proc/sys/net/ipv4/conf/{UNDERLAY}/promote_secondaries"
        await self.lab.nodes[node].run(["sh", "-c", setting])
        self.moves[node] = [line for old, new in changes for line in _exchange(old, new)]
        self.returns[node] = [line for old, new in changes for line in _exchange(new, old)]

    async def move(self, node: str) -> None:
        """Replace a node's addresses by those that `prepare_move` prepared."""
        await self._batch(node, self.moves[node])

    async def move_back(self, node: str) -> None:
        """Give a node the addresses again that it had before `move`."""
        await self._batch(node, self.returns[node])

    async def _acquaint(self, node: str, device: str, addresses: Sequence[_Address]) -> None:
        """Enter the Ethernet addresses of a node and of the others on its link permanently in their neighbour tables.

        Otherwise a request or an answer that is lost while a link comes up would cost a second, by the tables' timers.
        That does not happen on a path of routers, and the link represents such a path.
        """
        mac = await self._mac(node, device)
        theirs: list[str] = []
        for other in (*self.lab.nodes, *self.lab.routers):
            for line in await self._lines(other, "-o", "address", "show", "scope", "global") if other != node else ():
                _, far, _, found, *_ = line.split()
                there = ip_interface(found)
                here = [address for address in addresses if address.ip in there.network and there.ip != address.ip]
                for address in here:
                    await self._batch(other, [_neighbour(address.ip, mac, far)])
                if here:
                    theirs.append(_neighbour(there.ip, await self._mac(other, far), device))
        await self._batch(node, theirs)

    async def _settings(self, node: str, device: str, addresses: Sequence[_Address]) -> list[str]:
        """Return commands that restore the settings of an interface, like a network manager when a link comes up.

        When it goes down, the kernel forgets its neighbours, IPv6 addresses, and all routes not made with addresses.
        """
        kept = [_address("replace", address, device) for address in addresses]
        for line in await self._lines(node, "neighbour", "show", "dev", device, "nud", "permanent"):
            address, _, mac, *_ = line.split()  # ADDRESS lladdr MAC PERMANENT
            kept.append(_neighbour(address, mac, device))
        for family in ("-4", "-6"):
            for line in await self._lines(node, family, "route", "show", "dev", device):
                if "proto kernel" not in line:
                    kept.append(f"route replace {line.strip()} dev {device}")
        return kept

    async def _addresses(self, node: str, device: str) -> list[_Address]:
        lines = await self._lines(node, "-o", "address", "show", "dev", device, "scope", "global")
        return [ip_interface(line.split()[3]) for line in lines]

    async def _mac(self, node: str, device: str) -> str:
        return (await self.lab.member(node).read(f"/sys/class/net/{device}/address")).strip()

    async def _lines(self, node: str, *words: str) -> list[str]:
        done = await self.lab.member(node).run(["ip", *words])
        if done.code != 0:
            raise LabError(f"`ip {' '.join(words)}` on {node}: {done.stderr.strip()}", hint=_HINT)
        return done.stdout.splitlines()

    async def _batch(self, node: str, lines: Sequence[str]) -> None:
        """Let ip(8) carry out several commands in one run, as close together as a host's network manager does."""
        words = "".join(f"{line}\n" for line in lines)
        done = await to_its_end(self.lab.member(node).run(["ip", "-force", "-batch", "-"], stdin=words))
        if done.code != 0:
            raise LabError(f"ip on {node} refused one of {lines}: {done.stderr.strip()}", hint=_HINT)


def _address(verb: str, address: _Address, device: str) -> str:
    # Without "nodad" an IPv6 address is tentative, and a bind() to it refused, until a kernel worker has run.
    return f"address {verb} {address} dev {device}" + (" nodad" if address.version == 6 else "")


def _exchange(old: _Address, new: _Address) -> tuple[str, str]:
    return _address("add", new, UNDERLAY), f"address delete {old} dev {UNDERLAY}"


def _neighbour(address: object, mac: str, device: str) -> str:
    return f"neighbour replace {address} lladdr {mac} dev {device} nud permanent"


def _further(address: _Address) -> _Address:
    """Return the second address for a node, in the same network."""
    return ip_interface(f"{address.ip + _FURTHER}/{address.network.prefixlen}")
