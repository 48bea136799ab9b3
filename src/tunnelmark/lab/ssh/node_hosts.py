"""Decides which host each node of a topology runs on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tunnelmark.errors import UsageError
from tunnelmark.lab.ssh.inventory import InventoryHost


def node_hosts(nodes: Sequence[str], hosts: Sequence[InventoryHost]) -> dict[str, str]:
    """Return, by node in the order of `nodes`, the name of its host; UsageError if the hosts have too few places.

    The hosts get nodes in turn, in the order of `hosts`. Each host gets one node in the first turn, and one more in
    each further turn until it has as many as it may have (`InventoryHost.nodes`). If there are more nodes than hosts,
    the first and the last node, which are the two ends of the path, are placed first, so that they share a host only if
    there is but one.
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
