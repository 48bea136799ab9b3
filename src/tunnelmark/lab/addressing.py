"""Plans a lab's links: the addresses on them, and what carries them, from a topology and a profile. Pure."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

from tunnelmark.lab import backends, netem
from tunnelmark.lab.server.veth import LinkSpec
from tunnelmark.plan.model import Profile, Topology

UNDERLAY = IPv4Network("10.50.0.0/16")
"""Underlay addresses: link i has 10.50.i.0/24, the node at place j of the topology ends in j+1."""


def specs_of(topology: Topology, profile: Profile, *, ipv6: bool = False) -> list[LinkSpec]:
    """Each link as the middle node builds it; `ipv6` gives the nodes IPv6 addresses as well."""
    backend = backends.backend_of(profile)
    on_sender, card = profile.place == "sender", profile.card == "offloads"
    specs = []
    for number, (link, network) in enumerate(zip(topology.links, UNDERLAY.subnets(new_prefix=24), strict=False)):
        ways = backends.by_target(profile, link.nodes)
        shapers = {node: backends.shaper_of(profile, way) for node, way in ways.items()}
        if on_sender:  # what leaves the first node is forward
            ways = {node: profile.back if place else profile.forward for place, node in enumerate(link.nodes)}
        specs.append(
            LinkSpec(
                f"link{number}",
                {node: f"{network[topology.nodes.index(node) + 1]}/24" for node in link.nodes},
                {
                    node: replace(shaper, mtu=link.mtu, splits=card)
                    for node, shaper in shapers.items()
                    if shaper is not None
                },
                {node: netem.arguments(way) for node, way in ways.items()} if backend == "netem" else {},
                netem_on_sender=on_sender,
                emulated=backend == "emulator",
                super_packets=profile.unit == "gso" or card,
                card=card,
                ipv6=ipv6,
                mtu=link.mtu,
            )
        )
    return specs
