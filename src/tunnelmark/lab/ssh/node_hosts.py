"""Decides which host each node of a topology runs on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.inventory import InventoryHost


def node_hosts(nodes: Sequence[str], hosts: Sequence[InventoryHost]) -> dict[str, str]:
    """By node, in their order: the name of its host. UsageError if they are too many.

    A host has one node as long as there are hosts, both in their order. Beyond that hosts that may have several take
    turns, and the ends of the path, the first node and the last, come first: they share a host only where there is one.
    """
    places = [host.name for turn in range(max(host.nodes for host in hosts)) for host in hosts if turn < host.nodes]
    if len(nodes) > len(places):
        raise UsageError(
            f"the topology has {len(nodes)} nodes, and the hosts of the inventory may have {len(places)}",
            hint='name more hosts with roles = ["node"], let some have several (nodes = 3), or take a topology with fewer nodes',
        )
    if len(nodes) <= len(hosts):
        return dict(zip(nodes, places, strict=False))
    first, *between, last = nodes
    found = dict(zip((first, last, *between), places, strict=False))
    return {node: found[node] for node in nodes}
