"""Describes a lab's nodes for collectors as plain data, with addresses that identify each end's traffic."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from tunnelmark.lab.labs import MIDDLE, Lab
from tunnelmark.plan.routes import further_ways, translators
from tunnelmark.run.collectors.base import CollectorContext, ObservedNode
from tunnelmark.run.deploy import RunningDeployment


def observed(
    lab: Lab,
    tunnel: RunningDeployment,
    source: str,
    target: str,
    raw: Path,
    further_ends: Collection[str] = frozenset(),
) -> CollectorContext:
    """Return what collectors may look at in a lab that is on this machine: all of its nodes, and its links.

    `further_ends`: nodes that also send and receive traffic of the workload, as in a ring.
    """
    placement = lab.placement
    nodes = {
        name: ObservedNode(
            lab.nodes[name].pid, lab.group(name), tuple(placement.nodes[name]), lab.counted_headers(name), **said
        )
        for name, said in described_nodes(lab, tunnel, source, target, further_ends).items()
    }
    own = placement.links if placement.links_apart else ()
    return CollectorContext(
        nodes,
        source,
        target,
        raw,
        middle=ObservedNode(lab.middle.pid, lab.group(MIDDLE), own),
        card=lab.profile.card,
        links=lab,
        further_ways=further_ways(lab.topology, source, target),
        begun=tunnel.begun,
    )


def described_nodes(
    lab: Lab, tunnel: RunningDeployment, source: str, target: str, further_ends: Collection[str] = frozenset()
) -> dict[str, dict[str, Any]]:
    """Return by node, as plain data, the fields of `ObservedNode` that do not depend on the node's host.

    `further_ends`: nodes that also send and receive traffic of the workload, as in a ring.
    """
    others = {source: target, target: source}
    return {
        name: {
            "interface": tunnel.interface.get(name, ""),
            "address": str(tunnel.address.get(name, "")),
            "senders": _senders(lab, tunnel, name, others[name], further_ends) if name in others else {},
        }
        for name in lab.nodes
    }


def _senders(
    lab: Lab, tunnel: RunningDeployment, end: str, other: str, further_ends: Collection[str]
) -> dict[str, str]:
    """Return by underlay address to which node or router the traffic is attributed that reaches `end` from there.

    Traffic from routers that translate the address of the other end (`other`) is attributed to `other`.
    """
    owners = lab.owners
    behind = {*translators(lab.topology, other, end)}
    # Packets from a further end of the workload are its own traffic, and not relayed packets of the other end.
    same = behind | set(further_ends)
    found = {str(address): other if owner in same else owner for address, owner in owners.items()}
    if (nearest := tunnel.arrives_from.get(end)) is not None:
        found[str(nearest)] = other
    return found
