"""Detects that a node lacks the overlay interface that its driver names, and says which interfaces it has instead."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Coroutine, Mapping
from typing import Any, TypeVar

from tunnelmark.errors import NotReady, SetupFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.model.steps import Daemon, Interface
from tunnelmark.run.background import background
from tunnelmark.vpns.base import Deployment, interface_fault

_LOOK_EVERY = 0.5  # seconds: an interface that two successive looks see has its final name
_HINT = "an interface's name in the driver (`Overlay`, `Interface`) must be the one that the VPN is given, or chooses"
_Result = TypeVar("_Result")


def check(deployment: Deployment) -> None:
    """Raise SetupFailed if a deployment names an interface by a name that Linux does not allow."""
    named = [(node, overlay.interface) for node, overlay in deployment.overlays.items()]
    steps = [step for phase in deployment.phases for step in phase if isinstance(step, Daemon)]
    named += [(step.node, step.ready.name) for step in steps if isinstance(step.ready, Interface)]
    for node, name in named:
        if fault := interface_fault(name):
            raise SetupFailed(f"node {node}: the interface name {name!r} {fault}", hint="correct it in the driver")


class Interfaces:
    """Tells a VPN's interfaces from those of the lab's nodes.

    `expected`: by node, the name of the interface that the VPN should make there.
    """

    def __init__(self, lab: Lab, expected: Mapping[str, str]) -> None:
        self._lab = lab
        self._expected = dict(expected)
        self._before: dict[str, Collection[str]] = {}

    async def remember(self) -> None:
        """Note the nodes' present interfaces as the lab's own; call it before a VPN is started."""
        for node in self._expected:
            self._before.setdefault(node, await self._names(node))

    async def unless_misnamed(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Wait for `work`, and return its result; cancel it if the VPN brings up another interface than expected.

        Raises NotReady in that case, when `work` has ended.
        """
        async with background(work, self._watch()) as (task, watch):
            await asyncio.wait([task, watch], return_when=asyncio.FIRST_COMPLETED)
            if watch.done() and not task.done():
                watch.result()
            result: _Result = await task
        return result

    async def missing(self) -> str:
        """Say in words which nodes lack their expected interface, and which interfaces these nodes have.

        "" if no node lacks it.
        """
        said = []
        for node, wanted in self._expected.items():
            if wanted not in (names := await self._names(node)):
                said.append(_words(node, wanted, names))
        return "; ".join(said)

    async def _watch(self) -> None:
        suspects: dict[str, set[str]] = {}
        waiting = set(self._expected)
        while waiting:
            await asyncio.sleep(_LOOK_EVERY)
            for node in sorted(waiting):
                wanted, names = self._expected[node], await self._names(node)
                if wanted in names:
                    waiting.remove(node)
                    continue
                # Only interfaces with an address count: the VPN has finished them, and will not rename them.
                new = (await self._addressed(node) - set(self._before.get(node, names))) & set(names)
                if new and new == suspects.get(node):
                    raise NotReady(_words(node, wanted, names), hint=_HINT)
                suspects[node] = new

    async def _names(self, node: str) -> list[str]:
        lines = (await self._lab.nodes[node].read("/proc/net/dev")).splitlines()[2:]  # two of titles
        return [line.partition(":")[0].strip() for line in lines]

    async def _addressed(self, node: str) -> set[str]:
        """Return the node's interfaces that have an address of global scope."""
        shown = await self._lab.nodes[node].run(["ip", "-json", "address", "show", "scope", "global"])
        return {one["ifname"] for one in json.loads(shown.stdout or "[]") if one.get("addr_info")}


def _words(node: str, wanted: str, names: Collection[str]) -> str:
    others = ", ".join(name for name in names if name != "lo") or "none"
    return f"node {node} has no interface {wanted}; it has {others}"
