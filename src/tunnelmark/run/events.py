"""What is done to a deployment while a trial runs, and when: restarts, reboots, cuts, link flaps, changes of address."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunnelmark.lab.labs import Lab
from tunnelmark.plan.routers import Router
from tunnelmark.run import holdings, rebinding
from tunnelmark.run.background import together
from tunnelmark.run.cuts import Cuts
from tunnelmark.run.node_links import NodeLinks
from tunnelmark.run.tunnel import RunningDeployment
from tunnelmark.vpns.direct import UNDERLAY_INTERFACE as UNDERLAY
from tunnelmark.workloads.base import ANSWERED, ENDINGS, EVERY_NODE, Event

DEPLOYED = "deployed"
"""The `kind` of the first line: how long the deployment took to its `first_packet`, in seconds by direction."""

_PATIENCE = 3600.0  # seconds that a step of a restart may take: the trial's own end comes first
_TAKE_LINKS = ("link-down", "power-off")
"""Prepared last: what comes back with a link is also what was made for the other events."""

_HEALS = {"partition-heal": "partition", "udp-heal": "udp-cut", "udp-open": "udp-blocked"}


async def happen(
    lab: Lab,
    tunnel: RunningDeployment,
    events: Sequence[Event],
    file: Path,
    programs: Callable[[], holdings.Programs] = dict,
) -> None:
    """Do each event at its time from now on, and append to the file what was done and when.

    Events of one node come one after the other; those of others do not wait for them. A line is a JSON object: `kind`, `node`,
    and `begun` and `ended` in seconds of CLOCK_MONOTONIC, the clock of every node; `ended` is null where the trial was over
    first. The first line says how the deployment began (DEPLOYED); where all nodes are rebooted, others say when each carried
    traffic again (ANSWERED). However this ends, links are whole again: what was cut is healed, and what was down is up.
    `programs` says which programs are not the VPN's, where holdings are counted: that line has them as `held`, by node.
    WorkloadFailed if the VPN does not have what is to be restarted.
    """
    start = time.monotonic()
    _write(file, {"kind": DEPLOYED, "first_packet": dict(tunnel.first_packet)})
    hand = _Hand(lab, tunnel, Cuts(lab), NodeLinks(lab), programs)
    try:
        each = {(event.kind, event.node): event for event in events}.values()
        for event in sorted(each, key=lambda event: event.kind in _TAKE_LINKS):
            await hand.prepare(event)
        of_node: dict[str, list[Event]] = {}
        for event in sorted(events, key=lambda event: event.at):
            of_node.setdefault(event.node, []).append(event)
        rebooted = any(event.kind == "power-on" and event.node == EVERY_NODE for event in events)
        watches = (_answered(hand, node, file) for node in lab.nodes) if rebooted else ()
        await together(*(_in_turn(hand, own, start, file) for own in of_node.values()), *watches)
    finally:
        await hand.undo()


def taken_down(lab: Lab, events: Sequence[Event]) -> frozenset[str]:
    """The middle node's ports to the interfaces that these events take down."""
    return frozenset(
        port
        for event in events
        if event.kind in _TAKE_LINKS
        for node in _nodes(lab, event)
        for port in lab.ports_to(node, UNDERLAY if event.kind == "link-down" else "")
    )


async def _in_turn(hand: _Hand, events: Sequence[Event], start: float, file: Path) -> None:
    late = 0.0
    for event in events:
        behind = late if event.kind in ENDINGS else 0.0
        await asyncio.sleep(max(0.0, start + event.at + behind - time.monotonic()))
        done: dict[str, Any] = {"kind": event.kind, "node": event.node, "begun": time.monotonic(), "ended": None}
        try:
            done |= await hand.do(event)
            done["ended"] = time.monotonic()
            # What breaks may take long to break, as a link does whose kernel takes other interfaces down: an outage begins behind that.
            late = done["ended"] - start - event.at
        finally:
            _write(file, done)


async def _answered(hand: _Hand, node: str, file: Path) -> None:
    """Note when a node carries traffic again after all nodes were rebooted."""
    await hand.powered.wait()
    at = await hand.tunnel.next_answer(node, _PATIENCE)
    _write(file, {"kind": ANSWERED, "node": node, "begun": at, "ended": at})


def _write(file: Path, line: dict[str, Any]) -> None:
    with file.open("a") as record:
        record.write(json.dumps(line) + "\n")


@dataclass(slots=True)
class _Hand:
    """Does events. `powered`: power is on again. `translating`: by node, the routers that translate its address; `draws`: how often ports were drawn again."""

    lab: Lab
    tunnel: RunningDeployment
    cuts: Cuts
    links: NodeLinks
    programs: Callable[[], holdings.Programs]
    translating: dict[str, tuple[Router, ...]] = field(default_factory=dict)
    draws: int = 0
    powered: asyncio.Event = field(default_factory=asyncio.Event)

    async def prepare(self, event: Event) -> None:
        """Everything that can be done before its time, so that it then takes no longer than it must."""
        match event.kind:
            case "restart-control" | "stop-control":
                self.tunnel.require_control()
            case "link-down":
                await self.links.remember(event.node, [UNDERLAY])
            case "power-off":
                for node in _nodes(self.lab, event):
                    await self.links.remember(node, self.links.devices(node))
            case "partition":
                await self.cuts.prepare(_named(event.kind, event), event.node)
            case "udp-cut":
                await self.cuts.prepare(_named(event.kind, event), event.node, only="udp", but=self._relay(event.node))
            case "udp-blocked":
                await self.cuts.prepare(_named(event.kind, event), event.node, only="udp")
            case "nat-rebinding" if not self.tunnel.bare:  # the bare link is measured with open routers
                self.translating[event.node] = rebinding.routers_of(self.lab, event.node)
            case "change-address":
                await self.links.prepare_move(event.node)

    async def do(self, event: Event) -> dict[str, Any]:
        """The event itself; what it brought to light."""
        node = event.node
        match event.kind:
            case "restart" | "restart-fresh":
                await self.tunnel.restart(node, fresh=event.kind == "restart-fresh", patience=_PATIENCE)
            case "stop":
                await self.tunnel.stop([node])
            case "start" | "start-fresh":
                await self.tunnel.begin_again([node], fresh=event.kind == "start-fresh", patience=_PATIENCE)
            case "restart-control":
                await self.tunnel.stop_control()
                await self.tunnel.start_control(patience=_PATIENCE)
            case "stop-control":
                await self.tunnel.stop_control()
            case "start-control":
                await self.tunnel.start_control(patience=_PATIENCE)
            case "power-off":
                nodes = _nodes(self.lab, event)
                # Links first: a host without power tells no one that its sockets are gone.
                await together(*(self.links.down(one, self.links.devices(one)) for one in nodes))
                await self.tunnel.power_off(nodes)
            case "power-on":
                nodes = _nodes(self.lab, event)
                await together(*(self.links.up(one, self.links.devices(one)) for one in nodes))
                self.powered.set()
                await self.tunnel.begin_again(nodes, patience=_PATIENCE)
            case "link-down":
                await self.links.down(node, [UNDERLAY])
            case "link-up":
                await self.links.up(node, [UNDERLAY])
            case "partition" | "udp-cut" | "udp-blocked":
                await self.cuts.cut(_named(event.kind, event))
            case "partition-heal" | "udp-heal" | "udp-open":
                await self.cuts.heal(_named(_HEALS[event.kind], event))
            case "nat-rebinding":
                self.draws += 1
                await rebinding.rebind(self.lab, self.translating.get(node, ()), self.draws)
            case "change-address":
                await self.links.move(node)
            case "restore-address":
                await self.links.move_back(node)
            case "count-holdings":
                return {"held": await holdings.look(self.lab, self.programs())}
        return {}

    async def undo(self) -> None:
        """Make the links whole: the trial may have ended in the middle of a fault."""
        await self.cuts.heal_all()
        await self.links.up_all()

    def _relay(self, node: str) -> str:
        """The relay's node, which a node without UDP to the others still reaches; none where it is an end of the traffic."""
        topology = self.lab.topology
        ends = topology.nodes[0], topology.nodes[-1]
        return topology.relay if topology.relay not in (*ends, node) else ""


def _nodes(lab: Lab, event: Event) -> list[str]:
    return list(lab.nodes) if event.node == EVERY_NODE else [event.node]


def _named(kind: str, event: Event) -> str:
    return f"{kind} {event.node}"
