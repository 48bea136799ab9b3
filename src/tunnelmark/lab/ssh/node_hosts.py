"""Decides which host each node of a topology runs on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.inventory import InventoryHost


def node_hosts(nodes: Sequence[str], hosts: Sequence[InventoryHost]) -> dict[str, str]:
    """Return, by node in the order of `nodes`, the name of its host; UsageError if the hosts may have fewer nodes.

    Each host first gets one node, both in their order. If there are more nodes than hosts, the hosts that may have
    several get further ones in turn. The two ends of the path, the first and the last node, are placed first, so that
    they share a host only if there is but one.
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
