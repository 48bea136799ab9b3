"""Labs as the command sees them, whatever starts their nodes: how one is brought up, and what it is once it is up.

`LabClient` starts nodes on this machine, `SshLabs` on others.
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
"""Name of the node that all links run through."""

HOST_SYSCTLS = {
    "net.ipv6.conf.all.accept_dad": "0",  # addresses are usable at once: no one else is on these links
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.router_solicitations": "0",  # no router will answer
    # A network namespace begins with these of the first one's: what a node does must not hang on the machine.
    "net.ipv4.ip_forward": "0",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.tcp_congestion_control": "cubic",  # refused where only the host may choose; see `congestion`
    # Where VPNs listen within the kernel's ephemeral range. wireguard-go opens an ephemeral port before it is configured,
    # and once that was the port of another instance on the same node: `wg setconf` failed, "address already in use".
    "net.ipv4.ip_local_reserved_ports": "41641,51820-51883,55555",
}
MIDDLE_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "1",  # a link does not speak
    "net.ipv6.conf.default.disable_ipv6": "1",
}
_Answer = TypeVar("_Answer")
_TELL = 5.0  # seconds between two words to emulators about pauses
_PATIENCE = 10.0  # seconds for the kernel to make or end namespaces on a busy machine
_PER_NODE = 1.0  # seconds more for each node: the kernel makes namespaces and interfaces one after the other


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall seconds a lab took: to be up (nodes, links) and, once it has ended, to be gone."""

    nodes: float
    links: float
    up: float


class Labs(ABC):
    """What makes the labs of one command; its nodes have so many cores each."""

    here = True
    """Whether the nodes run on this machine, under this kernel."""

    def __init__(self, node_cores: int) -> None:
        self.node_cores = node_cores
        self.record: dict[str, Any] = {}
        self._labs = 0

    @property
    @abstractmethod
    def unified(self) -> Path | None:
        """The command's control group in the v2 hierarchy, for CPU accounting; None where there is no v2."""

    @abstractmethod
    def watch(self) -> None:
        """Watch for pauses of the machine from now on; where that is not possible, `clocks_not` in the record says why."""

    @abstractmethod
    async def seen(self, lab: str) -> pauses.PausesSeen | None:
        """The pauses of the machine that carries a lab's links, at least since the lab was made, on its nodes' CLOCK_MONOTONIC.

        None where nothing sees them.
        """

    @abstractmethod
    async def check(self) -> str | None:
        """Why labs that were up are gone, if they are since this was last asked; LabError if no more can be made."""

    async def lost(self, lab: str) -> str | None:
        """Why a lab, or a part of it, is gone although no one has ended it; None if all of it is there."""
        return None

    async def ask_hosts(self, lab: str, op: str, **fields: Any) -> dict[str, dict[str, Any] | LabError]:
        """What the relay of each host of a lab answers, or why it does not; empty where the nodes are on this machine."""
        return {}

    async def clocks(self, lab: str) -> dict[str, ClockOffset]:
        """By node: the offset of its clocks from the command's, now; empty where all nodes have this machine's clocks."""
        return {}

    @abstractmethod
    def placed(self, topology: Topology) -> Placement:
        """The cores of each node of a topology."""

    @abstractmethod
    async def born(
        self, lab: str, requests: Sequence[Mapping[str, Any]], links: Sequence[LinkSpec]
    ) -> tuple[dict[str, Node], dict[str, Any]]:
        """The nodes of a lab, the middle one last, on their links, and what the lab server says: `refused` and `timings`."""

    @abstractmethod
    async def counted(self, lab: str) -> dict[str, dict[str, int]]:
        """Counters of the middle node by port (see `port_counters.counters`)."""

    @abstractmethod
    async def ended(self, lab: str) -> float:
        """End what is left of a lab; seconds until the kernel had ended the last node."""

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
        """A lab for the length of the block; LabError if it cannot be made (see `up`)."""
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
        """Make a lab: all nodes, all links, all addresses; it is up until its `down`.

        `seed` decides what emulated links do to the packets, one by one; the folder `raw` gets what the lab's own
        programs print. With `ipv6` the nodes have IPv6 addresses as well (`Lab.address6`). `sysctls` are kernel settings of
        all nodes and routers; LabError if this kernel refuses one.
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
        # Without a core of their own another would only be one more to wake on a packet's way.
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
        nodes, answer = await self.born(name, requests, links)
        try:
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
            raise
        timings = Timings(**answer["timings"], up=time.monotonic() - begun)
        lab = Lab(self, name, topology, profile, nodes, placement, links, emulators, timings, answer["refused"])
        lab.tell_pauses()
        return lab


class Lab(Underlay):
    """Nodes on links, all fresh; `middle` is the node that the links run through."""

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
        refused: dict[str, list[str]],
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
        self.refused = refused
        self._ends = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None

    @property
    def here(self) -> bool:
        """Whether the nodes run on this machine, under this kernel."""
        return self._client.here

    @property
    def members(self) -> dict[str, Node]:
        """All in which programs can run, by name: the nodes of the topology, its routers, and the middle node."""
        return self.nodes | self.routers | {MIDDLE: self.middle}

    async def lost(self) -> str | None:
        """Why it, or a part of it, is gone although no one has ended it; None if all of it is there."""
        return await self._client.lost(self.name)

    def cpu_seconds(self) -> float | None:
        """CPU seconds that all nodes of this lab have used (see `lab_seconds`); None without cgroup v2, or where they run elsewhere."""
        top = self._client.unified if self.here else None
        return None if top is None else lab_seconds(top, self.name, self.members)

    def member(self, name: str) -> Node:
        """The node or router of that name."""
        return self.nodes.get(name) or self.routers[name]

    def group(self, node: str) -> Path | None:
        """The v2 control group of a node (or of the middle node, by its name); None without cgroup v2."""
        top = self._client.unified
        return None if top is None else top / f"{self.name}.{node}"

    async def link_counters(self) -> list[dict[str, dict[str, int]]]:
        """For each link, what the kernel counted there by node (see `link_counts.of_link`)."""
        ports = await self._client.counted(self.name)
        return [link_counts.of_link(spec, number, ports) for number, spec in enumerate(self._links)]

    async def zero(self) -> None:
        """Restart the clocks of emulated links: their blackouts and schedules count from a moment before this returns."""
        await asyncio.gather(*(emulator.zero() for emulator in self._emulators))

    async def link_reports(self) -> list[dict[str, Any]]:
        """What the emulator of each link says of itself up to now; empty where the kernel carries the links.

        Where clocks see pauses of the machine (`LabClient.watch`), its `own_lateness_us` is without them.
        """
        seen = await self._client.seen(self.name) if self._emulators else None
        return [await emulator.report(seen) for emulator in self._emulators]

    def tell_pauses(self) -> None:
        """Have the emulators know of the machine's pauses every few seconds, until its `down`: they keep only so many late packets until then."""
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
        """Ask the relay of each of its hosts (see `Labs.ask_hosts`)."""
        return await self._client.ask_hosts(self.name, op, **fields)

    async def clocks(self) -> dict[str, ClockOffset]:
        """By node, the middle one too: how far its clocks are from the command's now; empty where all have the same."""
        return await self._client.clocks(self.name)

    async def stood_still(self, begin: float, end: float) -> dict[str, float]:
        """The machine's pauses between two moments (seconds of the monotonic clock), see `pauses.host`; {} if unseen."""
        seen = await self._client.seen(self.name)
        return {} if seen is None else pauses.host(seen.pauses, int(begin * 1e9), int(end * 1e9))

    async def down(self) -> float:
        """End all nodes with everything in them; seconds until the kernel had ended the last."""
        self._ends.set()
        if self._telling is not None:
            await asyncio.wait([self._telling])  # it writes to what is closed now
        for emulator in self._emulators:
            emulator.close()
        for node in self.members.values():
            node.close()
        return await self._client.ended(self.name)


async def in_time(work: Awaitable[_Answer], otherwise: str, nodes: int = 0) -> _Answer:
    """The result of some work on so many nodes; LabError with what did not happen, if it takes too long: it may take longer with more of them."""
    patience = _PATIENCE + _PER_NODE * nodes
    try:
        return await asyncio.wait_for(work, patience)
    except TimeoutError:
        raise LabError(
            f"{otherwise} within {patience:g} s",
            hint="the machine is overloaded, or its kernel takes long to end namespaces",
        ) from None
