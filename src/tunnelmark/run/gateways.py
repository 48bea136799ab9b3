"""Deploys a VPN between two gateways: one tunnel joins them; the traffic's ends are hosts behind them without a VPN.

Site-to-site VPNs and subnet routers are used like this. The first and the last of the forwarding nodes of a chain have
the VPN, and forward packets for the host behind the other into the tunnel. Nodes in between forward encrypted packets.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

from tunnelmark.errors import SetupFailed
from tunnelmark.lab.labs import Lab
from tunnelmark.model.options import Options
from tunnelmark.model.steps import Command
from tunnelmark.run.cascades import interfaces_up, onward
from tunnelmark.run.deployment_steps import FOLDER, STAGING
from tunnelmark.vpns.base import OVERLAY, Deployment, Driver, Mesh, MeshNode, Overlay
from tunnelmark.vpns.direct import UNDERLAY_INTERFACE


def deployment(lab: Lab, driver: Driver[Any], options: Options) -> Deployment:
    """Return the deployment of the tunnel, with the routes into it.

    SetupFailed if the VPN cannot route to networks behind a node, or if the lab has fewer than two forwarding nodes.
    """
    if not driver.cascades:
        raise SetupFailed(f"{driver.name} has no driver for gateways", hint="see `cascades` in docs/add-a-vpn.md")
    if len(lab.topology.forwards) < 2:
        raise SetupFailed(
            f"{lab.topology.name} has no two nodes that forward", hint="gateways need a chain such as two-gateways"
        )
    mesh = mesh_of(lab)
    made = driver.deploy(mesh, options)
    first, *_, last = lab.nodes
    hosts = {
        node: Overlay(UNDERLAY_INTERFACE, lab.address_towards(node, gateway.name))
        for node, gateway in zip((first, last), mesh.hosts, strict=True)
    }
    return replace(
        made,
        overlays={first: hosts[first], **made.overlays, last: hosts[last]},
        phases=(*made.phases, interfaces_up(mesh, made), (*onward([mesh], [made]), *_to_gateways(lab, mesh))),
    )


def mesh_of(lab: Lab) -> Mesh:
    """Return the mesh of the two gateways as a driver sees it, each with the host behind it."""
    first, left, *_, right, last = lab.nodes
    overlay = IPv4Network(OVERLAY)
    inward = {left: list(lab.nodes)[2], right: list(lab.nodes)[-3]}  # the next node on the way to the other gateway
    return Mesh(
        tuple(
            MeshNode(
                gateway,
                lab.address_towards(gateway, inward[gateway]),
                FOLDER,
                IPv4Interface(f"{overlay[place]}/{overlay.prefixlen}"),
                behind=(IPv4Network(lab.address_towards(host, gateway)),),
            )
            for place, (gateway, host) in enumerate(((left, first), (right, last)), start=1)
        ),
        STAGING,
    )


def _to_gateways(lab: Lab, mesh: Mesh) -> tuple[Command, ...]:
    """Return the commands that give the hosts behind a route to the overlay; they have routes to each other already."""
    first, *_, last = lab.nodes
    return tuple(
        Command(host, ("ip", "route", "replace", OVERLAY, "via", str(lab.address_towards(gateway.name, host))))
        for host, gateway in zip((first, last), mesh.hosts, strict=True)
    )
