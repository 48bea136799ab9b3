"""Plans a lab's links from a topology and a profile: their addresses, routes, and what carries their packets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network

from tunnelmark.lab import backends, netem
from tunnelmark.lab.link_spec import LinkSpec, six
from tunnelmark.plan.model import Profile, Topology
from tunnelmark.plan.routes import routes

UNDERLAY = IPv4Network("10.50.0.0/16")
"""The underlay's addresses. Link i has 10.50.i.0/24; member j of the topology (from 0; nodes, then routers) has
.j+1.
"""


def profiles_of(topology: Topology, profile: Profile) -> list[Profile]:
    """Return the profile of each link: its own if it has one, else `profile`."""
    return [link.profile or profile for link in topology.links]


def specs_of(topology: Topology, study: Profile, *, ipv6: bool = False) -> list[LinkSpec]:
    """Return each link as the middle node builds it; a link without a profile of its own gets the profile `study`.

    With `ipv6` the nodes have IPv6 addresses as well.
    """
    specs, members = [], _members(topology)
    for number, (link, network) in enumerate(zip(topology.links, UNDERLAY.subnets(new_prefix=24), strict=False)):
        profile = link.profile or study
        backend = backends.backend_of(profile)
        on_sender, card = profile.place == "sender", profile.card == "offloads"
        ways = backends.by_target(profile, link.nodes)
        shapers = {node: backends.shaper_of(profile, way) for node, way in ways.items()}
        propagation = {node: netem.propagation(way.propagation) for node, way in ways.items() if way.propagation}
        if on_sender:  # what leaves the first node is forward
            ways = {node: profile.back if place else profile.forward for place, node in enumerate(link.nodes)}
        specs.append(
            LinkSpec(
                f"link{number}",
                {node: f"{network[members.index(node) + 1]}/24" for node in link.nodes},
                {
                    node: replace(shaper, mtu=link.mtu, splits=card)
                    for node, shaper in shapers.items()
                    if shaper is not None
                },
                {node: netem.arguments(way) for node, way in ways.items()} if backend == "netem" else {},
                netem_on_sender=on_sender,
                propagation=propagation if backend == "netem" else {},
                emulated=backend == "emulator",
                super_packets=profile.unit == "gso" or card,
                card=card,
                ipv6=ipv6,
                mtu=link.mtu,
            )
        )
    return specs


def _members(topology: Topology) -> tuple[str, ...]:
    return (*topology.nodes, *(router.name for router in topology.routers))


def route_commands(topology: Topology, member: str, specs: Sequence[LinkSpec]) -> list[str]:
    """Return the ip(8) commands that give a node or router a route to each link that it reaches through a router.

    A node also gets a default route, as every host with a router has, through the gateway of its first route.
    """
    numbers = {link.name: number for number, link in enumerate(topology.links)}
    lines, ways = [], [(name, hop) for name, hop in routes(topology, member).items() if hop is not None]
    for name, (link, router) in ways:
        spec, gateway = specs[numbers[name]], specs[numbers[link]].address(router)
        network = IPv4Interface(next(iter(spec.addresses.values()))).network
        lines.append(f"route add {network} via {gateway}")
        if spec.ipv6:
            lines.append(f"route add {six(network.network_address)}/64 via {six(gateway)}")
    if ways and member in topology.nodes:
        link, router = ways[0][1]
        spec = specs[numbers[link]]
        gateway = spec.address(router)
        lines.append(f"route add default via {gateway}")
        lines += [f"route add ::/0 via {six(gateway)}"] if spec.ipv6 else []
    return lines
