"""Finds the links that a node reaches, and over which routers: shortest paths in a topology. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from tunnelmark.plan.model import Profile, Topology
from tunnelmark.plan.routers import Router

Hop = tuple[str, str]
"""The name of the link to send on, and the name of the router on that link to send to."""


def routes(topology: Topology, start: str) -> dict[str, Hop | None]:
    """Return the first hop to each link that the node or router `start` reaches, by link; None for its own links.

    Paths have the fewest routers; of equal ones, the first stated is taken. A router that translates addresses is not
    crossed from outside to inside: nodes outside do not know what is behind it.
    """
    own = [link for link in topology.links if start in link.nodes]
    found: dict[str, Hop | None] = {link.name: None for link in own}
    begun = deque(own)
    while begun:
        link = begun.popleft()
        for router in (*topology.routers, *map(Router, topology.forwards)):
            if router.name == start or router.name not in link.nodes:
                continue
            if router.nat is not None and router.outside == link.name:
                continue
            for further in topology.links:
                if router.name in further.nodes and further.name not in found:
                    found[further.name] = found[link.name] or (link.name, router.name)
                    begun.append(further)
    return found


def hops(topology: Topology, start: str, end: str) -> list[Hop]:
    """Return the routers and forwarding nodes between two nodes, each with the link to it.

    All routers count as open (`Topology.open`): none translates addresses or drops packets.
    """
    open_, found, here = topology.open, list[Hop](), start
    while not any({here, end} <= set(link.nodes) for link in topology.links):
        ways = routes(open_, here)
        hop = next(hop for link in topology.links if end in link.nodes and (hop := ways.get(link.name)) is not None)
        found.append(hop)
        here = hop[1]
    return found


def crossed(topology: Topology, profile: Profile) -> tuple[Profile, ...]:
    """Return the profiles of the links from the first node to the last, in order.

    `profile`: the study's profile. A link has it if the topology states no profile for the link.
    """
    start, end = topology.nodes[0], topology.nodes[-1]
    ways = hops(topology, start, end)
    last = ways[-1][1] if ways else start
    named = {link.name: link for link in topology.links}
    links = (*(named[name] for name, _ in ways), next(one for one in topology.links if {last, end} <= set(one.nodes)))
    return tuple(link.profile or profile for link in links)


def further_ways(topology: Topology, source: str, target: str) -> Mapping[tuple[str, str], Sequence[str]]:
    """Return which of two nodes sends the packets that the routers between them pass on, by link and direction.

    A key is the router or node that passes packets onto the link, and the node or router at the link's other end. The
    value is ["source"] for packets from `source` to `target`, and ["target"] for packets from `target` to `source`. The
    first link of each path is left out, for there the sender is the node itself. {} if both nodes are on one link.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for end, start, other in (("source", source, target), ("target", target, source)):
        between = [name for _, name in hops(topology, start, other)]
        for way in pairwise([*between, other] if between else []):
            found.setdefault(way, []).append(end)
    return found


def translators(topology: Topology, start: str, end: str) -> list[str]:
    """Return the routers that translate the address of `start` on its packets to `end`, in the order of the path."""
    kinds = {router.name: router for router in topology.routers}
    met = ((kinds[name], link) for link, name in hops(topology, start, end) if name in kinds)
    return [router.name for router, link in met if router.nat is not None and router.outside != link]


def reaches(topology: Topology, start: str, end: str) -> bool:
    """Return whether the node or router `start` can send to `end`."""
    known = routes(topology, start)
    return any(end in link.nodes and link.name in known for link in topology.links)
