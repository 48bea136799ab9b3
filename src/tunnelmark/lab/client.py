"""Makes labs on this machine: starts a lab server for the life of the command, and a janitor that cleans up after it.

async with LabClient() as labs:
    async with labs.lab(topology, profile) as lab:
        await lab.nodes["a"].run(["ping", "-c1", str(lab.address("b"))])
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tunnelmark.errors import LabError
from tunnelmark.host import fair_nice, pauses, privileges
from tunnelmark.host.cores import Cores, keep_to, placed
from tunnelmark.host.placement import Placement
from tunnelmark.lab import channel, rpc
from tunnelmark.lab.labs import MIDDLE, Labs, in_time
from tunnelmark.lab.link_spec import LinkSpec
from tunnelmark.lab.node import Node
from tunnelmark.linux import cgroup_cleanup, cgroups, kernel_threads
from tunnelmark.plan.model import Topology

_GONE = "its last output is above; `tunnelmark doctor` shows what this machine lacks"


class LabClient(Labs):
    """Runs the lab server of one command (see `lab.server.server`), and the janitor that cleans up after it.

    `scratch`: files and folders that the janitor removes at the end. `node_cores`: how many cores each node has.
    """

    def __init__(self, scratch: Sequence[Path] = (), *, node_cores: int = 1) -> None:
        super().__init__(node_cores)
        self._scratch = tuple(scratch)
        self._name = f"tunnelmark-{os.getpid()}-{os.urandom(3).hex()}"
        self._group = cgroups.ControlGroup(cgroups.find(), self._name)
        self._cores = Cores(self._name)
        self._nodes: dict[str, int] = {}  # by lab: how many nodes it has

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
        """The command's control group in the v2 hierarchy, for CPU accounting; None without cgroup v2."""
        return self._group.top

    def watch(self) -> None:
        """Watch for pauses of the machine from now on. If that is not possible, `record["clocks_not"]` says why."""
        if "clocks_not" not in self.record and (why := self._cores.watch()) is not None:
            self.record["clocks_not"] = why

    async def seen(self, lab: str = "") -> pauses.PausesSeen | None:
        """Return the machine's pauses since `watch`, the same for all labs; None if nothing watches for them."""
        return await self._cores.seen()

    async def check(self) -> None:
        """Raise LabError if the lab server is gone, and with it every lab. Otherwise return None: no lab was lost."""
        await self.request("check")

    def placed(self, topology: Topology) -> Placement:
        """Return the placement of a topology.

        If the links have cores of their own, from now on the command runs only on the cores that the placement gives
        it.
        """
        placement = placed(topology, self.node_cores)
        if placement.links_apart:
            keep_to(placement.command)
        return placement

    async def born(
        self, lab: str, requests: Sequence[Mapping[str, Any]], links: Sequence[LinkSpec]
    ) -> tuple[dict[str, Node], dict[str, Any]]:
        """Make the nodes and links of a lab; return the nodes by name, and the lab server's answer (see `Labs.born`).

        LabError if the lab server refuses, or takes too long.
        """
        pairs = [channel.pair() for _ in requests]
        nodes = {each["name"]: Node(each["name"], ours) for each, (ours, _) in zip(requests, pairs, strict=True)}
        try:
            answer = await self.request(
                "up",
                [theirs.fileno() for _, theirs in pairs],
                lab=lab,
                middle=MIDDLE,
                nodes=[dict(each) for each in requests],
            )
            joined = await self.request("join", lab=lab, links=[spec.plain() for spec in links])
            answer["timings"] |= joined["timings"]
        except BaseException:
            for node in nodes.values():
                node.close()
            raise
        finally:
            for _, theirs in pairs:
                theirs.close()
        return nodes, answer

    async def counted(self, lab: str) -> dict[str, dict[str, int]]:
        """Return the middle node's counters by port (see `port_counters.counters`)."""
        ports: dict[str, dict[str, int]] = (await self.request("count", lab=lab))["ports"]
        return ports

    async def ended(self, lab: str) -> float:
        """End a lab; return the seconds until the kernel had ended its last node."""
        return float((await self.request("down", lab=lab))["timings"]["end"])

    async def request(self, op: str, fds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        """Send the lab server a request with copies of the open files `fds`, and return the answer.

        The requests are listed in `lab.server.server`. LabError if the server refuses, or does not answer in time. A
        request about a lab may take longer the more nodes the lab has (see `in_time`).
        """
        lab: str = fields.get("lab", "")
        if op == "up":
            self._nodes[lab] = len(fields["nodes"])
        nodes = self._nodes.pop(lab, 0) if op == "down" else self._nodes.get(lab, 0)
        return await in_time(self._server.request(op, fds, **fields), f"the lab server did not answer {op!r}", nodes)

    def _noticed(self, message: rpc.Message, _: int | None) -> None:
        """Handle the lab server's first message: it is ready, or it says why it cannot be."""
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
