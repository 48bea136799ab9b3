"""Brings labs up, and represents a lab that is up, independent of how its nodes are started.

`LabClient` starts nodes on this machine, `SshLabs` on other hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tunnelmark.errors import LabError
from tunnelmark.host import pauses
from tunnelmark.host.lab_seconds import lab_seconds
from tunnelmark.host.placement import Placement
from tunnelmark.lab import link_counts, router_rules
from tunnelmark.lab.addressing import profiles_of, specs_of
from tunnelmark.lab.emulator import Emulator, carry
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.node import Node
from tunnelmark.lab.routing import granted, route
from tunnelmark.lab.underlay import Underlay
from tunnelmark.model.clock_offsets import ClockOffset
from tunnelmark.plan import topologies
from tunnelmark.plan.model import Profile, Topology

MIDDLE = topologies.MIDDLE
"""The name of the node that all links run through."""

HOST_SYSCTLS = {
    "net.ipv6.conf.all.accept_dad": "0",  # addresses are usable at once: no one else is on these links
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.router_solicitations": "0",  # no router will answer
    # A new network namespace inherits these from the machine: a node's behaviour must not depend on the machine.
    "net.ipv4.ip_forward": "0",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.tcp_congestion_control": "cubic",  # refused where only the host may choose it; see `congestion`
    # The VPNs' listening ports in the kernel's ephemeral range. wireguard-go opens an ephemeral port before it is
    # configured, and once that was the port of another instance on the same node: `wg setconf` failed, "address
    # already in use".
    "net.ipv4.ip_local_reserved_ports": "41641,51820-51883,55555",
}
MIDDLE_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "1",  # a link sends nothing of its own
    "net.ipv6.conf.default.disable_ipv6": "1",
}
_Answer = TypeVar("_Answer")
_TELL = 5.0  # seconds between two messages to the emulators about pauses
_PATIENCE = 10.0  # seconds for the kernel to make or end namespaces on a busy machine
_PER_NODE = 1.0  # seconds more for each node: the kernel makes namespaces and interfaces one after the other


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall-clock seconds that it took to make a lab's nodes, to make its links, and to bring it `up` in all."""

    nodes: float
    links: float
    up: float


class Labs(ABC):
    """Makes the labs of one command; each node has `node_cores` cores."""

    here = True
    """Whether the nodes run on this machine, under this kernel."""

    def __init__(self, node_cores: int) -> None:
        self.node_cores = node_cores
        self.record: dict[str, Any] = {}
        self._labs = 0

    @property
    @abstractmethod
    def unified(self) -> Path | None:
        """The command's control group in the v2 hierarchy, for CPU accounting; None without cgroup v2."""

    @abstractmethod
    def watch(self) -> None:
        """Watch for pauses of the machine from now on. If that is not possible, `record["clocks_not"]` says why."""

    @abstractmethod
    async def seen(self, lab: str) -> pauses.PausesSeen | None:
        """Return the pauses of the machine that carries a lab's links, at least since the lab was made.

        Times are those of the nodes' CLOCK_MONOTONIC. None if nothing watches for pauses.
        """

    @abstractmethod
    async def check(self) -> str | None:
        """Return why labs were lost since the last call, or None. LabError if no more labs can be made."""

    async def lost(self, lab: str) -> str | None:
        """Return why a lab, or a part of it, has ended unexpectedly; None if all of it is up."""
        return None

    async def ask_hosts(self, lab: str, op: str, **fields: Any) -> dict[str, dict[str, Any] | LabError]:
        """Send a request about a lab to each host of the lab; return the answers or errors by host.

        `op`, `fields`: the name and the fields of a request that `lab.ssh.relay` answers on the host. {} if the nodes
        are on this machine.
        """
        return {}

    async def clocks(self, lab: str) -> dict[str, ClockOffset]:
        """Return, by node, how far the node's clocks are ahead of the clocks of this machine, where the command runs.

        {} if all nodes have this machine's clocks.
        """
        return {}

    @abstractmethod
    def placed(self, topology: Topology) -> Placement:
        """Return which cores each node of a topology has, and which the links and the command have."""

    @abstractmethod
    async def born(
        self, lab: str, requests: Sequence[Mapping[str, Any]], links: Sequence[LinkSpec]
    ) -> tuple[dict[str, Node], dict[str, Any]]:
        """Make a lab's nodes and links. Return the nodes by name, the middle one last, and an answer about them.

        `requests`: what the lab server's `up` needs for each node (see `lab.server.server`), the middle node last. The
        answer has `refused` (by node, a list of "setting: reason") and `timings` (seconds for `nodes` and for `links`).
        """

    @abstractmethod
    async def counted(self, lab: str) -> dict[str, dict[str, int]]:
        """Return the middle node's counters by port (see `port_counters.counters`)."""

    @abstractmethod
    async def ended(self, lab: str) -> float:
        """End what is left of a lab; return the seconds until the kernel had ended the last node."""

    @asynccontextmanager
    async def lab(
        self,
        topology: Topology,
        profile: Profile,
        *,
        seed: int = 0,
        raw: Path | None = None,
        ipv6: bool = False,
        sysctls: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[Lab]:
        """Make a lab (see `up`), and end it when the `async with` statement ends; LabError if it cannot be made."""
        lab = await self.up(topology, profile, seed=seed, raw=raw, ipv6=ipv6, sysctls=sysctls)
        try:
            yield lab
        finally:
            await lab.down()

    async def up(
        self,
        topology: Topology,
        profile: Profile,
        *,
        seed: int = 0,
        raw: Path | None = None,
        ipv6: bool = False,
        sysctls: Mapping[str, str] = MappingProxyType({}),
    ) -> Lab:
        """Make a lab with all its nodes, links and addresses; it is up until its `down`.

        `seed` decides what emulated links do to each packet. The folder `raw` gets the output of the emulators; it is
        not kept if `raw` is None. With `ipv6` the nodes have IPv6 addresses as well (`Lab.address6`). `sysctls` are
        kernel settings of all nodes and routers. LabError if the kernel refuses one, or if the lab cannot be made.
        """
        if profile.auto is not None:
            raise LabError(
                f"the rate of {profile.name} is not fixed yet", hint="a study fixes it before its first trial"
            )
        begun = time.monotonic()
        self._labs += 1
        name = f"lab{self._labs}"
        links = specs_of(topology, profile, ipv6=ipv6)
        placement = self.placed(topology)
        carriers = list(placement.links)
        # If the links have no core of their own, receiving on another one only adds a wake-up to a packet's path.
        receive = carriers if placement.links_apart else []
        requests: list[dict[str, Any]] = []
        for each, own in placement.nodes.items():
            settings = HOST_SYSCTLS | dict(sysctls) | (router_rules.FORWARDS if each in topology.forwards else {})
            requests.append({"name": each, "sysctls": settings, "cores": list(own), "receive": list(own)})
        for router in topology.routers:
            settings = HOST_SYSCTLS | dict(sysctls) | router_rules.FORWARDS
            requests.append(
                {"name": router.name, "sysctls": settings, "cores": carriers, "receive": receive, "router": True}
            )
        middle = {"name": MIDDLE, "sysctls": MIDDLE_SYSCTLS, "cores": carriers, "receive": receive}
        requests.append(middle | {"realtime": any(spec.emulated for spec in links)})
        nodes: dict[str, Node] = {}
        try:
            nodes, answer = await self.born(name, requests, links)
            granted(sysctls, answer["refused"])
            begin = asyncio.gather(*(node.hello() for node in nodes.values()))
            await in_time(begin, "not every node began", len(nodes))
            await asyncio.gather(
                *(
                    route(node, topology, links)
                    for node in nodes.values()
                    if node.name != MIDDLE and (topology.routers or topology.forwards)
                )
            )
            emulators = await carry(nodes[MIDDLE], links, profiles_of(topology, profile), seed, raw)
        except BaseException:
            for node in nodes.values():
                node.close()
            with contextlib.suppress(LabError):  # it may not have been made at all
                await self.ended(name)
            raise
        timings = Timings(**answer["timings"], up=time.monotonic() - begun)
        lab = Lab(self, name, topology, profile, nodes, placement, links, emulators, timings)
        lab.tell_pauses()
        return lab


class Lab(Underlay):
    """A lab that is up: freshly made nodes and links; `middle` is the node that all links run through."""

    def __init__(
        self,
        client: Labs,
        name: str,
        topology: Topology,
        profile: Profile,
        nodes: dict[str, Node],
        placement: Placement,
        links: Sequence[LinkSpec],
        emulators: Sequence[Emulator],
        timings: Timings,
    ) -> None:
        self._client = client
        super().__init__(links)
        self._emulators = emulators
        self.name = name
        self.topology = topology
        self.profile = profile
        self.middle = nodes.pop(MIDDLE)
        self.routers = {router.name: nodes.pop(router.name) for router in topology.routers}
        self.nodes = nodes
        self.placement = placement
        self.cores = {node: list(own) for node, own in placement.nodes.items()}
        self.timings = timings
        self._ends = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None

    @property
    def here(self) -> bool:
        """Whether the nodes run on this machine, under this kernel."""
        return self._client.here

    @property
    def members(self) -> dict[str, Node]:
        """The nodes that can run programs, by name: the topology's nodes and routers, and the middle node."""
        return self.nodes | self.routers | {MIDDLE: self.middle}

    async def lost(self) -> str | None:
        """Return why the lab, or a part of it, has ended unexpectedly; None if all of it is up."""
        return await self._client.lost(self.name)

    def cpu_seconds(self) -> float | None:
        """Return the CPU seconds that all nodes have used (see `lab_seconds`).

        None without cgroup v2, or if the nodes are on other hosts.
        """
        top = self._client.unified if self.here else None
        return None if top is None else lab_seconds(top, self.name, self.members)

    def member(self, name: str) -> Node:
        """Return the node or router of that name; KeyError if there is none."""
        return self.nodes.get(name) or self.routers[name]

    def group(self, node: str) -> Path | None:
        """Return the v2 control group of a node (or of the middle node, by its name); None without cgroup v2.

        LabError if the nodes are on other hosts.
        """
        top = self._client.unified
        return None if top is None else top / f"{self.name}.{node}"

    async def link_counters(self) -> list[dict[str, dict[str, int]]]:
        """Return, for each link, the kernel's counts of packets by node (see `link_counts.of_link`)."""
        ports = await self._client.counted(self.name)
        return [link_counts.of_link(spec, number, ports) for number, spec in enumerate(self._links)]

    async def zero(self) -> None:
        """Set the clocks of all emulated links to 0, shortly before this method returns.

        Blackouts and schedules of the profiles count from that moment.
        """
        await asyncio.gather(*(emulator.zero() for emulator in self._emulators))

    async def link_reports(self) -> list[dict[str, Any]]:
        """Return the report of each emulator up to now; [] if the kernel carries all links.

        If the machine's pauses are watched (`LabClient.watch`), they do not count in `own_lateness_us`.
        """
        seen = await self._client.seen(self.name) if self._emulators else None
        return [await emulator.report(seen) for emulator in self._emulators]

    def tell_pauses(self) -> None:
        """Send the emulators the machine's pauses every 5 s until `down`.

        So they need not remember more than the late packets of 5 s.
        """
        if self._emulators:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ends.wait(), _TELL)
                return
            if (seen := await self._client.seen(self.name)) is not None:
                for emulator in self._emulators:
                    await emulator.tell(seen)

    async def ask_hosts(self, op: str, **fields: Any) -> dict[str, dict[str, Any] | LabError]:
        """Send the request `op` to each of the lab's hosts (see `Labs.ask_hosts`)."""
        return await self._client.ask_hosts(self.name, op, **fields)

    async def clocks(self) -> dict[str, ClockOffset]:
        """Return, by node (also the middle one), how far the node's clocks are ahead of this machine's.

        {} if all nodes have this machine's clocks.
        """
        return await self._client.clocks(self.name)

    async def stood_still(self, begin: float, end: float) -> dict[str, float]:
        """Return how the machine paused between two moments (seconds of CLOCK_MONOTONIC), as figures of `pauses.host`.

        {} if nothing watches for pauses.
        """
        seen = await self._client.seen(self.name)
        return {} if seen is None else pauses.host(seen.pauses, int(begin * 1e9), int(end * 1e9))

    async def down(self) -> float:
        """End all nodes and everything in them; return the seconds until the kernel had ended the last one."""
        self._ends.set()
        if self._telling is not None:
            await asyncio.wait([self._telling])  # it writes to what is closed now
        for emulator in self._emulators:
            emulator.close()
        for node in self.members.values():
            node.close()
        return await self._client.ended(self.name)


async def in_time(work: Awaitable[_Answer], otherwise: str, nodes: int = 0) -> _Answer:
    """Return the result of `work`, which concerns so many `nodes`; LabError that says `otherwise` if it takes too long.

    It may take 10 seconds, and 1 second more for each node.
    """
    patience = _PATIENCE + _PER_NODE * nodes
    try:
        return await asyncio.wait_for(work, patience)
    except TimeoutError:
        raise LabError(
            f"{otherwise} within {patience:g} s",
            hint="the machine is overloaded, or its kernel takes long to end namespaces",
        ) from None
