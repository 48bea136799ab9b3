"""Carries out a trial's events on a deployment, at their times: restarts, reboots, cuts, link flaps, new addresses."""

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
"""The `kind` of the record's first line, which has the deployment's `first_packet`: seconds by direction."""

_PATIENCE = 3600.0  # seconds that a step of a restart may take: in practice no limit, because the trial ends earlier
_TAKE_LINKS = ("link-down", "power-off")
"""Events that take links down. They are prepared last: what they restore includes what was made for other events."""

_HEALS = {"partition-heal": "partition", "udp-heal": "udp-cut", "udp-open": "udp-blocked"}


async def happen(
    lab: Lab,
    tunnel: RunningDeployment,
    events: Sequence[Event],
    file: Path,
    programs: Callable[[], holdings.Programs] = dict,
) -> None:
    """Carry out each event at its time, counted from now on, and append to `file` what was done and when.

    Events of one node follow one another; those of other nodes do not wait for them. A line of the file is a JSON
    object: `kind`, `node`, and `begun` and `ended` in seconds of CLOCK_MONOTONIC; `ended` is null if the trial ended
    first. The first line says how long the deployment took (DEPLOYED). If all nodes are rebooted, further lines say
    when each node carried traffic again (ANSWERED). If an event counts what the VPN holds (processes, memory, open
    files), its line has that as `held`, by node; `programs` returns the programs that are not the VPN's. When this
    function ends, in whatever way, all links work again: cuts are healed, and interfaces are up. Raises WorkloadFailed
    if an event needs something that the VPN or the topology does not have, such as a control service.
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
    """Return the names of interfaces of the middle node: those that lead to the interfaces that these events take down.

    All links run through the middle node, so each interface of a node has such a counterpart there.
    """
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
            # A fault may take long to carry out, such as a link whose kernel takes other interfaces down as well. The
            # outage begins only then, so its end is put off by as many seconds.
            late = done["ended"] - start - event.at
        finally:
            _write(file, done)


async def _answered(hand: _Hand, node: str, file: Path) -> None:
    """Write to the file when a node carries traffic again after all nodes were rebooted."""
    await hand.powered.wait()
    at = await hand.tunnel.next_answer(node, _PATIENCE)
    _write(file, {"kind": ANSWERED, "node": node, "begun": at, "ended": at})


def _write(file: Path, line: dict[str, Any]) -> None:
    with file.open("a") as record:
        record.write(json.dumps(line) + "\n")


@dataclass(slots=True)
class _Hand:
    """Carries out events.

    `translating`: by node, the routers that translate its address. `draws`: how often NAT rebinding drew new ports.
    `powered`: is set once a power cut is over.
    """

    lab: Lab
    tunnel: RunningDeployment
    cuts: Cuts
    links: NodeLinks
    programs: Callable[[], holdings.Programs]
    translating: dict[str, tuple[Router, ...]] = field(default_factory=dict)
    draws: int = 0
    powered: asyncio.Event = field(default_factory=asyncio.Event)

    async def prepare(self, event: Event) -> None:
        """Do all that can be done before the event's time, so that the event itself is quick."""
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
        """Carry out the event; return further fields for its line of the record, {} if it has none."""
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
                # Links first: a host without power cannot report to its peers that its sockets are closed.
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
        """Heal all cuts and bring all interfaces up: the trial may have ended in the middle of a fault."""
        await self.cuts.heal_all()
        await self.links.up_all()

    def _relay(self, node: str) -> str:
        """Return the relay, which a node without UDP still reaches by UDP; "" if it is the node itself, or an end."""
        topology = self.lab.topology
        ends = topology.nodes[0], topology.nodes[-1]
        return topology.relay if topology.relay not in (*ends, node) else ""


def _nodes(lab: Lab, event: Event) -> list[str]:
    return list(lab.nodes) if event.node == EVERY_NODE else [event.node]


def _named(kind: str, event: Event) -> str:
    return f"{kind} {event.node}"
