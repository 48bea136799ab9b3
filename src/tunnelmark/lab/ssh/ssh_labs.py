"""Makes labs whose nodes are on the hosts of an inventory."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tunnelmark
from tunnelmark.errors import LabError, TunnelmarkError, UsageError
from tunnelmark.host import pauses
from tunnelmark.host.placement import Placement
from tunnelmark.lab.labs import MIDDLE, Labs
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.node import Node
from tunnelmark.lab.ssh.connection import HostConnection
from tunnelmark.lab.ssh.interfaces import fits
from tunnelmark.lab.ssh.inventory import Inventory, InventoryHost
from tunnelmark.lab.ssh.node_hosts import node_hosts
from tunnelmark.lab.ssh.segments import segments
from tunnelmark.model.clock_offsets import ClockOffset
from tunnelmark.plan.model import Topology

_BACK = 120.0  # seconds in which a host that was lost may come back, such as after a restart
_AGAIN = 2.0  # seconds between two tries


class SshLabs(Labs):
    """Makes labs on an inventory's hosts. Each host has one connection, to a relay that runs a lab server there."""

    here = False

    def __init__(self, inventory: Inventory) -> None:
        super().__init__(node_cores=1)
        self.inventory = inventory
        self._connections: dict[str, HostConnection] = {}
        self._used: dict[str, list[str]] = {}  # lab -> hosts
        self._numbers: dict[str, list[int]] = {}  # lab -> of its segments
        self._gone: dict[str, str] = {}  # lab -> why
        self._placed: dict[str, dict[str, str]] = {}  # lab -> node -> host
        self._made: dict[str, int] = {}  # lab -> when, in ns of our CLOCK_MONOTONIC, which its nodes' is
        self._shifts: dict[str, dict[str, int]] = {}  # lab -> host -> ns by which its nodes' CLOCK_MONOTONIC is moved
        first, last = inventory.network.numbers
        self._latest = first + secrets.randbelow(last + 1 - first)  # an earlier command's may still be ending

    async def __aenter__(self) -> SshLabs:
        tried = await asyncio.gather(*(self._connect(host) for host in self.inventory.hosts), return_exceptions=True)
        if failed := [each for each in tried if isinstance(each, BaseException)]:
            await self.__aexit__()
            raise _together(failed)
        self.record = {
            "hosts": {
                name: {"release": one.about["release"], "interface": one.host.interface, "mtu": one.about["mtu"]}
                for name, one in self._connections.items()
            },
            "network": self.inventory.network.model_dump(),
            "middle": self.inventory.middle.name,
        }
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every lab of this command on every host."""
        await asyncio.gather(*(one.end() for one in self._connections.values()))

    @property
    def unified(self) -> Path | None:
        """Always raises LabError: the nodes' control groups are on other hosts, where this machine cannot read them."""
        raise LabError(
            "the control groups of nodes on other hosts cannot be read from this machine",
            hint="see docs/hosts.md (limits)",
        )

    def watch(self) -> None:
        """Put into `record["clocks_not"]` which hosts cannot watch for pauses of the machine, and why.

        On the other hosts, the relay watches from its start on, whether this method is called or not.
        """
        refused = {name: one.about["record"].get("clocks_not") for name, one in self._connections.items()}
        if said := [f"host {name}: {why}" for name, why in refused.items() if why]:
            self.record["clocks_not"] = "; ".join(said)

    async def seen(self, lab: str) -> pauses.PausesSeen | None:
        """Return the pauses of the middle node's host since the lab was made.

        None if nothing watches for pauses there, or if the host is lost.
        """
        name = self.inventory.middle.name
        shift, since = self._shifts[lab][name], self._made[lab]
        try:
            answer = await self._connections[name].request("seen", since=since - shift)
        except LabError:  # no trial fails for that, but it lacks these figures
            return None
        if "until" not in answer:
            return None
        met = (pauses.Pause(core, *(moment + shift for moment in when)) for core, *when in answer["pauses"])
        return pauses.PausesSeen(answer["until"] + shift, tuple(met))

    async def check(self) -> str | None:
        """Reconnect lost hosts, and return why they were lost, or None. LabError if one is away for 120 s."""
        if not (lost := self._note_lost()):
            return None
        await asyncio.gather(*(self._reconnect(self._connections[name]) for name in lost))
        return "; ".join(why.message for why in lost.values())

    async def lost(self, lab: str) -> str | None:
        """Return why a lab has ended: a host was lost, or does not answer within 10 s. None if all of it is up."""
        if lab not in self._gone:
            await asyncio.gather(*(self._connections[name].answers() for name in self._used.get(lab, ())))
            self._note_lost()
        return self._gone.get(lab)

    def _note_lost(self) -> dict[str, LabError]:
        """Return the lost hosts with the reasons, and note that every lab on them is gone."""
        lost = {name: one.lost for name, one in self._connections.items() if one.lost is not None}
        for lab, used in self._used.items():
            if why := [lost[name].message for name in used if name in lost]:
                self._gone.setdefault(lab, "; ".join(why))
        return lost

    def placed(self, topology: Topology) -> Placement:
        """Return a placement that names no cores, so that each node may use all cores of its host.

        UsageError if the inventory's hosts may not have so many nodes.
        """
        node_hosts(topology.nodes, self.inventory.nodes)
        return Placement(dict.fromkeys(topology.nodes, ()), (), (), 0)

    async def born(
        self, lab: str, requests: Sequence[Mapping[str, Any]], links: Sequence[LinkSpec]
    ) -> tuple[dict[str, Node], dict[str, Any]]:
        """Make the nodes of a lab on their hosts, and join them by segments. Return the nodes by name, and an answer.

        `requests`: what the lab server's `up` needs for each node (see `lab.server.server`), the middle node last. The
        answer has, of all hosts together, `refused` (by node, a list of "setting: reason") and `timings` (seconds for
        `nodes` and for `links` on the slowest host). LabError names the host that refuses something; UsageError if an
        MTU is too small, or the hosts may not have so many nodes.
        """
        await self.check()
        middle = self.inventory.middle
        *members, _ = requests
        nodes_asked = [each["name"] for each in members if not each.get("router", False)]
        hosts = node_hosts(nodes_asked, self.inventory.nodes)
        hosts |= {each["name"]: middle.name for each in members if each.get("router", False)}
        self._require_mtu(links, hosts)
        self._used[lab] = list(dict.fromkeys([*hosts.values(), middle.name]))
        self._placed[lab] = hosts | {MIDDLE: middle.name}
        await self._look_at_clocks(lab)
        shifts = {name: -self._connections[name].clocks.offset.monotonic for name in self._used[lab]}
        self._shifts[lab], self._made[lab] = shifts, time.monotonic_ns()
        ends = segments(links, hosts, middle.name, MIDDLE, self._free_numbers())
        self._numbers[lab] = [each.number for made in ends.values() for each in made]
        nodes: dict[str, Node] = {}
        asked = []
        for name in self._used[lab]:
            connection = self._connections[name]
            own = [
                {**each, "monotonic": shifts[name]} for each in requests if hosts.get(each["name"], middle.name) == name
            ]
            channels = []
            for each in own:
                nodes[each["name"]], number = connection.node(each["name"])
                channels.append(number)
            ways = [{"end": end.plain(), "way": self._way(name, end.other_host)} for end in ends.get(name, ())]
            asked.append(
                connection.request(
                    "up",
                    lab=lab,
                    middle=MIDDLE,
                    nodes=own,
                    numbers=channels,
                    segments=ways,
                    links=[spec.plain() for spec in links],
                )
            )
        try:
            answers = await asyncio.gather(*asked)
        except BaseException:
            for node in nodes.values():
                node.close()
            raise
        nodes = {each["name"]: nodes[each["name"]] for each in requests}
        refused = {node: why for answer in answers for node, why in answer["refused"].items()}
        timings = {what: max(answer["timings"][what] for answer in answers) for what in ("nodes", "links")}
        return nodes, {"refused": refused, "timings": timings}

    async def counted(self, lab: str) -> dict[str, dict[str, int]]:
        """Return the middle node's counters by port (see `port_counters.counters`)."""
        answer = await self._connections[self.inventory.middle.name].request("count", lab=lab)
        ports: dict[str, dict[str, int]] = answer["ports"]
        return ports

    async def ended(self, lab: str) -> float:
        """End a lab on all its hosts; return the seconds until the slowest had ended its nodes.

        A host that was lost has ended its nodes itself.
        """
        for known in (self._numbers, self._placed, self._shifts, self._made):
            known.pop(lab, None)
        there = [one for name in self._used.pop(lab, ()) if (one := self._connections[name]).lost is None]
        answers = await asyncio.gather(*(one.request("down", lab=lab) for one in there), return_exceptions=True)
        return max((float(each["timings"]["end"]) for each in answers if isinstance(each, dict)), default=0.0)

    async def facts(self, asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return, by host, the host's machine, kernel and programs, as a run of the study `asked` records them.

        `asked`: the study as a `BlockTask` in JSON. MissingPart if a host lacks a program or a kernel feature without
        which the study cannot be measured, LabError if a host is lost.
        """
        answers = await asyncio.gather(*(one.request("facts", asked=asked) for one in self._connections.values()))
        return {name: answer["facts"] for name, answer in zip(self._connections, answers, strict=True)}

    def hosts_of(self, lab: str) -> Mapping[str, str]:
        """Return the host of each node of a lab that is up, by names; routers and the middle node are included."""
        return dict(self._placed[lab])

    async def ask_hosts(self, lab: str, op: str, **fields: Any) -> dict[str, dict[str, Any] | LabError]:
        """Send the request `op` about a lab to each of its hosts, and return the answers, or errors, by host.

        Each host also gets the offset of its nodes' CLOCK_MONOTONIC (`clock`, in seconds).
        """
        hosts, shifts = self._used.get(lab, ()), self._shifts.get(lab, {})
        asked = (self._connections[name].request(op, lab=lab, clock=shifts[name] / 1e9, **fields) for name in hosts)
        found: dict[str, dict[str, Any] | LabError] = {}
        for name, answer in zip(hosts, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, LabError):
                raise answer
            found[name] = answer
        return found

    async def clocks(self, lab: str) -> dict[str, ClockOffset]:
        """Measure the clocks of a lab's hosts now, and return their offsets by node, the middle node included."""
        await self._look_at_clocks(lab)
        found = {}
        for node, host in self._placed.get(lab, {}).items():
            offset = self._connections[host].clocks.offset
            found[node] = replace(offset, monotonic=offset.monotonic + self._shifts[lab][host])
        return found

    def clocks_record(self) -> dict[str, dict[str, float]]:
        """Return, by host, two figures in microseconds for the record.

        `offset_us`: how far the host's CLOCK_REALTIME is ahead of ours. `error_us`: the bound of that figure's error.
        """
        known = {name: one.clocks.offset for name, one in self._connections.items()}
        return {name: {"offset_us": each.realtime / 1e3, "error_us": each.error / 1e3} for name, each in known.items()}

    async def _look_at_clocks(self, lab: str) -> None:
        """Look at the clocks of a lab's hosts; for a host that is lost meanwhile, the known offsets stay."""
        there = [self._connections[name] for name in self._used.get(lab, ())]
        await asyncio.gather(*(one.look_at_clock(one.clocks.burst) for one in there), return_exceptions=True)

    def abouts(self) -> dict[str, dict[str, Any]]:
        """Return, by host, the facts that its relay stated when it started (see `HostConnection.about`)."""
        return {name: one.about for name, one in self._connections.items()}

    async def _connect(self, host: InventoryHost) -> None:
        connection = self._connections[host.name] = HostConnection(host)
        await connection.begin()
        if (unlike := self._unlike(connection)) is not None:
            await connection.end()
            raise unlike

    def _unlike(self, connection: HostConnection) -> LabError | None:
        """Return the error for a host with another version than ours, or another kernel than before; None if alike."""
        name = connection.host.name
        if (theirs := connection.about["tunnelmark"]) != tunnelmark.__version__:
            return LabError(
                f"host {name} has tunnelmark {theirs}, this machine {tunnelmark.__version__}",
                hint="install the same version on all hosts",
            )
        before = self.record.get("hosts", {}).get(name, {}).get("release")
        if before is not None and (now := connection.about["release"]) != before:
            return LabError(
                f"host {name} came back with Linux {now}, and had {before}",
                hint=f"start it with Linux {before}, and go on with `tunnelmark run --resume DIR`",
            )
        return None

    async def _reconnect(self, lost: HostConnection) -> None:
        until = time.monotonic() + _BACK
        while True:
            await lost.end()
            try:
                await self._connect(lost.host)
                return
            except LabError:
                self._connections[lost.host.name].lost = self._connections[lost.host.name].lost or lost.lost
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(_AGAIN)

    def _require_mtu(self, links: Sequence[LinkSpec], hosts: Mapping[str, str]) -> None:
        """Raise UsageError if packets of a link would not pass unfragmented between two hosts."""
        kind, wanted = self.inventory.network.kind, max(spec.mtu for spec in links)
        for name in dict.fromkeys([*hosts.values(), self.inventory.middle.name]):
            connection = self._connections[name]
            if not fits(kind, mtu := connection.about["mtu"], wanted):
                raise UsageError(
                    f"host {name}: {connection.host.interface} has an MTU of {mtu}, too little for packets of {wanted} bytes in {kind}",
                    hint='raise it on all hosts (ip link set INTERFACE mtu 9000), take VLANs (kind = "vlan"), or state mtu = '
                    f"{mtu - 50} for the topology's links",
                )

    def _way(self, host: str, other: str) -> dict[str, Any]:
        """Return how a segment goes from a host to another, as the fields that `interfaces.Wanted` has for it."""
        network, own = self.inventory.network, self._connections[host].host
        return {
            "kind": network.kind,
            "interface": own.interface,
            "address": str(own.address),
            "other": str(self._connections[other].host.address),
            "port": network.port,
        }

    def _free_numbers(self) -> Iterator[int]:
        """Yield numbers that no lab has, in turn: the last used ones may still be ending. LabError if none is left."""
        taken = {number for numbers in self._numbers.values() for number in numbers}
        first, last = self.inventory.network.numbers
        for _ in range(first, last + 1):
            self._latest = first + (self._latest + 1 - first) % (last + 1 - first)
            if self._latest not in taken:
                yield self._latest
        raise LabError(
            f"the inventory's {last + 1 - first} numbers are too few for the links of the labs that are up",
            hint="widen `numbers` in [network]",
        )


def _together(errors: Sequence[BaseException]) -> BaseException:
    """Return the first error, with the messages of the others added to its own."""
    first, *others = errors
    said = [each.message for each in others if isinstance(each, TunnelmarkError)]
    if isinstance(first, TunnelmarkError) and said:
        return type(first)("\n".join([first.message, *said]), hint=first.hint)
    return first
