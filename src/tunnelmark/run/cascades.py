"""Deploys a cascade: several tunnels of a VPN on a chain of nodes, in series or nested, as one deployment.

In series, each link has a tunnel, and each node decrypts what it forwards into the next tunnel. Nested, the first node
has a tunnel to each other node, inside the tunnel to the node before: each node decrypts one layer, and forwards what
the layer contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import chain, pairwise, zip_longest
from typing import Any

from tunnelmark.errors import SetupFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command, CommandSucceeds, Daemon, Step
from tunnelmark.plan.model import Cascade
from tunnelmark.run.deployment_steps import FOLDER, STAGING
from tunnelmark.vpns.base import Converged, Deployment, Driver, Mesh, MeshNode

LEAST_MTU = 576
"""The size in bytes of IP packets that every host must accept (RFC 1122, 3.3.2); a smaller tunnel MTU is refused."""

_ROUTED = 'ip route show dev "$0" | grep -q .'  # an interface that is up and has an address has a route by the kernel


def network(number: int) -> IPv4Network:
    """Return the overlay network of a tunnel; tunnels are numbered from 1, beginning at the first node."""
    return IPv4Network(f"10.60.{number}.0/24")


def deployment(lab: Lab, driver: Driver[Any], options: Options, cascade: Cascade) -> Deployment:
    """Return all tunnels of a cascade as one deployment.

    Raises SetupFailed if the VPN cannot have several tunnels on a node, if its driver has staging commands, which make
    keys (`Deployment.staging`), if no node of the topology forwards, or if a nested tunnel's MTU would be less than
    `LEAST_MTU`.
    """
    if not driver.cascades or driver.overhead is None:
        raise SetupFailed(f"{driver.name} has no driver for a cascade", hint="see `cascades` in docs/add-a-vpn.md")
    if not lab.topology.forwards:
        raise SetupFailed(f"no node of {lab.topology.name} forwards", hint="a cascade needs a chain such as chain-1")
    if cascade == "series":
        return _series(lab, driver, options)
    return _nested(lab, driver, options, driver.overhead(options))


def _series(lab: Lab, driver: Driver[Any], options: Options) -> Deployment:
    """Return the deployment in series: all tunnels come up at the same time, then the routes through them are set."""
    legs = legs_of(lab)
    made = [driver.deploy(leg, options) for leg in legs]
    together = zip_longest(*(_named(one.phases, leg) for leg, one in zip(legs, made, strict=True)), fillvalue=())
    phases = (tuple(chain.from_iterable(phase)) for phase in together)
    overlays = {node: each for one in reversed(made) for node, each in one.overlays.items()}
    up = tuple(step for leg, one in zip(legs, made, strict=True) for step in interfaces_up(leg, one))
    nodes = list(lab.nodes)
    return replace(
        _joined(legs, made),
        # A node in the middle has two tunnels; its overlay interface is that of the one to the node before it.
        overlays={node: overlays[node] for node in nodes},
        phases=(*phases, up, onward(legs, made)),
        arrives_from={
            nodes[0]: lab.address_towards(nodes[1], nodes[0]),
            nodes[-1]: lab.address_towards(nodes[-2], nodes[-1]),
        },
    )


def legs_of(lab: Lab) -> tuple[Mesh, ...]:
    """Return a mesh of two nodes for each link of the chain, in order.

    A node between two links has two tunnels: `MeshNode.instance` is 0 for the tunnel to the node before it, and 1 for
    the tunnel to the next node. The first and the last node have one tunnel, with the instance 0.
    """
    pairs = list(pairwise(lab.nodes))
    networks = [network(leg) for leg in range(1, len(pairs) + 1)]
    return tuple(
        _mesh(
            _end(lab, left, right, place + 1, 1, int(place > 0), tuple(networks[:place])),
            _end(lab, right, left, place + 1, 2, 0, tuple(networks[place + 1 :])),
        )
        for place, (left, right) in enumerate(pairs)
    )


def _nested(lab: Lab, driver: Driver[Any], options: Options, overhead: int) -> Deployment:
    """Return the nested deployment: each tunnel comes up inside the one before; workloads use the innermost."""
    tunnels = nested_in(lab, overhead, getattr(options, "mtu", None))
    made = [driver.deploy(tunnel, options) for tunnel in tunnels]
    phases: list[tuple[Step, ...]] = []
    for place, (tunnel, one) in enumerate(zip(tunnels, made, strict=True)):
        if place:
            phases.append(_inward(lab, tunnels[place - 1], made[place - 1], tunnel))
        phases += [*_named(one.phases, tunnel), interfaces_up(tunnel, one)]
    first, last = (list(lab.nodes)[place] for place in (0, -1))
    return replace(
        _joined(tunnels, made),
        overlays=made[-1].overlays,
        phases=tuple(phases),
        arrives_from={first: tunnels[0].hub.underlay, last: tunnels[-1].hosts[1].underlay},
    )


def nested_in(lab: Lab, overhead: int, asked: int | None = None) -> tuple[Mesh, ...]:
    """Return a mesh of the first node with each other node, the outermost tunnel first.

    In each mesh, the first node dials to the other node, which is the hub. Each tunnel but the outermost runs inside
    the tunnel before: in its mesh, the first node's underlay address is its overlay address in the tunnel before.

    `overhead`: a tunnel's MTU is so many bytes less than that of the tunnel around it, or than that of the last link to
    its hub, whichever is smaller. `asked`: the largest MTU that the innermost tunnel may have; None: no limit. Raises
    SetupFailed if links and `overhead` leave a tunnel an MTU of less than `LEAST_MTU`.
    """
    nodes = list(lab.nodes)
    carrier = max(link.mtu for link in lab.topology.links)
    meshes: list[Mesh] = []
    for number, (before, node) in enumerate(pairwise(nodes), start=1):
        carrier = min(carrier, lab.topology.links[number - 1].mtu) - overhead
        if carrier < LEAST_MTU:
            raise SetupFailed(
                f"{number} nested tunnels leave {carrier} bytes of a packet, less than {LEAST_MTU}",
                hint="take a shorter chain, or links with a larger MTU",
            )
        further = nodes[number + 1 : number + 2]
        behind = tuple(IPv4Network(lab.address_towards(next_, node)) for next_ in further)
        hub = _end(lab, node, before, number, 1, 0, behind)
        client = _end(lab, nodes[0], nodes[1], number, 2, number - 1, ())
        if meshes:
            client = replace(client, underlay=meshes[-1].hosts[1].overlay.ip)
        mtu = min(carrier, asked) if asked is not None and not further else carrier
        meshes.append(replace(_mesh(hub, client), mtu=mtu))
    return tuple(meshes)


def _inward(lab: Lab, around: Mesh, made: Deployment, tunnel: Mesh) -> tuple[Command, ...]:
    """Return commands that route a tunnel's packets into the outer one, and the answers to the node where that ends."""
    outer, client = around.hosts
    hub = tunnel.hub
    into, back = made.overlays[client.name].interface, lab.address_towards(outer.name, hub.name)
    return (
        client.command("ip", "route", "replace", str(hub.underlay), "via", str(outer.overlay.ip), "dev", into),
        hub.command("ip", "route", "replace", str(client.overlay.network), "via", str(back)),
    )


def onward(legs: Sequence[Mesh], made: Sequence[Deployment]) -> tuple[Command, ...]:
    """Return the commands that route packets for networks behind a tunnel's other end into that tunnel.

    `made`: the deployment of each tunnel in `legs`, in the same order.
    """
    return tuple(
        host.command(
            "ip", "route", "replace", str(far), "via", str(other.overlay.ip), "dev", one.overlays[host.name].interface
        )
        for leg, one in zip(legs, made, strict=True)
        for host, other in (leg.hosts, leg.hosts[::-1])
        for far in other.behind
    )


def _end(
    lab: Lab, node: str, other: str, tunnel: int, place: int, instance: int, behind: tuple[IPv4Network, ...]
) -> MeshNode:
    """Return a node as an end of tunnel number `tunnel`, with the address number `place` of the tunnel's network."""
    own = network(tunnel)
    address: IPv4Address = own[place]
    return MeshNode(
        node,
        lab.address_towards(node, other),
        FOLDER / f"tunnel{tunnel}",
        IPv4Interface(f"{address}/{own.prefixlen}"),
        instance,
        behind,
    )


def _mesh(*hosts: MeshNode) -> Mesh:
    return Mesh(hosts, STAGING)


def _joined(tunnels: Sequence[Mesh], made: Sequence[Deployment]) -> Deployment:
    """Return one deployment for all tunnels, still without overlays and phases."""
    if any(one.staging for one in made):
        raise SetupFailed("a VPN with a staging folder has no driver for a cascade", hint="see docs/add-a-vpn.md")
    return Deployment(
        overlays={},
        files=tuple(file for one in made for file in one.files),
        converged=tuple(
            replace(each, daemon=_name(each.daemon, tunnel, each.node)) if isinstance(each, Converged) else each
            for tunnel, one in zip(tunnels, made, strict=True)
            for each in one.converged
        ),
        encrypted=all(one.encrypted for one in made),
    )


def interfaces_up(tunnel: Mesh, made: Deployment) -> tuple[CommandSucceeds, ...]:
    """Return the steps that wait until a tunnel's interfaces are up and have their addresses."""
    return tuple(host.succeeds("sh", "-c", _ROUTED, made.overlays[host.name].interface) for host in tunnel.hosts)


def _named(phases: Sequence[Sequence[Step]], tunnel: Mesh) -> list[tuple[Step, ...]]:
    """Return the phases with daemons renamed, so that each daemon of a node has another name."""
    return [
        tuple(
            replace(step, name=_name(step.name, tunnel, step.node)) if isinstance(step, Daemon) else step
            for step in phase
        )
        for phase in phases
    ]


def _name(daemon: str, tunnel: Mesh, node: str) -> str:
    instance = next(host.instance for host in tunnel.hosts if host.name == node)
    return f"{daemon}-{instance}" if instance else daemon
