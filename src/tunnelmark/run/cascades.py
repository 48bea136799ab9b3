"""A cascade: a tunnel on each link of a chain of nodes, which forward from one tunnel to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network
from itertools import pairwise, zip_longest
from typing import Any

from tunnelmark.errors import SetupFailed
from tunnelmark.lab.client import Lab
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CommandSucceeds, Daemon, Step
from tunnelmark.run.tunnel import FOLDER, STAGING
from tunnelmark.vpns.base import Converged, Deployment, Driver, Mesh, MeshNode


def network(leg: int) -> IPv4Network:
    """The overlay's prefix on a leg, counted from 1."""
    return IPv4Network(f"10.60.{leg}.0/24")


def legs_of(lab: Lab) -> tuple[Mesh, ...]:
    """A mesh of two nodes for each link of the chain, in order. The tunnel to the right is a node's second one, but the first node's."""
    pairs = list(pairwise(lab.nodes))
    networks = [network(leg) for leg in range(1, len(pairs) + 1)]
    meshes = []
    for place, (left, right) in enumerate(pairs):
        own = networks[place]
        ends = (
            (left, right, own[1], int(place > 0), tuple(networks[:place])),
            (right, left, own[2], 0, tuple(networks[place + 1 :])),
        )
        hosts = tuple(
            MeshNode(
                name,
                lab.address_towards(name, other),
                FOLDER / f"leg{place + 1}",
                IPv4Interface(f"{address}/{own.prefixlen}"),
                instance,
                behind,
            )
            for name, other, address, instance, behind in ends
        )
        meshes.append(Mesh(hosts, STAGING))
    return tuple(meshes)


def deployment(lab: Lab, driver: Driver[Any], options: Options) -> Deployment:
    """The tunnels of all legs as one deployment, which come up at the same time, and the routes through them."""
    legs = legs_of(lab)
    made = [driver.deploy(leg, options) for leg in legs]
    if not driver.cascades or any(one.staging for one in made):
        raise SetupFailed(f"{driver.name} has no driver for a cascade", hint="see `cascades` in docs/add-a-vpn.md")
    named = [[_named(phase, leg) for phase in one.phases] for leg, one in zip(legs, made, strict=True)]
    phases = tuple(
        tuple(step for phase in together for step in phase) for together in zip_longest(*named, fillvalue=())
    )
    overlays = {node: each for one in reversed(made) for node, each in one.overlays.items()}
    return Deployment(
        # A node in the middle is known by its left tunnel, the first node by its only one.
        overlays={node: overlays[node] for node in lab.nodes},
        files=tuple(file for one in made for file in one.files),
        phases=(*phases, up(legs, made), routes(legs, made)),
        converged=tuple(
            replace(each, daemon=_name(each.daemon, leg, each.node)) if isinstance(each, Converged) else each
            for leg, one in zip(legs, made, strict=True)
            for each in one.converged
        ),
        encrypted=all(one.encrypted for one in made),
    )


_ROUTED = 'ip route show dev "$0" | grep -q .'  # the kernel's own route, which comes with the address of an interface that is up


def up(legs: Sequence[Mesh], made: Sequence[Deployment]) -> tuple[CommandSucceeds, ...]:
    """What holds once each tunnel's interface is up and has its address."""
    return tuple(
        host.succeeds("sh", "-c", _ROUTED, one.overlays[host.name].interface)
        for leg, one in zip(legs, made, strict=True)
        for host in leg.hosts
    )


def routes(legs: Sequence[Mesh], made: Sequence[Deployment]) -> tuple[Command, ...]:
    """The commands that send what is for further legs into the tunnel that leads there."""
    return tuple(
        host.command(
            "ip", "route", "replace", str(far), "via", str(other.overlay.ip), "dev", one.overlays[host.name].interface
        )
        for leg, one in zip(legs, made, strict=True)
        for host, other in (leg.hosts, leg.hosts[::-1])
        for far in other.behind
    )


def _named(phase: Sequence[Step], leg: Mesh) -> tuple[Step, ...]:
    """The steps of a phase, with a name of its own for each daemon of a node."""
    return tuple(
        replace(step, name=_name(step.name, leg, step.node)) if isinstance(step, Daemon) else step for step in phase
    )


def _name(daemon: str, leg: Mesh, node: str) -> str:
    instance = next(host.instance for host in leg.hosts if host.name == node)
    return f"{daemon}-{instance}" if instance else daemon
