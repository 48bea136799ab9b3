"""Labs as the command sees them: a lab server for the life of the command, and labs of nodes on links.

async with LabClient() as labs:
    async with labs.lab(topology, profile) as lab:
        await lab.nodes["a"].run(["ping", "-c1", str(lab.address("b"))])
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tunnelmark.errors import LabError
from tunnelmark.host import fair_nice, pauses, privileges, softirq
from tunnelmark.host.cores import Cores, keep_to, placed
from tunnelmark.host.placement import Placement
from tunnelmark.lab import channel, router_rules, rpc
from tunnelmark.lab.addressing import profiles_of, specs_of
from tunnelmark.lab.emulator import Emulator, carry
from tunnelmark.lab.node import Node
from tunnelmark.lab.routing import granted, route
from tunnelmark.lab.server import veth
from tunnelmark.lab.underlay import Underlay
from tunnelmark.linux import cgroup_cleanup, cgroups, kernel_threads
from tunnelmark.plan.model import Profile, Topology

MIDDLE = "middle"
"""Name of the node that all links run through; no topology may use it."""

HOST_SYSCTLS = {
    "net.ipv6.conf.all.accept_dad": "0",  # addresses are usable at once: no one else is on these links
    "net.ipv6.conf.default.accept_dad": "0",
    "net.ipv6.conf.default.router_solicitations": "0",  # no router will answer
    "net.ipv4.tcp_congestion_control": "cubic",  # refused where only the host may choose; see `congestion`
}
MIDDLE_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "1",  # a link does not speak
    "net.ipv6.conf.default.disable_ipv6": "1",
}
_GONE = "its last output is above; `tunnelmark doctor` shows what this machine lacks"
_Answer = TypeVar("_Answer")
_PATIENCE = 10.0  # seconds for the kernel to make or end namespaces on a busy machine


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall seconds a lab took: to be up (nodes, links) and, once it has ended, to be gone."""

    nodes: float
    links: float
    up: float


class LabClient:
    """The lab server of one command (see `lab.server.server`), with the janitor that cleans up after it; its nodes have so many cores each."""

    def __init__(self, scratch: Sequence[Path] = (), *, node_cores: int = 1) -> None:
        self._scratch = tuple(scratch)
        self.node_cores = node_cores
        self._name = f"tunnelmark-{os.getpid()}-{os.urandom(3).hex()}"
        self._labs = 0
        self._group = cgroups.ControlGroup(cgroups.find(), self._name)
        self._cores = Cores(self._name)
        self.record: dict[str, Any] = {}

    async def __aenter__(self) -> LabClient:
        privileges.require("the lab makes network namespaces")
        nice = fair_nice.nice_beside(cgroups.find())
        if cgroups.sweep():
            kernel_threads.restore_all(nice)
        folders = (*self._group.folders, *self._cores.folders)
        life, self._life = os.pipe2(os.O_CLOEXEC)
        ours, theirs = channel.pair()
        self._janitor = await _start(
            [
                "-I",
                "-S",
                cgroup_cleanup.__file__,
                str(life),
                str(nice),
                *map(str, folders),
                "--",
                *map(str, self._scratch),
            ],
            [life],
        )
        self._process = await _start(
            ["-m", "tunnelmark.lab.server.server", str(theirs.fileno()), self._name, *map(str, self._cores.files)],
            [theirs.fileno(), self._life, *self._cores.files],
            True,
        )
        os.close(life)
        theirs.close()
        self._ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._server = rpc.Client(
            ours,
            refused=_refused,
            gone=lambda reason: _gone(f"is gone: {reason}"),
            on_notice=self._noticed,
            on_end=self._ended,
        )
        try:
            self.record = self._cores.begun(await self._ready) | {"kernel_threads_nice": nice}
        except LabError:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every lab of this command; when it returns, nothing is left."""
        self._server.close()
        self._cores.end()
        await self._process.wait()
        os.close(self._life)
        await self._janitor.wait()

    @property
    def unified(self) -> Path | None:
        """The command's control group in the v2 hierarchy, for CPU accounting; None where there is no v2."""
        return self._group.top

    def watch(self) -> None:
        """Watch for pauses of the machine from now on; where that is not possible, `clocks_not` in the record says why."""
        if "clocks_not" not in self.record and (why := self._cores.watch()) is not None:
            self.record["clocks_not"] = why

    async def seen(self) -> pauses.PausesSeen | None:
        """The pauses of the machine since `watch`; None where nothing sees them."""
        return await self._cores.seen()

    async def check(self) -> None:
        """LabError if the lab server is gone, and every lab with it."""
        await self.request("check")

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
        routers = {router.name: router for router in topology.routers}
        names = (*topology.nodes, *routers, MIDDLE)
        pairs = [channel.pair() for _ in names]
        nodes = {node: Node(node, ours) for node, (ours, _) in zip(names, pairs, strict=True)}
        links = specs_of(topology, profile, ipv6=ipv6)
        placement = placed(topology, self.node_cores)
        carriers = list(placement.links)
        if placement.links_apart:
            keep_to(placement.command)
        try:
            answer = await self.request(
                "up",
                [theirs.fileno() for _, theirs in pairs],
                lab=name,
                middle=MIDDLE,
                nodes=[
                    {
                        "name": n,
                        "sysctls": HOST_SYSCTLS
                        | dict(sysctls)
                        | (router_rules.FORWARDS if n in topology.forwards else {}),
                        "cores": list(own),
                        "receive": list(own),
                    }
                    for n, own in placement.nodes.items()
                ]
                + [
                    {
                        "name": name,
                        "sysctls": HOST_SYSCTLS | dict(sysctls) | router_rules.sysctls(router),
                        "cores": carriers,
                        "receive": carriers if placement.links_apart else [],
                        "router": True,
                    }
                    for name, router in routers.items()
                ]
                + [
                    {
                        "name": MIDDLE,
                        "sysctls": MIDDLE_SYSCTLS,
                        "cores": carriers,
                        # Without a core of their own another would only be one more to wake on a packet's way.
                        "receive": carriers if placement.links_apart else [],
                    }
                ],
                links=[spec.plain() for spec in links],
            )
            granted(sysctls, answer["refused"])
            await _in_time(asyncio.gather(*(node.hello() for node in nodes.values())), "not every node began")
            await asyncio.gather(
                *(route(nodes[node], topology, links) for node in names[:-1] if routers or topology.forwards)
            )
            emulators = await carry(nodes[MIDDLE], links, profiles_of(topology, profile), seed, raw)
        except BaseException:
            for node in nodes.values():
                node.close()
            raise
        finally:
            for _, theirs in pairs:
                theirs.close()
        timings = Timings(**answer["timings"], up=time.monotonic() - begun)
        return Lab(self, name, topology, profile, nodes, placement, links, emulators, timings, answer["refused"])

    async def request(self, op: str, fds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Ask the lab server for something (see `lab.server.server` for the requests); LabError if it says no."""
        return await _in_time(self._server.request(op, fds, **fields), f"the lab server did not answer {op!r}")

    def _noticed(self, message: rpc.Message, _: int | None) -> None:
        """It is ready, or says why it cannot be."""
        if self._ready.done():
            return
        if "error" in message:
            self._ready.set_exception(_refused(message["error"]))
        else:
            self._ready.set_result(message["ready"])

    def _ended(self) -> None:
        self._server.fail(_gone("ended"), [self._ready])


def _refused(reason: str) -> LabError:
    return LabError(f"the lab could not be made: {reason}", hint="`tunnelmark doctor` says what is missing")


def _gone(how: str) -> LabError:
    return LabError(f"the lab server {how}", hint=_GONE)


class Lab(Underlay):
    """Nodes on links, all fresh; `middle` is the node that the links run through."""

    def __init__(
        self,
        client: LabClient,
        name: str,
        topology: Topology,
        profile: Profile,
        nodes: dict[str, Node],
        placement: Placement,
        links: Sequence[veth.LinkSpec],
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

    def cpu_seconds(self) -> float | None:
        """CPU seconds that all nodes of this lab have used, user and kernel; None without cgroup v2.

        With those of the kernel's workers, on all cores, because kernel WireGuard encrypts on all: only the difference of two
        looks has a meaning.
        """
        top = self._client.unified
        if top is None:
            return None
        groups = sum(cgroups.cpu_seconds(top / f"{self.name}.{name}") for name in (*self.nodes, *self.routers, MIDDLE))
        return groups + sum(softirq.workers().values())

    def member(self, name: str) -> Node:
        """The node or router of that name."""
        return self.nodes.get(name) or self.routers[name]

    def group(self, node: str) -> Path | None:
        """The v2 control group of a node (or of the middle node, by its name); None without cgroup v2."""
        top = self._client.unified
        return None if top is None else top / f"{self.name}.{node}"

    async def counters(self) -> dict[str, dict[str, int]]:
        """Bytes, packets and drops that the middle node sent towards each node, by node name (first link)."""
        ports = (await self._client.request("count", lab=self.name))["ports"]
        return {node: ports[f"{node[:12]}.0"] for node in self.nodes if f"{node[:12]}.0" in ports}

    async def zero(self) -> None:
        """Restart the clocks of emulated links: their blackouts and schedules count from now."""
        for emulator in self._emulators:
            await emulator.zero()

    async def link_reports(self) -> list[dict[str, Any]]:
        """What the emulator of each link says of itself up to now; empty where the kernel carries the links.

        Where clocks see pauses of the machine (`LabClient.watch`), its `own_lateness_us` is without them.
        """
        seen = await self._client.seen() if self._emulators else None
        return [await emulator.report(seen) for emulator in self._emulators]

    async def stood_still(self, begin: float, end: float) -> dict[str, float]:
        """The machine's pauses between two moments (seconds of the monotonic clock), see `pauses.host`; {} if unseen."""
        seen = await self._client.seen()
        return {} if seen is None else pauses.host(seen.pauses, int(begin * 1e9), int(end * 1e9))

    async def down(self) -> float:
        """End all nodes with everything in them; seconds until the kernel had ended the last."""
        for emulator in self._emulators:
            emulator.close()
        for node in (*self.nodes.values(), *self.routers.values(), self.middle):
            node.close()
        answer = await self._client.request("down", lab=self.name)
        return float(answer["timings"]["end"])


async def _in_time(work: Awaitable[_Answer], otherwise: str) -> _Answer:
    """The result of some work; LabError with what did not happen, if it takes too long."""
    try:
        return await asyncio.wait_for(work, _PATIENCE)
    except TimeoutError:
        raise LabError(
            f"{otherwise} within {_PATIENCE:g} s",
            hint="the machine is overloaded, or its kernel takes long to end namespaces",
        ) from None


async def _start(arguments: list[str], fds: list[int], main: bool = False) -> asyncio.subprocess.Process:
    """Start one of our own programs in a session of its own, with open files."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        pass_fds=fds,
        start_new_session=not main,  # the lab server makes its session itself, after it is bound to our life
    )
